// Package synergy divides the CPUs and the memory of servers among the jobs that run on their devices.
//
// A round takes jobs in an order and seats those that fit; the others are passed over, and hold nobody up. What a job is given
// beside its devices depends on the mode:
//
//   - Fair gives everyone the proportional share.
//   - Greedy gives what a job asks for, or nothing. Devices stand idle where CPUs have run out.
//   - Tune gives what a job asks for while that is there, else the proportional share, and takes what is missing for that from
//     those that have more. Nobody runs slower than with the proportional share.
//
// Source: Mohan et al., Synergy (OSDI'22), and the answers of its simulator. Orders are keys of jobs: see Order.
// A round costs the jobs times the servers, and in mode Tune for each job that takes from others a sort of those on a server.
// The package knows nothing of the pipeline.
package synergy

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core/sensitivity"
)

// Mode is how CPUs and memory are divided.
type Mode uint8

// The modes.
const (
	Fair Mode = iota
	Greedy
	Tune
)

// Server has devices, CPUs and memory.
type Server struct {
	Devices int
	sensitivity.Share
}

// Job asks for devices and what it wants beside them, all of the whole job.
type Job struct {
	Devices int
	Fair    sensitivity.Share  // the proportional share of its devices; that of any server's, at most
	Demand  sensitivity.Demand // what it runs best with
}

// Grant is what a job has for a round. Without a seat it is zero.
type Grant struct {
	sensitivity.Share
	Speed float64 // 1 at the proportional share; 0 without a seat
	Seats []Seat  // by server, ascending; valid until the next round
}

// Seat is devices of a server.
type Seat struct{ Server, Devices int }

// slack is how much CPUs or memory may be missing by rounding.
const slack = 1e-9

// Packer seats rounds of jobs. The zero value is ready; it keeps its buffers, and is for one goroutine.
type Packer struct {
	Mode Mode
	// Consolidate looks for one server first, the fullest that has the room, and then takes a device at a time from the fullest.
	// Without it devices are taken in the order of the servers, wherever there is the room for one.
	Consolidate bool

	jobs    []Job
	servers []server
	grants  []Grant
	seats   []Seat
	taken   []int // by server, of the job that is seated
	order   []int
}

type server struct {
	free    int
	left    sensitivity.Share
	tenants []int // jobs
}

// Round seats jobs in their order, and returns what each is given, by the same indices. The answer is valid until the next
// round. A job whose proportional share is more than that of the servers' devices may find no seat in mode Tune.
func (p *Packer) Round(servers []Server, jobs []Job) []Grant {
	p.begin(servers, jobs)
	free := 0
	for i := range servers {
		free += servers[i].Devices
	}
	for i := range jobs {
		if jobs[i].Devices > 0 && jobs[i].Devices <= free && p.seat(i) {
			free -= jobs[i].Devices
		}
	}
	return p.grants
}

func (p *Packer) begin(servers []Server, jobs []Job) {
	p.jobs, p.seats = jobs, p.seats[:0]
	p.grants = slices.Grow(p.grants[:0], len(jobs))[:len(jobs)]
	clear(p.grants)
	p.servers = slices.Grow(p.servers[:0], len(servers))[:len(servers)]
	p.taken = slices.Grow(p.taken[:0], len(servers))[:len(servers)]
	for i, s := range servers {
		p.servers[i] = server{free: s.Devices, left: s.Share, tenants: p.servers[i].tenants[:0]}
	}
}

func (p *Packer) seat(i int) bool {
	job := &p.jobs[i]
	if p.Mode == Fair {
		return p.place(i, job.Fair, 1)
	}
	if p.place(i, job.Demand.Share, job.Demand.Speed) {
		return true
	}
	if p.Mode == Greedy {
		return false
	}
	share, speed := job.Demand.Share, job.Demand.Speed
	if share.Over(job.Fair) {
		share, speed = job.Fair, 1
		if p.place(i, share, speed) {
			return true
		}
	}
	p.makeRoom(job.Devices, share)
	return p.place(i, share, speed)
}

// place gives a job devices with a share, all or none.
func (p *Packer) place(i int, share sensitivity.Share, speed float64) bool {
	devices := p.jobs[i].Devices
	each := share.Times(1 / float64(devices))
	if p.Consolidate {
		p.gather(devices, each)
	} else {
		p.scan(devices, each)
	}
	missing := devices
	for _, n := range p.taken {
		missing -= n
	}
	if missing > 0 {
		return false
	}
	first := len(p.seats)
	for at, n := range p.taken {
		if n == 0 {
			continue
		}
		p.seats = append(p.seats, Seat{at, n})
		s := &p.servers[at]
		s.free -= n
		s.left = add(s.left, each, -float64(n))
		s.tenants = append(s.tenants, i)
	}
	p.grants[i] = Grant{share, speed, p.seats[first:len(p.seats):len(p.seats)]}
	return true
}

// scan takes devices in the order of the servers.
func (p *Packer) scan(devices int, each sensitivity.Share) {
	for at := range p.servers {
		p.taken[at] = min(devices, p.servers[at].room(devices, each))
		devices -= p.taken[at]
	}
}

// gather takes devices of one server, or a device at a time from the server with the fewest free.
func (p *Packer) gather(devices int, each sensitivity.Share) {
	clear(p.taken)
	best := -1
	for at := range p.servers {
		if p.servers[at].room(devices, each) >= devices && (best < 0 || p.servers[at].free < p.servers[best].free) {
			best = at
		}
	}
	if best >= 0 {
		p.taken[best] = devices
		return
	}
	for devices > 0 {
		best = -1
		for at := range p.servers {
			s := &p.servers[at]
			if p.taken[at] < s.room(p.taken[at]+1, each) && (best < 0 || s.free-p.taken[at] < p.servers[best].free-p.taken[best]) {
				best = at
			}
		}
		if best < 0 {
			return
		}
		p.taken[best]++
		devices--
	}
}

// room is how many devices with a share each are left, at most so many.
func (s *server) room(most int, each sensitivity.Share) int {
	n := min(most, s.free)
	if n <= 0 {
		return 0
	}
	left := float64(n)
	if each.CPUs > 0 {
		left = min(left, math.Floor((s.left.CPUs+slack)/each.CPUs))
	}
	if each.MemoryGB > 0 {
		left = min(left, math.Floor((s.left.MemoryGB+slack)/each.MemoryGB))
	}
	return max(int(left), 0)
}

// makeRoom chooses servers by their devices alone, and takes from the jobs on them what they have beyond the proportional share,
// until a job has room there. For a job of one device it is the server with the fewest free, for a larger one the first with
// enough; where none has enough, they are those with the fewest free first. That the two differ is as published.
func (p *Packer) makeRoom(devices int, share sensitivity.Share) {
	each := share.Times(1 / float64(devices))
	best := -1
	p.order = p.order[:0]
	for at := range p.servers {
		p.order = append(p.order, at)
		if p.servers[at].free >= devices && (best < 0 || devices == 1 && p.servers[at].free < p.servers[best].free) {
			best = at
		}
	}
	if best >= 0 {
		p.shrink(best, each.Times(float64(devices)))
		return
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return cmp.Compare(p.servers[a].free, p.servers[b].free) })
	for _, at := range p.order {
		n := min(devices, p.servers[at].free)
		if n > 0 {
			p.shrink(at, each.Times(float64(n)))
		}
		devices -= n
	}
}

// shrink takes from the jobs on a server, those on the fewest servers first, then those with the most CPUs for a device, then
// memory, until a share is left there. Where a job asks for less than the proportional share it gets no more.
func (p *Packer) shrink(at int, wanted sensitivity.Share) {
	s := &p.servers[at]
	slices.SortStableFunc(s.tenants, func(a, b int) int {
		x, y := &p.grants[a], &p.grants[b]
		g, h := float64(p.jobs[a].Devices), float64(p.jobs[b].Devices)
		return cmp.Or(
			cmp.Compare(len(x.Seats), len(y.Seats)),
			cmp.Compare(y.CPUs/h, x.CPUs/g),
			cmp.Compare(y.MemoryGB/h, x.MemoryGB/g),
			cmp.Compare(a, b),
		)
	})
	for _, i := range s.tenants {
		if s.left.CPUs+slack >= wanted.CPUs && s.left.MemoryGB+slack >= wanted.MemoryGB {
			return
		}
		grant, job := &p.grants[i], &p.jobs[i]
		if !grant.Over(job.Fair) {
			continue
		}
		less := grant.Least(job.Fair)
		excess := add(grant.Share, less, -1).Times(1 / float64(job.Devices))
		for _, seat := range grant.Seats {
			p.servers[seat.Server].left = add(p.servers[seat.Server].left, excess, float64(seat.Devices))
		}
		grant.Share, grant.Speed = less, 1
	}
}

func add(a, b sensitivity.Share, times float64) sensitivity.Share {
	return sensitivity.Share{CPUs: a.CPUs + times*b.CPUs, MemoryGB: a.MemoryGB + times*b.MemoryGB}
}
