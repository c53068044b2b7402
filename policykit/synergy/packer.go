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
// Source: Mohan et al., Synergy (OSDI'22), and the answers of its simulator. Orders are keys of jobs: see State.
// A round costs the jobs times the servers, and in mode Tune for each job that takes from others a sort of those on a server.
// Only Fleet knows of the pipeline.
package synergy

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Mode is how CPUs and memory are divided.
type Mode uint8

// The modes of giving jobs CPUs and memory.
const (
	Fair Mode = iota
	Greedy
	Tune
)

// Server has devices, CPUs and memory.
type Server struct {
	// Devices is how many devices it has.
	Devices int
	core.Resources
	Kind int // 0..63, of its devices
}

// Job asks for devices and what it wants beside them, all of the whole job.
type Job struct {
	// Devices is how many devices the job is granted.
	Devices int
	Fair    core.Resources // the proportional share of its devices; that of any server's, at most
	Demand  core.Demand    // what it runs best with
	Kinds   uint64         // of servers it can have, bit k for kind k; 0 for all
	Mixes   bool           // it can have servers of several kinds at once
	// Stays is where it stays if it can; nil for wherever there is room. Those that stay come first.
	Stays []Seat
	// Runs is set for a job that has had its turn, and Blocking for one that, where it finds no seat, leaves nothing of its kinds to those
	// after it that have not.
	Runs, Blocking bool
}

// Grant is what a job has for a round. Without a seat it is zero.
type Grant struct {
	core.Resources
	Speed float64 // 1 at the proportional share; 0 without a seat
	Seats []Seat  // by server, ascending; valid until the next round
}

// Seat is devices of a server.
type Seat struct {
	Server, Devices int // index of the server, and how many of its devices
}

// slack is how much CPUs or memory may be missing by rounding.
const slack = 1e-9

// Packer seats rounds of jobs. The zero value is ready; it keeps its buffers, and is for one goroutine.
type Packer struct {
	// Mode says how CPUs and memory are divided.
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
	only    uint64  // kinds of the servers that the job may be seated on now
	free    [64]int // devices, by kind
	closed  uint64  // kinds of which nothing is left to jobs that do not run
	was     []Grant // scratch: while CPUs and memory are divided anew
	seated  []Seat
}

type server struct {
	kind    uint64 // a bit
	free    int
	left    core.Resources
	tenants []int // jobs
}

// Round seats jobs in their order, those first that stay, and returns what each is given, by the same indices. The answer is valid until the next
// round. A job whose proportional share is more than that of the servers' devices may find no seat in mode Tune.
func (p *Packer) Round(servers []Server, jobs []Job) []Grant {
	p.begin(servers, jobs)
	stay, others := false, false
	for i := range jobs {
		if jobs[i].Stays != nil {
			stay = p.settle(i, jobs[i].Stays) || stay
		}
	}
	for i := range jobs {
		if len(p.grants[i].Seats) == 0 {
			others = p.seatAnywhere(i) || others
		}
	}
	if p.Mode == Tune && stay && others {
		p.divide(servers)
	}
	return p.grants
}

// Closed reports whether nothing of a kind is left to jobs that do not run, in the last round.
func (p *Packer) Closed(kind int) bool { return p.closed&(1<<uint(kind)) != 0 }

// Left is the devices, the CPUs and the memory that the last round left of the servers whose kind is among these.
func (p *Packer) Left(kinds uint64) (left Capacity) {
	for i := range p.servers {
		if s := &p.servers[i]; s.kind&kinds != 0 && s.free > 0 {
			left.Devices += s.free
			left.Resources = left.Plus(s.left)
		}
	}
	return left
}

func (p *Packer) begin(servers []Server, jobs []Job) {
	p.jobs, p.seats, p.closed, p.only, p.free = jobs, p.seats[:0], 0, ^uint64(0), [64]int{}
	p.grants = slices.Grow(p.grants[:0], len(jobs))[:len(jobs)]
	clear(p.grants)
	p.servers = slices.Grow(p.servers[:0], len(servers))[:len(servers)]
	p.taken = slices.Grow(p.taken[:0], len(servers))[:len(servers)]
	for i, s := range servers {
		p.servers[i] = server{kind: 1 << uint(s.Kind), free: s.Devices, left: s.Resources, tenants: p.servers[i].tenants[:0]}
		p.free[s.Kind] += s.Devices
	}
}

// divide gives those that have seats their CPUs and memory anew, in the order of the jobs: whoever stayed came first until now.
func (p *Packer) divide(servers []Server) {
	p.was, p.seated = append(p.was[:0], p.grants...), slices.Grow(p.seated[:0], len(p.seats))
	for i := range p.was {
		first := len(p.seated)
		p.seated = append(p.seated, p.was[i].Seats...)
		p.was[i].Seats = p.seated[first:]
	}
	closed := p.closed
	p.begin(servers, p.jobs)
	for i := range p.was {
		if len(p.was[i].Seats) > 0 {
			p.settle(i, p.was[i].Seats)
		}
	}
	for i := range p.was {
		if len(p.was[i].Seats) > 0 && len(p.grants[i].Seats) == 0 { // servers that differ in what a device stands for
			p.seatAnywhere(i)
		}
	}
	p.closed |= closed
}

// settle gives a job what it can have on the seats that it has, and reports false if it can have nothing there. One that was given its seats under another
// mode stays with the proportional share where there is no more, in mode Greedy too.
func (p *Packer) settle(i int, seats []Seat) bool {
	job := &p.jobs[i]
	clear(p.taken)
	for _, s := range seats {
		p.taken[s.Server] += s.Devices
	}
	if p.Mode == Fair {
		return p.fits(job.Devices, job.Fair) && p.take(i, job.Fair, 1)
	}
	if p.fits(job.Devices, job.Demand.Resources) {
		return p.take(i, job.Demand.Resources, job.Demand.Speed)
	}
	share, speed := job.Demand.Resources, job.Demand.Speed
	if share.Over(job.Fair) {
		share, speed = job.Fair, 1
	}
	each := share.Times(1 / float64(job.Devices))
	for _, s := range seats {
		p.shrink(s.Server, each.Times(float64(s.Devices)))
	}
	return p.fits(job.Devices, share) && p.take(i, share, speed)
}

// fits reports whether the devices that are taken have room for a share.
func (p *Packer) fits(devices int, share core.Resources) bool {
	each := share.Times(1 / float64(devices))
	for at, n := range p.taken {
		if n > 0 && p.servers[at].room(n, each) < n {
			return false
		}
	}
	return true
}

// seatAnywhere seats a job on servers of one kind, or of several if it mixes them.
func (p *Packer) seatAnywhere(i int) bool {
	job := &p.jobs[i]
	if job.Devices <= 0 {
		return false
	}
	kinds := job.Kinds
	if kinds == 0 {
		kinds = ^uint64(0)
	}
	if !job.Runs {
		kinds &^= p.closed
	}
	if job.Mixes {
		free := 0
		for rest := kinds; rest != 0; rest &= rest - 1 {
			free += p.free[bits.TrailingZeros64(rest)]
		}
		if p.only = kinds; job.Devices <= free && p.seat(i) {
			return true
		}
	} else {
		for rest := kinds; rest != 0; rest &= rest - 1 {
			kind := bits.TrailingZeros64(rest)
			if p.only = 1 << uint(kind); job.Devices <= p.free[kind] && p.seat(i) {
				return true
			}
		}
	}
	if job.Blocking {
		p.closed |= kinds
	}
	return false
}

func (p *Packer) seat(i int) bool {
	job := &p.jobs[i]
	if p.Mode == Fair {
		return p.place(i, job.Fair, 1)
	}
	if p.place(i, job.Demand.Resources, job.Demand.Speed) {
		return true
	}
	if p.Mode == Greedy {
		return false
	}
	share, speed := job.Demand.Resources, job.Demand.Speed
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
func (p *Packer) place(i int, share core.Resources, speed float64) bool {
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
	return missing == 0 && p.take(i, share, speed)
}

// take gives a job the devices that are taken, with a share. It reports true.
func (p *Packer) take(i int, share core.Resources, speed float64) bool {
	each := share.Times(1 / float64(p.jobs[i].Devices))
	first := len(p.seats)
	for at, n := range p.taken {
		if n == 0 {
			continue
		}
		p.seats = append(p.seats, Seat{at, n})
		s := &p.servers[at]
		s.free -= n
		p.free[bits.TrailingZeros64(s.kind)] -= n
		s.left = add(s.left, each, -float64(n))
		s.tenants = append(s.tenants, i)
	}
	p.grants[i] = Grant{share, speed, p.seats[first:len(p.seats):len(p.seats)]}
	return true
}

// scan takes devices in the order of the servers.
func (p *Packer) scan(devices int, each core.Resources) {
	for at := range p.servers {
		s := &p.servers[at]
		if p.taken[at] = 0; s.kind&p.only != 0 {
			p.taken[at] = s.room(devices, each)
		}
		devices -= p.taken[at]
	}
}

// gather takes devices of one server, or a device at a time from the server with the fewest free.
func (p *Packer) gather(devices int, each core.Resources) {
	clear(p.taken)
	best := -1
	for at := range p.servers {
		if p.servers[at].kind&p.only != 0 && p.servers[at].room(devices, each) >= devices && (best < 0 || p.servers[at].free < p.servers[best].free) {
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
			if s.kind&p.only != 0 && p.taken[at] < s.room(p.taken[at]+1, each) && (best < 0 || s.free-p.taken[at] < p.servers[best].free-p.taken[best]) {
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
func (s *server) room(most int, each core.Resources) int {
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
func (p *Packer) makeRoom(devices int, share core.Resources) {
	each := share.Times(1 / float64(devices))
	best := -1
	p.order = p.order[:0]
	for at := range p.servers {
		if p.servers[at].kind&p.only == 0 {
			continue
		}
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
func (p *Packer) shrink(at int, wanted core.Resources) {
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
		excess := add(grant.Resources, less, -1).Times(1 / float64(job.Devices))
		for _, seat := range grant.Seats {
			p.servers[seat.Server].left = add(p.servers[seat.Server].left, excess, float64(seat.Devices))
		}
		grant.Resources, grant.Speed = less, 1
	}
}

func add(a, b core.Resources, times float64) core.Resources {
	return core.Resources{CPUs: a.CPUs + times*b.CPUs, MemoryGB: a.MemoryGB + times*b.MemoryGB}
}
