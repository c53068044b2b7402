package metrics

import (
	"maps"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// PoolUse is what a pool was, and what it cost. A node is paid for from the moment that it is ready until it is gone, whatever is on it.
type PoolUse struct {
	Pool          string `json:"pool"`            // name of the pool
	MostNodes     int    `json:"most_nodes"`      // that were paid for at once
	Changes       int    `json:"changes"`         // how often nodes joined or left
	NodeHours     Number `json:"node_hours"`      // hours of nodes that were paid for
	IdleNodeHours Number `json:"idle_node_hours"` // of those, the part of devices that no job held
	Cost          Number `json:"cost"`            // price of all node hours, in the currency of the config
	IdleCost      Number `json:"idle_cost"`       // of that; the rest is that of jobs
}

// Bill is what all pools came to: what their nodes cost, and what of that no job held. The rest is the costs of the jobs.
type Bill struct {
	NodeHours     Number `json:"node_hours"`      // hours of nodes that were paid for, over all pools
	IdleNodeHours Number `json:"idle_node_hours"` // of those, the part of devices that no job held
	Cost          Number `json:"cost"`            // price of all node hours, in the currency of the config
	IdleCost      Number `json:"idle_cost"`       // of that, the part that no job used
}

// bill says which nodes of pools are paid for, and which devices of theirs jobs hold. It follows events and changes only.
type bill struct {
	pools []poolBill
	nodes []billed // by NodeID
	jobs  map[core.JobID]holding
	turns bool        // jobs take turns on devices: those on one pay for it alike
	costs []float64   // by JobID: of what it held so far
	began bool        // the nodes are entered that there were at first
	first []core.Node // the nodes when the bill was begun
}

type poolBill struct {
	pool                 core.Pool
	ready, most, changes int
	paid, held           amount // of what was paid for, held is the part of devices that jobs had
}

// amount is of nodes over time.
type amount struct{ nodeSeconds, cost float64 }

// add counts a part of a node of a pool between two moments, and returns what it cost.
func (a *amount) add(p *core.Pool, from, to, part float64) float64 {
	cost := p.Cost(from, to) * part
	a.nodeSeconds += (to - from) * part
	a.cost += cost
	return cost
}

// billed is a node of a pool.
type billed struct {
	pool    int // -1 for none
	devices int
	from    float64 // when it was ready; NaN while it is not
	owners  []int   // by device: the jobs that take turns on it; nil where jobs take none
}

// holding is what a job has of nodes, of each device this part, and since when that is not entered yet.
type holding struct {
	seats []core.Seat
	part  float64
	since float64
}

func newBill(c *core.Cluster) *bill {
	b := &bill{jobs: map[core.JobID]holding{}, first: slices.Clone(c.Nodes), turns: c.Sharing == core.TimeSlice}
	for i := range c.Pools {
		b.pools = append(b.pools, poolBill{pool: c.Pools[i]})
	}
	return b
}

func (b *bill) enter(n *core.Node, at float64) {
	is := billed{pool: slices.IndexFunc(b.pools, func(p poolBill) bool { return p.pool.Name == n.Pool }), devices: n.Devices, from: math.NaN()}
	if b.turns {
		is.owners = make([]int, n.Devices)
	}
	b.nodes = append(b.nodes, is)
	if n.Health != core.Provisioning && n.Health != core.Gone {
		b.ready(n.ID, at)
	}
}

func (b *bill) ready(id core.NodeID, at float64) {
	n := &b.nodes[id]
	if n.pool < 0 || !math.IsNaN(n.from) {
		return
	}
	n.from = at
	p := &b.pools[n.pool]
	if p.ready++; b.began {
		p.changes++
	}
	p.most = max(p.most, p.ready)
}

func (b *bill) gone(id core.NodeID, at float64) {
	n := &b.nodes[id]
	if n.pool < 0 || math.IsNaN(n.from) {
		return
	}
	for _, job := range slices.Sorted(maps.Keys(b.jobs)) { // whatever they are told later
		if h := b.jobs[job]; slices.ContainsFunc(h.seats, func(seat core.Seat) bool { return seat.Node == id }) {
			b.hold(job, slices.DeleteFunc(slices.Clone(h.seats), func(seat core.Seat) bool { return seat.Node == id }), h.part, at)
		}
	}
	p := &b.pools[n.pool]
	p.paid.add(&p.pool, n.from, at, 1)
	p.ready--
	p.changes++
	n.from = math.NaN()
}

// follow enters what happened up to a round, then what the round changed.
func (b *bill) follow(r *core.Report) {
	added := map[core.NodeID]bool{}
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == core.NodeAdded {
			added[e.Node] = true
		}
	}
	for id := len(b.nodes); id < len(r.View.Cluster.Nodes) && !added[core.NodeID(id)]; id++ {
		n := r.View.Cluster.Nodes[id]
		if n.Health == core.Gone && wasReady(n.ID, r.Events) {
			n.Health = core.Ready
		}
		b.enter(&n, 0)
	}
	b.began = true
	for i := range r.Events {
		switch e := &r.Events[i]; e.Kind {
		case core.NodeAdded:
			b.enter(&core.Node{ID: e.Node, Pool: e.Added.Pool, Devices: e.Added.Devices, Health: e.Added.Health}, e.AtSeconds)
		case core.NodeChanged:
			if int(e.Node) < len(b.nodes) && e.Health == core.Ready {
				b.ready(e.Node, e.AtSeconds)
			}
		case core.NodeRemoved:
			if int(e.Node) < len(b.nodes) {
				b.gone(e.Node, e.AtSeconds)
			}
		case core.JobFinished, core.JobFailed, core.JobCancelled, core.JobInterrupted:
			b.hold(e.Job, nil, 0, e.AtSeconds)
		case core.JobShrunk:
			b.hold(e.Job, e.Seats, b.jobs[e.Job].part, e.AtSeconds)
		case core.JobSubmitted:
			if e.Held != nil {
				b.hold(e.Job, e.Held.Seats, partOf(r.View, e.Job, e.Spec), e.AtSeconds)
			}
		}
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == core.JobChanged {
			b.parted(r.View, e.Job)
		}
	}
	if r.Resumed != nil { // by others, who may share devices in another way
		for _, id := range slices.Sorted(maps.Keys(b.jobs)) {
			b.parted(r.View, id)
		}
	}
	for i := range r.Changes {
		switch c := &r.Changes[i]; c.Action {
		case core.Start, core.Move:
			b.hold(c.Job, c.Seats, partOf(r.View, c.Job, nil), r.View.NowSeconds)
		case core.Stop, core.Discard, core.Finish, core.Pause:
			b.hold(c.Job, nil, 0, r.View.NowSeconds)
		}
	}
}

// wasReady reports whether a node that the first round knows as gone was there when the run began: what it was told first of it is
// not that it is ready.
func wasReady(id core.NodeID, events []core.Event) bool {
	for i := range events {
		if e := &events[i]; e.Kind.OfNode() && e.Node == id {
			return e.Kind == core.NodeRemoved || e.Health != core.Ready
		}
	}
	return false
}

// parted has a job have from now on the part of its devices that the view says.
func (b *bill) parted(v *core.View, id core.JobID) {
	if j, had := v.Job(id), b.jobs[id]; j != nil && len(had.seats) > 0 && j.Part() != had.part {
		b.hold(id, had.seats, j.Part(), v.NowSeconds)
	}
}

// partOf is the part that a job has of each of its devices: as the view has it, or as the cluster gives it to one that the view does not know any more; all
// of it where its specification is not known either.
func partOf(v *core.View, id core.JobID, spec *core.JobSpec) float64 {
	if j := v.Job(id); j != nil {
		return j.Part()
	}
	if spec == nil {
		return 1
	}
	return v.Cluster.Part(spec)
}

// hold ends what a job had at a moment, and gives it a part of other seats.
func (b *bill) hold(id core.JobID, seats []core.Seat, part, at float64) {
	if b.turns {
		b.settleBeside(id, seats, at)
	}
	had := b.jobs[id]
	b.settle(id, at)
	b.own(had, -1)
	if len(seats) == 0 {
		delete(b.jobs, id)
		return
	}
	b.jobs[id] = holding{slices.Clone(seats), part, at}
	b.own(b.jobs[id], 1)
}

// settleBeside enters what those have had up to a moment that share devices with a job, or will.
func (b *bill) settleBeside(id core.JobID, seats []core.Seat, at float64) {
	meets := func(other []core.Seat, seats []core.Seat) bool {
		return slices.ContainsFunc(other, func(s core.Seat) bool {
			return slices.ContainsFunc(seats, func(t core.Seat) bool { return s.Node == t.Node && s.Devices&t.Devices != 0 })
		})
	}
	for _, other := range slices.Sorted(maps.Keys(b.jobs)) {
		if h := b.jobs[other]; other != id && (meets(h.seats, seats) || meets(h.seats, b.jobs[id].seats)) {
			b.settle(other, at)
		}
	}
}

// own counts a job in (1) or out (-1) on its devices, where jobs take turns.
func (b *bill) own(h holding, by int) {
	if !b.turns || h.part == 0 {
		return
	}
	for _, seat := range h.seats {
		for _, d := range seat.Devices.List() {
			b.nodes[seat.Node].owners[d] += by
		}
	}
}

// settle enters what a job has had up to a moment.
func (b *bill) settle(id core.JobID, at float64) {
	h := b.jobs[id]
	for _, seat := range h.seats {
		n := &b.nodes[seat.Node]
		if n.pool < 0 {
			continue
		}
		devices := float64(seat.Devices.Count())
		if b.turns {
			devices = 0
			for _, d := range seat.Devices.List() {
				devices += 1 / float64(max(n.owners[d], 1))
			}
		}
		p := &b.pools[n.pool]
		b.owe(id, p.held.add(&p.pool, h.since, at, h.part*devices/float64(n.devices)))
	}
	if h.seats != nil {
		h.since = at
		b.jobs[id] = h
	}
}

// owe adds to what a job cost.
func (b *bill) owe(id core.JobID, cost float64) {
	for len(b.costs) <= int(id) {
		b.costs = append(b.costs, 0)
	}
	b.costs[id] += cost
}

// cost is what the devices of a job cost.
func (b *bill) cost(id core.JobID) float64 {
	if b == nil || int(id) >= len(b.costs) {
		return 0
	}
	return b.costs[id]
}

// clone is a copy that goes its own way.
func (b *bill) clone() *bill {
	if b == nil {
		return nil
	}
	copied := *b
	copied.pools, copied.nodes, copied.costs, copied.jobs = slices.Clone(b.pools), slices.Clone(b.nodes), slices.Clone(b.costs), maps.Clone(b.jobs)
	for i := range copied.nodes {
		copied.nodes[i].owners = slices.Clone(copied.nodes[i].owners)
	}
	return &copied
}

// ended is a copy in which all that is still there ends at a moment.
func (b *bill) ended(at float64) *bill {
	if b == nil {
		return nil
	}
	b = b.clone()
	if !b.began { // no round was held
		for i := range b.first {
			b.enter(&b.first[i], 0)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.jobs)) {
		b.hold(id, nil, 0, at)
	}
	for id := range b.nodes {
		if n := &b.nodes[id]; n.pool >= 0 && !math.IsNaN(n.from) {
			p := &b.pools[n.pool]
			p.paid.add(&p.pool, n.from, at, 1)
		}
	}
	return b
}

// use is what pools came to, each and all together.
func (b *bill) use() (list []PoolUse, all *Bill) {
	if b == nil {
		return nil, nil
	}
	all = &Bill{}
	for i := range b.pools {
		p := &b.pools[i]
		u := PoolUse{
			Pool: p.pool.Name, MostNodes: p.most, Changes: p.changes,
			NodeHours: Number(p.paid.nodeSeconds / 3600), IdleNodeHours: Number(idle(p.paid.nodeSeconds, p.held.nodeSeconds) / 3600),
			Cost: Number(p.paid.cost), IdleCost: Number(idle(p.paid.cost, p.held.cost)),
		}
		list = append(list, u)
		all.NodeHours, all.IdleNodeHours = all.NodeHours+u.NodeHours, all.IdleNodeHours+u.IdleNodeHours
		all.Cost, all.IdleCost = all.Cost+u.Cost, all.IdleCost+u.IdleCost
	}
	return list, all
}

// idle is what is left of what was paid for. Less than nothing, but for what rounding loses, is told: it is a bill that does not add up.
func idle(paid, held float64) float64 {
	left := paid - held
	if left < 0 && -left <= 1e-9*held {
		return 0
	}
	return left
}
