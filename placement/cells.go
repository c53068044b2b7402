package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/cells"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// CellsConfig configures NewCells.
type CellsConfig struct {
	cells.Config
	// Strict lets a job with cells wait until it lies in no more pieces than in the idle virtual cluster.
	Strict bool `config:"strict" doc:"a job with cells waits until it lies in no more pieces than in the idle virtual cluster of its tenant"`
	// Inside says what happens to the running jobs of a virtual cluster: keep leaves them their devices, order does not.
	Inside string `config:"inside" doc:"what becomes of the running jobs of a virtual cluster: keep leaves them their devices, order takes those of the last ones for jobs that the allocation puts before them" enum:"keep|order"`
}

// The values of CellsConfig.Inside.
const (
	insideKeep  = "keep"
	insideOrder = "order"
)

// NewCells seats the jobs of a tenant on the cells that it is promised, and the others on what is left.
//
// The jobs of a tenant use its virtual cells, in the order of the grants; a virtual cell is bound to a physical one while a job uses it.
// So a job is seated if, and only if, it would be in a private cluster of its tenant's cells, whatever the others do. Guests, which are
// best effort jobs and those of tenants without cells, take any devices, first of free cells of the highest level; they lose them when a
// tenant needs its cells, the cells with the fewest of their devices first. Broken nodes leave the free cells. A virtual cluster lacks cells only
// while there are not enough sound ones to bind.
//
// Source: Zhao et al., HiveD (OSDI'20). Deviations: there are two priorities. How much of the rest each tenant's guests get is
// for the order of the allocation to say. With inside order, a job may take the devices of later ones of its tenant, the last ones first, as tail_eviction does.
// A job has whole devices, of one type unless it is a guest that mixes types. A job that is pinned, or whose grant is blocking, loses no devices:
// as a guest it keeps tenants from its devices. The allocation should grant everyone (queue: all), for it does not know whose
// devices are free. A round costs O(jobs), and each job that is seated anew O(cells of its tenant in use), or O(nodes) as a guest.
func NewCells() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "cells",
		Summary: "seats jobs on the cells that their tenants are promised, and guests on what is left",
		Description: "Binds the cells of virtual clusters to physical ones while jobs use them, by buddy allocation: a job is seated if it would be in a private cluster of its tenant's cells. " +
			"Best effort jobs and those of tenants without cells are guests: they lie far from the others and give way to them. " +
			"Wants an allocation that grants everyone, such as fifo with queue: all, and goes with the admission virtual_clusters. " +
			"O(jobs) a round, and O(nodes) for each job that is seated anew.",
		Source: "HiveD, OSDI'20",
	}, CellsConfig{Inside: insideKeep}, func(c CellsConfig, _ core.Settings) (core.Placer, error) {
		return &cellular{config: c, clusters: cells.NewClusters(c.Config)}, nil
	})
}

type cellular struct {
	config   CellsConfig
	clusters *cells.Clusters

	cluster       *core.Cluster // as of which clusters is
	healthChanges int
	restored      []cells.CellBinding // to be bound when the nodes are known
	rejoined      bool                // the nodes are others than in the round before

	jobs   []lodger // who has devices
	of     []seatOf // by JobID
	round  int32
	states []seatState // by grant

	// refused is the fewest devices that each tenant could not be given of each accelerator type since somebody left some: it is not
	// given more either. 0 for none.
	refused   []int
	evictions int
	closed    []bool // by accelerator type: an earlier job keeps its turn there
	seats     []core.Seat
	placed    []core.Placement
	unseated  []core.Verdict
}

// lodger is a job with devices.
type lodger struct {
	job    core.JobID
	wanted cells.Tenant // whose cells it may use
	tenant cells.Tenant // whose cells it uses; Guest also for one that could not be explained
	stays  bool         // a guest that cannot be sent away
	seats  []core.Seat
}

// seatOf is what is known of a job.
type seatOf struct {
	tenant cells.Tenant // 2 + whose cells it may use unless it is best effort; 0 when not yet looked up
	at     int32        // 1 + index among the lodgers
	grant  int32        // of the round
	round  int32
}

// seatState is what became of a grant.
type seatState struct {
	seated, evicted bool
}

func (p *cellular) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	p.begin(v, grants)
	for i := range grants {
		p.keepOrAdopt(v, &grants[i])
	}
	if p.rejoined { // what was bound before and has no job by now
		p.clusters.Settle()
		p.rejoined = false
	}
	for again := true; again; {
		p.evictions = 0
		clear(p.closed)
		for i := range grants {
			p.offer(v, grants, i)
		}
		again = p.evictions > 0
	}
	for i := range grants {
		g := &grants[i]
		if !p.states[i].seated {
			p.refuse(v, g)
			p.close(v, g)
			continue
		}
		j, seats := v.Jobs[g.Job], p.lodgerOf(g.Job).seats
		if core.SameSeats(j.Seats, seats) {
			seats = j.Seats
		} else {
			p.seats = append(p.seats, seats...)
			seats = p.seats[len(p.seats)-len(seats) : len(p.seats) : len(p.seats)]
		}
		p.placed = append(p.placed, core.Placement{Job: g.Job, Seats: seats, Evicted: p.states[i].evicted && j.State == core.Running})
	}
	return core.Seating{Placed: p.placed, Unseated: p.unseated}, nil
}

// Standing is for ever. Given the same grants again all that was seated stays; and what was refused in the last pass, which took devices from nobody,
// finds no more of them.
func (p *cellular) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

// begin forgets the last answer, and takes devices from those who do not go on with them.
func (p *cellular) begin(v *core.View, grants []core.Grant) {
	p.round++
	p.seats, p.placed, p.unseated = p.seats[:0], p.placed[:0], p.unseated[:0]
	p.states = append(p.states[:0], make([]seatState, len(grants))...)
	for len(p.of) < len(v.Jobs) {
		p.of = append(p.of, seatOf{})
	}
	for i := range grants {
		of := &p.of[grants[i].Job]
		of.grant, of.round = int32(i), p.round
	}
	for at := len(p.jobs) - 1; at >= 0; at-- {
		e := &p.jobs[at]
		j := v.Job(e.job)
		if j == nil || p.of[e.job].round != p.round || !core.SameSeats(j.Seats, e.seats) ||
			!p.mayKeep(v, &grants[p.of[e.job].grant]) || p.tenant(j.JobSpec) != e.wanted {
			p.remove(at)
		}
	}
	if p.cluster != v.Cluster || p.healthChanges != v.HealthChanges {
		p.join(v)
	}
	if len(p.closed) != len(v.Cluster.Accelerators) {
		p.closed = make([]bool, len(v.Cluster.Accelerators))
		p.refused = make([]int, len(p.config.Tenants)*len(p.closed))
	}
	clear(p.refused)
}

// tenant is whose cells a job may use.
func (p *cellular) tenant(j *core.JobSpec) cells.Tenant {
	if j.BestEffort {
		return cells.Guest
	}
	of := &p.of[j.ID]
	if of.tenant == 0 {
		of.tenant = 2 + p.clusters.Tenant(j)
	}
	return of.tenant - 2
}

// mayKeep reports whether a granted job holds what it is granted, of devices that are usable and of a type that it may have.
func (p *cellular) mayKeep(v *core.View, g *core.Grant) bool {
	j := v.Jobs[g.Job]
	if j.Held == 0 || j.Held != g.Replicas || !seating.Within(v, g, j.Seats) {
		return false
	}
	for _, seat := range j.Seats {
		if seat.Devices&^v.Cluster.Nodes[seat.Node].Usable() != 0 {
			return false
		}
	}
	return true
}

// join takes note of the nodes, and binds the virtual cells as before.
func (p *cellular) join(v *core.View) {
	p.cluster, p.healthChanges = v.Cluster, v.HealthChanges
	bound := append(p.restored, p.clusters.Bindings()...)
	if !p.clusters.Join(v.Cluster) {
		return
	}
	p.restored = nil
	for _, b := range bound {
		_ = p.clusters.Bind(b) // one that there is no more is bound to another
	}
	jobs := p.jobs
	p.jobs = nil
	for i := range jobs {
		p.of[jobs[i].job].at = 0
	}
	for i := range jobs {
		p.adopt(jobs[i].job, jobs[i].wanted, jobs[i].seats)
	}
	p.rejoined = true
}

// keepOrAdopt keeps the seats of a job that goes on.
func (p *cellular) keepOrAdopt(v *core.View, g *core.Grant) {
	of := &p.of[g.Job]
	if of.at == 0 {
		if !p.mayKeep(v, g) {
			return
		}
		p.adopt(g.Job, p.tenant(v.Jobs[g.Job].JobSpec), v.Jobs[g.Job].Seats)
	}
	p.states[of.grant].seated = true
	p.settle(v, g)
}

// settle says whether a guest can be sent away.
func (p *cellular) settle(v *core.View, g *core.Grant) {
	e := p.lodgerOf(g.Job)
	if stays := e.tenant == cells.Guest && (g.Blocking || v.Jobs[g.Job].Pinned); stays != e.stays {
		e.stays = stays
		p.clusters.Stay(e.seats, stays)
	}
}

// adopt notes that a job has devices: cells of its tenant if they can be, and otherwise as a guest.
func (p *cellular) adopt(job core.JobID, wanted cells.Tenant, seats []core.Seat) {
	tenant := wanted
	if tenant == cells.Guest || !p.clusters.Adopt(tenant, seats) {
		tenant = cells.Guest
		p.clusters.Lodge(seats)
	}
	p.add(lodger{job: job, wanted: wanted, tenant: tenant, seats: slices.Clone(seats)})
}

func (p *cellular) add(e lodger) {
	p.jobs = append(p.jobs, e)
	p.of[e.job].at = int32(len(p.jobs))
}

func (p *cellular) lodgerOf(job core.JobID) *lodger { return &p.jobs[p.of[job].at-1] }

// remove takes the devices of a lodger.
func (p *cellular) remove(at int) {
	clear(p.refused)
	e := &p.jobs[at]
	if e.tenant != cells.Guest {
		p.clusters.Leave(e.tenant, e.seats)
	} else {
		if e.stays {
			p.clusters.Stay(e.seats, false)
		}
		p.clusters.Depart(e.seats)
	}
	p.of[e.job].at = 0
	last := len(p.jobs) - 1
	if at != last {
		p.jobs[at] = p.jobs[last]
		p.of[p.jobs[at].job].at = int32(at + 1)
	}
	p.jobs[last] = lodger{}
	p.jobs = p.jobs[:last]
}

// offer seats a grant that has no seats yet, if it can.
func (p *cellular) offer(v *core.View, grants []core.Grant, i int) {
	g := &grants[i]
	if p.states[i].seated {
		return
	}
	j := v.Jobs[g.Job]
	tenant := p.tenant(j.JobSpec)
	for t := range p.closed {
		id := core.AcceleratorID(t)
		if !seating.Eligible(v, j, g, id) || p.closed[t] && j.State != core.Running {
			continue
		}
		if p.seat(v, grants, i, tenant, id) {
			p.states[i].seated = true
			p.settle(v, g)
			return
		}
	}
	if tenant == cells.Guest && p.mix(v, g) {
		p.states[i].seated = true
		p.settle(v, g)
		return
	}
	p.close(v, g)
}

// mix seats a guest that is too large for any one type on several, if its job mixes them.
func (p *cellular) mix(v *core.View, g *core.Grant) bool {
	j := v.Jobs[g.Job]
	if !j.MixesTypes {
		return false
	}
	alone := *j.JobSpec
	alone.MixesTypes = false
	if g.Replicas <= v.Cluster.CapacityFor(&alone) {
		return false
	}
	var seats []core.Seat
	left := g.Replicas
	for t := range p.closed {
		id := core.AcceleratorID(t)
		if seating.Eligible(v, j, g, id) && (!p.closed[t] || j.State == core.Running) {
			n := min(left, p.clusters.Unused(id))
			seats, _ = p.clusters.Host(id, n, seats)
			left -= n
		}
	}
	if left > 0 {
		p.clusters.Depart(seats)
		return false
	}
	p.add(lodger{job: g.Job, wanted: cells.Guest, tenant: cells.Guest, seats: seats})
	return true
}

// close keeps the types that a blocking grant without seats could use from the jobs behind it.
func (p *cellular) close(v *core.View, g *core.Grant) {
	for t := range p.closed {
		p.closed[t] = p.closed[t] || g.Blocking && seating.Eligible(v, v.Jobs[g.Job], g, core.AcceleratorID(t))
	}
}

func (p *cellular) seat(v *core.View, grants []core.Grant, i int, tenant cells.Tenant, t core.AcceleratorID) bool {
	g := &grants[i]
	if tenant == cells.Guest {
		seats, ok := p.clusters.Host(t, g.Replicas, nil)
		if ok {
			p.add(lodger{job: g.Job, wanted: tenant, tenant: tenant, seats: seats})
		}
		return ok
	}
	var seats []core.Seat
	least, ok := &p.refused[int(tenant)*len(p.closed)+int(t)], false
	if *least == 0 || g.Replicas < *least {
		if seats, ok = p.clusters.Seat(tenant, t, g.Replicas, p.config.Strict, nil); !ok {
			*least = g.Replicas
		}
	}
	if !ok && p.config.Inside == insideOrder && p.clusters.Devices(tenant, t) >= g.Replicas {
		seats, ok = p.preempt(v, grants, i, tenant, t)
	}
	if !ok {
		return false
	}
	p.sendAway(seats)
	p.add(lodger{job: g.Job, wanted: tenant, tenant: tenant, seats: seats})
	return true
}

// sendAway takes their devices from the guests on seats.
func (p *cellular) sendAway(seats []core.Seat) {
	used := p.clusters.OpportunisticSeats(seats, nil)
	if len(used) == 0 {
		return
	}
	for at := len(p.jobs) - 1; at >= 0; at-- {
		if e := &p.jobs[at]; e.tenant == cells.Guest && overlap(e.seats, used) {
			p.evict(at)
		}
	}
}

func (p *cellular) evict(at int) {
	p.states[p.of[p.jobs[at].job].grant] = seatState{evicted: true}
	p.evictions++
	p.remove(at)
}

// preempt seats a job on devices of later ones of its tenant, the last ones first. Where all are not enough they keep theirs.
func (p *cellular) preempt(v *core.View, grants []core.Grant, i int, tenant cells.Tenant, t core.AcceleratorID) ([]core.Seat, bool) {
	bound, before := p.clusters.Bindings(), len(p.jobs)
	var gone []lodger
	for k := len(grants) - 1; k > i; k-- {
		g := &grants[k]
		if !p.states[k].seated || g.Blocking || v.Jobs[g.Job].Pinned {
			continue
		}
		if e := *p.lodgerOf(g.Job); e.tenant == tenant && v.Cluster.Nodes[e.seats[0].Node].Accelerator == t {
			gone = append(gone, e)
			p.remove(int(p.of[g.Job].at) - 1)
			if seats, ok := p.clusters.Seat(tenant, t, grants[i].Replicas, p.config.Strict, nil); ok {
				for _, e := range gone {
					p.states[p.of[e.job].grant] = seatState{evicted: true}
				}
				p.evictions += len(gone)
				return seats, true
			}
		}
	}
	if len(p.jobs) == before {
		return nil, false
	}
	for _, b := range bound {
		_ = p.clusters.Bind(b) // that which is still bound stays
	}
	for _, e := range slices.Backward(gone) {
		p.adopt(e.job, e.wanted, e.seats)
	}
	return nil, false
}

func overlap(a, b []core.Seat) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Node == y.Node && x.Devices&y.Devices != 0 {
				return true
			}
		}
	}
	return false
}

// refuse answers a grant with the reason why it has no seats.
func (p *cellular) refuse(v *core.View, g *core.Grant) {
	j := v.Jobs[g.Job]
	tenant := p.tenant(j.JobSpec)
	verdict := core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.AcceleratorMissing, Wanted: float64(g.Replicas), Unit: "devices"}
	available, most, suited, open := 0, 0, false, false
	for t := range p.closed {
		id := core.AcceleratorID(t)
		if !seating.Eligible(v, j, g, id) || !p.clusters.Carried(id) {
			continue
		}
		idle := 0
		if tenant == cells.Guest {
			idle = p.clusters.Unused(id)
		} else {
			idle = p.clusters.Idle(tenant, id)
			most = max(most, p.clusters.Devices(tenant, id))
		}
		suited = true
		available = max(available, idle)
		open = open || idle >= g.Replicas && (!p.closed[t] || j.State == core.Running)
	}
	switch {
	case !suited:
	case tenant != cells.Guest && g.Replicas > most:
		verdict.Reason, verdict.Message = core.QuotaExceeded, "the job is larger than the virtual cluster of its tenant"
		available = most
	case available < g.Replicas:
		verdict.Reason = core.WaitingForDevices
	case !open:
		verdict.Reason = core.BlockedByEarlier
	default:
		verdict.Reason = core.Fragmented
		if tenant != cells.Guest {
			verdict.Message = "the idle cells of its tenant are in pieces, or there are not enough sound ones"
		}
	}
	verdict.Available = float64(available)
	p.unseated = append(p.unseated, verdict)
}

// Snapshot is which virtual cells are bound where.
func (p *cellular) Snapshot() ([]byte, error) {
	bound := p.clusters.Bindings()
	if bound == nil {
		bound = p.restored
	}
	return json.Marshal(bound)
}

// Restore binds them again. Cells that there are no more are bound anew.
func (p *cellular) Restore(learned []byte) error {
	var bound []cells.CellBinding
	if err := json.Unmarshal(learned, &bound); err != nil {
		return fmt.Errorf("read which cells are bound: %w", err)
	}
	p.restored = bound
	return nil
}
