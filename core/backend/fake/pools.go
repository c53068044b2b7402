package fake

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// node is a node as it is. The pipeline learns of it by events.
type node struct {
	core.Node
	used core.DeviceSet

	readyAt float64 // of one that is being provisioned: when it is ready, or known not to come
	fails   bool    // it does not come
	life    float64 // from when it is ready until it is taken away; +Inf for ever
	leaves  bool    // a scaler let it go, or it is about to be taken away

	noticeAt, takenAt, expiresAt float64 // +Inf for never; the last one is when its drain has taken too long
}

// pools are what a backend remembers of them.
type pools struct {
	round int            // the last one whose sizes were taken in
	named map[string]int // by pool: how many nodes were named
	first []core.Node    // that the run began with
	seen  backend.Membership
}

// free reports whether a node has devices that nobody uses.
func (n *node) free(d core.DeviceSet) bool {
	return d&^core.FirstDevices(n.Devices) == 0 && n.used&d == 0
}

// openPools takes in the nodes that a run begins with.
func (b *Backend) openPools() {
	b.pools.named, b.pools.first = map[string]int{}, slices.Clone(b.cluster.Nodes)
	for i := range b.cluster.Nodes {
		n := newNode(b.cluster.Nodes[i])
		if n.Pool != "" {
			b.pools.named[n.Pool]++
			b.drawFate(n)
			b.live(n)
		}
		b.nodes = append(b.nodes, n)
	}
	b.meet(b.cluster)
}

// meet takes in the cluster of a pipeline that knows of no round yet.
func (b *Backend) meet(c *core.Cluster) {
	b.cluster = c
	backend.DescribePools(c, b.options.Pools)
	b.pools.seen = backend.Membership{}
	b.pools.seen.Begin(&core.Cluster{Nodes: b.pools.first})
	b.pools.seen.Grow(c)
}

func newNode(n core.Node) *node {
	never := math.Inf(1)
	return &node{Node: n, life: never, noticeAt: never, takenAt: never, expiresAt: never}
}

// drawFate draws what becomes of a node, which depends on nothing but the seed and its name.
func (b *Backend) drawFate(n *node) {
	w := backend.PoolOf(b.options.Pools, n.Pool)
	rand := core.NewRand(b.options.Seed, "pools/"+n.Name)
	n.readyAt = b.clock + w.Provisioning.Seconds() + rand.Float64()*w.Spread.Seconds()
	n.fails = rand.Float64() < w.Fails
	if life := rand.ExpFloat64(); w.Evictions > 0 {
		n.life = life * w.Evictions.Seconds()
	}
}

// live says when a node that is ready now is taken away.
func (b *Backend) live(n *node) {
	w := backend.PoolOf(b.options.Pools, n.Pool)
	n.takenAt = b.clock + n.life
	n.noticeAt = max(n.takenAt-w.Notice.Seconds(), b.clock)
}

// Scale has nodes join and leave.
func (b *Backend) Scale(_ context.Context, round int, targets []core.PoolTarget) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.journal.Replaying() || round <= b.pools.round {
		return nil
	}
	for i := range targets {
		if b.cluster.Pool(targets[i].Pool) == nil {
			return fmt.Errorf("scale pool %q, which there is not", targets[i].Pool)
		}
	}
	b.pools.round = round
	for i := range targets {
		t := &targets[i]
		size := b.size(t.Pool)
		for ; size < t.Nodes; size++ {
			b.request(b.cluster.Pool(t.Pool))
		}
		for _, id := range t.Remove[:min(max(size-t.Nodes, 0), len(t.Remove))] {
			b.retire(b.nodes[id])
		}
	}
	b.removeEmpty()
	return nil
}

// size is how many nodes a pool has or gets, without those that leave.
func (b *Backend) size(pool string) int {
	size := 0
	for _, n := range b.nodes {
		if n.Pool == pool && !n.leaves && n.Health != core.Gone && n.Health != core.Draining {
			size++
		}
	}
	return size
}

// request has a node join a pool.
func (b *Backend) request(p *core.Pool) {
	w := backend.PoolOf(b.options.Pools, p.Name)
	n := newNode(core.Node{
		ID: core.NodeID(len(b.nodes)), Name: fmt.Sprintf("%s-%d", p.Name, b.pools.named[p.Name]), Accelerator: p.Accelerator, Devices: p.Devices,
		CPUs: p.CPUs, MemoryGB: p.MemoryGB, Pool: p.Name, Health: core.Provisioning, ExpectedSeconds: b.clock + w.Expected().Seconds(),
	})
	b.pools.named[p.Name]++
	b.drawFate(n)
	b.nodes = append(b.nodes, n)
	b.enqueue(core.Event{Kind: core.NodeAdded, AtSeconds: b.clock, Node: n.ID, Added: &core.AddedNode{
		Name: n.Name, Accelerator: b.cluster.Accelerators[n.Accelerator], Devices: n.Devices, CPUs: n.CPUs, MemoryGB: n.MemoryGB, Pool: n.Pool,
		Health: n.Health, ExpectedSeconds: n.ExpectedSeconds,
	}})
}

// retire has a node leave once no job is on it, or at once when it is not there yet.
func (b *Backend) retire(n *node) {
	switch {
	case n.leaves || n.Health == core.Gone:
	case n.Health == core.Provisioning:
		b.remove(n)
	default:
		n.leaves = true
		b.become(n, core.Draining)
		if w := backend.PoolOf(b.options.Pools, n.Pool); w.DrainTimeout > 0 {
			n.expiresAt = b.clock + w.DrainTimeout.Seconds()
		}
	}
}

// become tells the health of a node where that changes.
func (b *Backend) become(n *node, h core.Health) {
	if n.Health != h {
		n.Health = h
		b.enqueue(core.Event{Kind: core.NodeChanged, AtSeconds: b.clock, Node: n.ID, Health: h})
	}
}

func (b *Backend) remove(n *node) {
	n.Health = core.Gone
	b.enqueue(core.Event{Kind: core.NodeRemoved, AtSeconds: b.clock, Node: n.ID})
}

// interruptOn takes a node away from its jobs.
func (b *Backend) interruptOn(n *node, cause core.Cause) {
	for _, j := range b.jobs {
		if slices.ContainsFunc(j.seats, func(s core.Seat) bool { return s.Node == n.ID }) {
			b.interrupt(j, b.clock, cause)
		}
	}
}

// nextOfNodes is when something becomes of a node of a pool next.
func (b *Backend) nextOfNodes() float64 {
	at := math.Inf(1)
	for _, n := range b.nodes {
		switch {
		case n.Pool == "" || n.Health == core.Gone:
		case n.Health == core.Provisioning:
			at = min(at, n.readyAt)
		case n.leaves:
			at = min(at, n.takenAt, n.expiresAt)
		default:
			at = min(at, n.noticeAt, n.takenAt)
		}
	}
	return at
}

// turnNodes lets nodes come, and takes those away whose time is over.
func (b *Backend) turnNodes() {
	for _, n := range b.nodes {
		switch now := b.clock; {
		case n.Pool == "" || n.Health == core.Gone:
		case n.Health == core.Provisioning && now < n.readyAt:
		case n.Health == core.Provisioning && n.fails:
			b.remove(n)
		case n.Health == core.Provisioning:
			b.become(n, core.Ready)
			b.live(n)
			b.lastWork = now
		case now >= n.takenAt:
			b.interruptOn(n, core.CauseNodeFailed)
			b.remove(n)
		case now >= n.expiresAt:
			b.interruptOn(n, core.CauseNodeDrained)
			b.remove(n)
		case now >= n.noticeAt && !n.leaves:
			n.leaves = true
			if n.Health == core.Ready {
				b.become(n, core.Draining)
			}
		}
	}
}

// removeEmpty takes the nodes away that are to leave and on which no job is any more. One that is about to be taken away stays until
// then.
func (b *Backend) removeEmpty() {
	for _, n := range b.nodes {
		if n.leaves && n.used == 0 && n.Health != core.Gone && b.clock < n.noticeAt {
			b.remove(n)
		}
	}
}

// show tells the cluster of the pipeline whether it may grow, as of what the pipeline is told.
func (b *Backend) show(events []core.Event) {
	b.pools.seen.Take(events)
	b.pools.seen.Grow(b.cluster)
}
