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
}

// openPools is for a simulator whose nodes are known.
func (s *Simulator) openPools() {
	backend.DescribePools(s.devices.known, s.config.Pools)
	p := &s.pools
	p.expires = map[core.NodeID]float64{}
	p.worlds, p.names = make([]Pool, len(s.devices.cluster.Pools)), make([]int, len(s.devices.cluster.Pools))
	for i := range s.devices.cluster.Pools {
		pool := &s.devices.cluster.Pools[i]
		for _, later := range pool.Prices {
			s.stall.priced = max(s.stall.priced, later.FromSeconds)
		}
		s.stall.cooling = max(s.stall.cooling, pool.UpCooldownSeconds)
		name := pool.Name
		p.worlds[i] = backend.PoolOf(s.config.Pools, name)
		for k := range s.devices.cluster.Nodes {
			if s.devices.cluster.Nodes[k].Pool == name {
				p.names[i]++
				s.evict(core.NodeID(k), &p.worlds[i], 0)
			}
		}
	}
}

// mayGrow reports whether nodes may still join.
func (s *Simulator) mayGrow() bool {
	return s.devices.grows || len(s.devices.nodes.joining) > 0 || slices.ContainsFunc(s.devices.cluster.Pools, func(p core.Pool) bool { return s.size(p.Name) < p.Max })
}

// size is how many nodes a pool has or gets, without those that leave.
func (s *Simulator) size(pool string) int {
	size := 0
	for i := range s.devices.nodes.planned {
		if h := s.devices.nodes.planned[i]; h != core.Gone && h != core.Draining && s.poolOf(core.NodeID(i)) == pool {
			size++
		}
	}
	return size
}

// poolOf is the pool of a node, which may be yet to join.
func (s *Simulator) poolOf(id core.NodeID) string {
	if int(id) < len(s.devices.cluster.Nodes) {
		return s.devices.cluster.Nodes[id].Pool
	}
	return s.devices.nodes.joining[int(id)-len(s.devices.cluster.Nodes)].Pool
}

// Scale has nodes join and leave.
func (s *Simulator) Scale(_ context.Context, _ int, targets []core.PoolTarget) error {
	for i := range targets {
		t := &targets[i]
		at := slices.IndexFunc(s.devices.cluster.Pools, func(p core.Pool) bool { return p.Name == t.Pool })
		if at < 0 {
			return fmt.Errorf("scale pool %q, which there is not", t.Pool)
		}
		size := s.size(t.Pool)
		if size < t.Nodes {
			s.stall.asks++
		}
		for ; size < t.Nodes; size++ {
			s.request(at)
		}
		for _, id := range t.Remove[:min(max(size-t.Nodes, 0), len(t.Remove))] {
			s.retire(id, &s.pools.worlds[at])
		}
	}
	s.devices.known.MayGrow = s.mayGrow()
	return nil
}

// request has a node join a pool, the next one by its id.
func (s *Simulator) request(pool int) {
	p, w, e := &s.devices.cluster.Pools[pool], &s.pools.worlds[pool], &s.devices.nodes
	id := core.NodeID(len(e.planned))
	e.joining = append(e.joining, core.AddedNode{
		Name: fmt.Sprintf("%s-%d", p.Name, s.pools.names[pool]), Accelerator: s.devices.cluster.Accelerators[p.Accelerator],
		Devices: p.Devices, CPUs: p.CPUs, MemoryGB: p.MemoryGB, DeviceMemoryGB: p.DeviceMemoryGB, Pool: p.Name, ExpectedSeconds: s.clock.now + w.Expected().Seconds(),
	})
	s.pools.names[pool]++
	e.planned, e.failed, e.told = append(e.planned, core.Provisioning), append(e.failed, false), append(e.told, absent)
	ready := s.clock.now + w.Provisioning.Seconds()
	if w.Spread > 0 {
		ready += s.random().Float64() * w.Spread.Seconds()
	}
	e.insert(nodeEvent{at: s.clock.now, node: id, to: core.Provisioning})
	if w.Fails > 0 && s.random().Float64() < w.Fails {
		e.insert(nodeEvent{at: ready, node: id, to: core.Gone})
		return
	}
	e.insert(nodeEvent{at: ready, node: id, to: core.Ready})
	if !s.late(s.clock.now) || s.works(s.clock.now) {
		s.stall.awaited = max(s.stall.awaited, ready+s.config.StallAfter.Seconds())
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
		s.devices.nodes.insert(nodeEvent{at: max(ready, at-w.Notice.Seconds()), node: id, to: core.Draining})
	}
	s.devices.nodes.insert(nodeEvent{at: at, node: id, to: core.Gone})
}

// retire has a node leave once no job is on it, or at once when it is not there yet.
func (s *Simulator) retire(id core.NodeID, w *Pool) {
	e := &s.devices.nodes
	if e.planned[id] == core.Provisioning {
		e.schedule = slices.DeleteFunc(e.schedule, func(n nodeEvent) bool { return n.node == id && n.at > s.clock.now })
		e.insert(nodeEvent{at: s.clock.now, node: id, to: core.Gone})
		e.planned[id] = core.Gone
		return
	}
	e.planned[id] = core.Draining
	e.insert(nodeEvent{at: s.clock.now, node: id, to: core.Draining})
	s.pools.retiring = append(s.pools.retiring, id)
	if w.DrainTimeout > 0 {
		s.pools.expires[id] = s.clock.now + w.DrainTimeout.Seconds()
		e.insert(nodeEvent{at: s.pools.expires[id], node: id, to: core.Gone})
	}
}

// removeEmpty takes the nodes away that are to leave and on which no job is any more.
func (s *Simulator) removeEmpty(at float64) {
	s.pools.retiring = slices.DeleteFunc(s.pools.retiring, func(id core.NodeID) bool {
		on := func(seats []core.Seat) bool {
			return slices.ContainsFunc(seats, func(seat core.Seat) bool { return seat.Node == id })
		}
		if slices.ContainsFunc(s.jobs.running, func(j *simJob) bool { return on(j.seats) || on(j.held(at)) }) ||
			slices.ContainsFunc(s.starts.leaving, func(l leaving) bool { return on(l.seats) }) {
			return false
		}
		s.devices.nodes.insert(nodeEvent{at: at, node: id, to: core.Gone})
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
