package sim

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// Pool is what it takes for nodes of a pool to come and go.
type Pool = backend.Pool

// pools is how nodes come and go.
type pools struct {
	worlds   []Pool // by pool of the cluster
	names    []int  // by pool: how many nodes were named
	retiring []core.NodeID
	expires  map[core.NodeID]float64 // when a node that is to leave has drained for too long
	rand     *stream

	// What decides whether a run waits in vain.
	asks     int     // how often nodes were asked for since a job came further, or was submitted
	priced   float64 // moment of the last price
	cooling  float64 // the longest time, in seconds, until a pool may grow again
	awaited  float64 // until when there is hope of a node that was asked for in time and will come
	hopeless bool    // the run ended because of asks, or of churn
}

// mostAsks is how often nodes of pools may be asked for while no job comes further. Where one of a thousand comes, that many fail in a row
// in less than one case of a hundred.
const mostAsks = 5000

// openPools is for a simulator whose nodes are known.
func (s *Simulator) openPools() {
	backend.DescribePools(s.seen, s.config.Pools)
	p := &s.pools
	p.expires = map[core.NodeID]float64{}
	p.worlds, p.names = make([]Pool, len(s.cluster.Pools)), make([]int, len(s.cluster.Pools))
	for i := range s.cluster.Pools {
		pool := &s.cluster.Pools[i]
		for _, later := range pool.Prices {
			p.priced = max(p.priced, later.FromSeconds)
		}
		p.cooling = max(p.cooling, pool.UpCooldownSeconds)
		name := pool.Name
		p.worlds[i] = backend.PoolOf(s.config.Pools, name)
		for k := range s.cluster.Nodes {
			if s.cluster.Nodes[k].Pool == name {
				p.names[i]++
				s.evict(core.NodeID(k), &p.worlds[i], 0)
			}
		}
	}
}

// late reports whether the time is up, at a moment, in which a job is to come further. It begins anew when a price changes, for a scaler may
// have waited for that.
func (s *Simulator) late(at float64) bool {
	return at-max(s.advanced, s.pools.priced) > s.config.StallAfter.Seconds()+s.pools.cooling
}

// inVain reports whether the time of a run is up at a moment, and nothing to come of the nodes that were asked for in time, or too many were, or too many
// rounds changed who has devices.
func (s *Simulator) inVain(at float64) bool {
	return s.late(at) && at > s.pools.awaited || s.pools.asks > mostAsks || s.churned > mostChurned
}

// came notes that a job came further, or was submitted, at a moment.
func (s *Simulator) came(at float64) {
	s.advanced, s.pools.asks, s.churned = max(s.advanced, at), 0, 0
}

// mostChurned is how many rounds may start, stop, move or resize jobs while none comes further. A change that leads to something needs a few.
const mostChurned = 100_000

// GaveUpReason says why a run ended in which nodes of pools were asked for, or jobs given devices, all the time; "" for any other.
func (s *Simulator) GaveUpReason() string {
	switch {
	case !s.pools.hopeless:
		return ""
	case s.churned > mostChurned:
		return fmt.Sprintf("jobs were given devices in %d rounds, and none came further, for what interrupts them comes sooner than they start or reach a checkpoint: the run is over at %s",
			s.churned, core.FormatDuration(time.Duration(s.now)*time.Second))
	}
	return fmt.Sprintf("nodes of pools were asked for %d times while no job came further: the run is over at %s", s.pools.asks, core.FormatDuration(time.Duration(s.now)*time.Second))
}

// mayGrow reports whether nodes may still join.
func (s *Simulator) mayGrow() bool {
	return s.grows || len(s.nodes.joining) > 0 || slices.ContainsFunc(s.cluster.Pools, func(p core.Pool) bool { return s.size(p.Name) < p.Max })
}

// size is how many nodes a pool has or gets, without those that leave.
func (s *Simulator) size(pool string) int {
	size := 0
	for i := range s.nodes.planned {
		if h := s.nodes.planned[i]; h != core.Gone && h != core.Draining && s.poolOf(core.NodeID(i)) == pool {
			size++
		}
	}
	return size
}

// poolOf is the pool of a node, which may be yet to join.
func (s *Simulator) poolOf(id core.NodeID) string {
	if int(id) < len(s.cluster.Nodes) {
		return s.cluster.Nodes[id].Pool
	}
	return s.nodes.joining[int(id)-len(s.cluster.Nodes)].Pool
}

// Scale has nodes join and leave.
func (s *Simulator) Scale(_ context.Context, _ int, targets []core.PoolTarget) error {
	for i := range targets {
		t := &targets[i]
		at := slices.IndexFunc(s.cluster.Pools, func(p core.Pool) bool { return p.Name == t.Pool })
		if at < 0 {
			return fmt.Errorf("scale pool %q, which there is not", t.Pool)
		}
		size := s.size(t.Pool)
		if size < t.Nodes {
			s.pools.asks++
		}
		for ; size < t.Nodes; size++ {
			s.request(at)
		}
		for _, id := range t.Remove[:min(max(size-t.Nodes, 0), len(t.Remove))] {
			s.retire(id, &s.pools.worlds[at])
		}
	}
	s.seen.MayGrow = s.mayGrow()
	return nil
}

// request has a node join a pool, the next one by its id.
func (s *Simulator) request(pool int) {
	p, w, e := &s.cluster.Pools[pool], &s.pools.worlds[pool], &s.nodes
	id := core.NodeID(len(e.planned))
	e.joining = append(e.joining, core.AddedNode{
		Name: fmt.Sprintf("%s-%d", p.Name, s.pools.names[pool]), Accelerator: s.cluster.Accelerators[p.Accelerator],
		Devices: p.Devices, CPUs: p.CPUs, MemoryGB: p.MemoryGB, DeviceMemoryGB: p.DeviceMemoryGB, Pool: p.Name, ExpectedSeconds: s.now + w.Expected().Seconds(),
	})
	s.pools.names[pool]++
	e.planned, e.failed, e.told = append(e.planned, core.Provisioning), append(e.failed, false), append(e.told, absent)
	ready := s.now + w.Provisioning.Seconds()
	if w.Spread > 0 {
		ready += s.random().Float64() * w.Spread.Seconds()
	}
	e.insert(nodeEvent{at: s.now, node: id, to: core.Provisioning})
	if w.Fails > 0 && s.random().Float64() < w.Fails {
		e.insert(nodeEvent{at: ready, node: id, to: core.Gone})
		return
	}
	e.insert(nodeEvent{at: ready, node: id, to: core.Ready})
	if !s.late(s.now) || s.works(s.now) {
		s.pools.awaited = max(s.pools.awaited, ready+s.config.StallAfter.Seconds())
	}
	s.evict(id, w, ready)
	if e.mtbf > 0 {
		e.chance = append(e.chance, nodeEvent{at: ready + e.rand.ExpFloat64()*e.mtbf, node: id, to: core.Down})
		heap.Init(&e.chance)
	}
}

// evict schedules that a node, ready from a moment on, is taken away.
func (s *Simulator) evict(id core.NodeID, w *Pool, ready float64) {
	if w.Evictions <= 0 {
		return
	}
	at := ready + s.random().ExpFloat64()*w.Evictions.Seconds()
	if w.Notice > 0 {
		s.nodes.insert(nodeEvent{at: max(ready, at-w.Notice.Seconds()), node: id, to: core.Draining})
	}
	s.nodes.insert(nodeEvent{at: at, node: id, to: core.Gone})
}

// retire has a node leave once no job is on it, or at once when it is not there yet.
func (s *Simulator) retire(id core.NodeID, w *Pool) {
	e := &s.nodes
	if e.planned[id] == core.Provisioning {
		e.schedule = slices.DeleteFunc(e.schedule, func(n nodeEvent) bool { return n.node == id && n.at > s.now })
		e.insert(nodeEvent{at: s.now, node: id, to: core.Gone})
		e.planned[id] = core.Gone
		return
	}
	e.planned[id] = core.Draining
	e.insert(nodeEvent{at: s.now, node: id, to: core.Draining})
	s.pools.retiring = append(s.pools.retiring, id)
	if w.DrainTimeout > 0 {
		s.pools.expires[id] = s.now + w.DrainTimeout.Seconds()
		e.insert(nodeEvent{at: s.pools.expires[id], node: id, to: core.Gone})
	}
}

// removeEmpty takes the nodes away that are to leave and on which no job is any more.
func (s *Simulator) removeEmpty(at float64) {
	s.pools.retiring = slices.DeleteFunc(s.pools.retiring, func(id core.NodeID) bool {
		on := func(seats []core.Seat) bool {
			return slices.ContainsFunc(seats, func(seat core.Seat) bool { return seat.Node == id })
		}
		if slices.ContainsFunc(s.running, func(j *simJob) bool { return on(j.seats) || on(j.held(at)) }) ||
			slices.ContainsFunc(s.leaving, func(l leaving) bool { return on(l.seats) }) {
			return false
		}
		s.nodes.insert(nodeEvent{at: at, node: id, to: core.Gone})
		return true
	})
}

// insert schedules a change of a node of a pool behind those of its moment and node.
func (e *nodeEvents) insert(change nodeEvent) {
	change.ofPool = true
	at, _ := slices.BinarySearchFunc(e.schedule, change, func(a, b nodeEvent) int {
		if compareNodeEvents(a, b) <= 0 {
			return -1
		}
		return 1
	})
	e.schedule = slices.Insert(e.schedule, at, change)
}

func (s *Simulator) random() *stream {
	if s.pools.rand == nil {
		s.pools.rand = newStream(s.settings.Seed, s.settings.ID+"/pools")
	}
	return s.pools.rand
}

// checkPools refuses what does not go together with pools.
func (c *Config) checkPools() []error {
	problems := backend.CheckPools(c.Pools, func(string) bool { return false })
	for i := range c.Pools {
		if w := &c.Pools[i]; w.Fails == 1 && w.Provisioning > 0 && w.Provisioning < time.Second { // less is lost beside moments that are far from the first
			problems = append(problems, fmt.Errorf("pools[%d].fails: of nodes that come within a second not all can fail: the next one would be asked for at once, for ever", i))
		}
	}
	return problems
}

// checkPoolNames refuses pools that the cluster does not have, and what pools cannot go with.
func (c *Config) checkPoolNames(cluster *core.Cluster) core.Diagnostics {
	ds := backend.CheckPoolNames(c.Pools, cluster)
	if len(cluster.Pools) > 0 && len(c.JoiningNodes) > 0 {
		ds = append(ds, core.Diagnostic{Path: "joining_nodes", Summary: "cannot be used in a cluster with pools", Hint: "give them a pool, or let a pool start with them"})
	}
	if len(cluster.Pools) > 0 && c.Publication.byRounds() {
		ds = append(ds, core.Diagnostic{Path: "publication.progress", Summary: c.Publication.Progress + " knows no pools", Hint: "use exact"})
	}
	return ds
}
