package metrics

import (
	"maps"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// PoolUse is what a pool was, and what it cost. A node is paid for from the moment that it is ready until it is gone, whatever is on it.
type PoolUse struct {
	Pool          string `json:"pool"`
	MostNodes     int    `json:"most_nodes"` // that were paid for at once
	Changes       int    `json:"changes"`    // how often nodes joined or left
	NodeHours     Number `json:"node_hours"`
	IdleNodeHours Number `json:"idle_node_hours"` // of those, the part of devices that no job held
	Cost          Number `json:"cost"`
	IdleCost      Number `json:"idle_cost"` // of that; the rest is that of jobs
}

// bill says which nodes of pools are paid for, and which devices of theirs jobs hold. It follows events and changes only.
type bill struct {
	pools []poolBill
	nodes []billed // by NodeID
	jobs  map[core.JobID]holding
	began bool // the nodes are entered that there were at first
}

type poolBill struct {
	name                 string
	price                float64 // of a node hour
	ready, most, changes int
	nodeSeconds          float64
	heldPart             float64 // of those, by the devices that jobs held
}

// billed is a node of a pool.
type billed struct {
	pool    int // -1 for none
	devices int
	from    float64 // when it was ready; NaN while it is not
}

type holding struct {
	seats []core.Seat
	since float64
}

func newBill(c *core.Cluster) *bill {
	b := &bill{jobs: map[core.JobID]holding{}}
	for i := range c.Pools {
		b.pools = append(b.pools, poolBill{name: c.Pools[i].Name, price: c.Pools[i].PricePerHour})
	}
	return b
}

func (b *bill) enter(n *core.Node, at float64) {
	is := billed{pool: slices.IndexFunc(b.pools, func(p poolBill) bool { return p.name == n.Pool }), devices: n.Devices, from: math.NaN()}
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
	p := &b.pools[n.pool]
	p.nodeSeconds += at - n.from
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
		b.enter(&r.View.Cluster.Nodes[id], 0)
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
			b.hold(e.Job, nil, e.AtSeconds)
		case core.JobShrunk:
			b.hold(e.Job, e.Seats, e.AtSeconds)
		case core.JobSubmitted:
			if e.Held != nil {
				b.hold(e.Job, e.Held.Seats, e.AtSeconds)
			}
		}
	}
	for i := range r.Changes {
		switch c := &r.Changes[i]; c.Action {
		case core.Start, core.Move:
			b.hold(c.Job, c.Seats, r.View.NowSeconds)
		case core.Stop, core.Discard:
			b.hold(c.Job, nil, r.View.NowSeconds)
		}
	}
}

// hold ends what a job had at a moment, and gives it other seats.
func (b *bill) hold(id core.JobID, seats []core.Seat, at float64) {
	had := b.jobs[id]
	for _, seat := range had.seats {
		if n := &b.nodes[seat.Node]; n.pool >= 0 {
			b.pools[n.pool].heldPart += (at - had.since) * float64(seat.Devices.Count()) / float64(n.devices)
		}
	}
	if len(seats) == 0 {
		delete(b.jobs, id)
		return
	}
	b.jobs[id] = holding{slices.Clone(seats), at}
}

// clone is a copy that goes its own way.
func (b *bill) clone() *bill {
	if b == nil {
		return nil
	}
	return &bill{pools: slices.Clone(b.pools), nodes: slices.Clone(b.nodes), jobs: maps.Clone(b.jobs)}
}

// use is what pools came to up to a moment, at which all that is still there ends.
func (b *bill) use(at float64) (list []PoolUse) {
	if b == nil {
		return nil
	}
	b = b.clone()
	for _, id := range slices.Sorted(maps.Keys(b.jobs)) {
		b.hold(id, nil, at)
	}
	for id := range b.nodes {
		if n := &b.nodes[id]; n.pool >= 0 && !math.IsNaN(n.from) {
			b.pools[n.pool].nodeSeconds += at - n.from
		}
	}
	for i := range b.pools {
		p := &b.pools[i]
		idle := max(p.nodeSeconds-p.heldPart, 0)
		list = append(list, PoolUse{
			Pool: p.name, MostNodes: p.most, Changes: p.changes, NodeHours: Number(p.nodeSeconds / 3600), IdleNodeHours: Number(idle / 3600),
			Cost: Number(p.nodeSeconds / 3600 * p.price), IdleCost: Number(idle / 3600 * p.price),
		})
	}
	return list
}
