package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// count is how many nodes join together.
func (g *JoiningNodes) count() int { return max(g.Count, 1) }

// nodeName names the i-th node of the group, as a config does those of the cluster.
func (g *JoiningNodes) nodeName(i int) string {
	if g.count() == 1 {
		return g.Name
	}
	return fmt.Sprintf("%s-%d", g.Name, i)
}

// node is the i-th node of the group when it joins, but for its health.
func (g *JoiningNodes) node(i int) core.AddedNode {
	return core.AddedNode{
		Name: g.nodeName(i), Accelerator: g.Accelerator, Devices: g.Devices, CPUs: g.CPUs, MemoryGB: g.MemoryGB, DeviceMemoryGB: g.DeviceMemoryGB, Rack: g.Rack,
	}
}

// join schedules the nodes that join, whose ids follow in order of time, and returns when each is ready first.
func (e *nodeEvents) join(groups []JoiningNodes, ids map[string]core.NodeID) (ready []nodeEvent) {
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b JoiningNodes) int { return cmp.Compare(a.At, b.At) })
	for i := range groups {
		g := &groups[i]
		for k := range g.count() {
			node := g.node(k)
			id := core.NodeID(len(e.planned))
			ids[node.Name] = id
			e.joining = append(e.joining, node)
			e.planned, e.failed = append(e.planned, absent), append(e.failed, false)
			if g.Provisioning > 0 {
				e.schedule = append(e.schedule, nodeEvent{at: g.At.Seconds(), node: id, to: core.Provisioning})
			}
			ready = append(ready, nodeEvent{at: (g.At + g.Provisioning).Seconds(), node: id, to: core.Ready})
		}
	}
	e.schedule = append(e.schedule, ready...)
	return ready
}

// addNode lets the next node join. After the last one, the cluster grows no more.
func (s *Simulator) addNode(change nodeEvent) {
	n := s.devices.nodes.joining[0]
	s.devices.nodes.joining = s.devices.nodes.joining[1:]
	n.Health = change.to
	accelerator := s.devices.cluster.Accelerator(n.Accelerator)
	if accelerator == core.AnyAccelerator {
		accelerator = core.AcceleratorID(len(s.devices.cluster.Accelerators))
		s.devices.cluster.Accelerators = append(s.devices.cluster.Accelerators, n.Accelerator)
	}
	s.devices.cluster.Nodes = append(s.devices.cluster.Nodes, core.Node{ID: change.node, Name: n.Name, Accelerator: accelerator, Devices: n.Devices, Pool: n.Pool})
	s.devices.known.MayGrow = s.mayGrow()
	s.clock.events = append(s.clock.events, core.Event{Kind: core.NodeAdded, AtSeconds: change.at, Node: change.node, Added: &n})
}

// Grown is the cluster with all nodes that are to join, and c itself where none is.
func (o *opener) Grown(c *core.Cluster) *core.Cluster {
	if len(o.config.JoiningNodes) == 0 {
		return c
	}
	grown := &core.Cluster{Accelerators: slices.Clone(c.Accelerators), Nodes: slices.Clone(c.Nodes)}
	for i := range o.config.JoiningNodes {
		g := &o.config.JoiningNodes[i]
		for k := range g.count() {
			n := g.node(k)
			if grown.Accelerator(n.Accelerator) == core.AnyAccelerator {
				grown.Accelerators = append(grown.Accelerators, n.Accelerator)
			}
			grown.Nodes = append(grown.Nodes, core.Node{
				ID: core.NodeID(len(grown.Nodes)), Name: n.Name, Accelerator: grown.Accelerator(n.Accelerator), Devices: n.Devices,
				CPUs: n.CPUs, MemoryGB: n.MemoryGB, DeviceMemoryGB: n.DeviceMemoryGB, Rack: n.Rack,
			})
		}
	}
	return grown
}

// checkGrowth refuses nodes that join without what a node needs, events on nodes that are gone, and delays and outages that
// do not suit other options.
func (c *Config) checkGrowth() problems {
	return slices.Concat(c.checkJoining(), c.checkNodeEvents(), c.checkOutages(), c.checkPools(), c.checkDelays())
}

// checkJoining refuses nodes that join without what a node needs.
func (c *Config) checkJoining() (found problems) {
	for i := range c.JoiningNodes {
		g, at := &c.JoiningNodes[i], fmt.Sprintf("joining_nodes[%d]", i)
		found.addWhere(g.Name == "", "%s.name: must not be empty", at)
		found.addWhere(g.Accelerator == "", "%s.accelerator: must not be empty", at)
		found.addWhere(g.Devices < 1 || g.Devices > core.MaxDevicesPerNode, "%s.devices: must be between 1 and %d, got %d", at, core.MaxDevicesPerNode, g.Devices)
	}
	return found
}

// checkNodeEvents refuses events on nodes that are gone.
func (c *Config) checkNodeEvents() (found problems) {
	for i, e := range c.NodeEvents {
		for k, g := range c.NodeEvents {
			if g.To == core.Gone.String() && g.Node == e.Node && (e.At > g.At || e.At == g.At && i > k) {
				found.add("node_events[%d].at: node %q is gone since %v", i, e.Node, g.At)
				break
			}
		}
	}
	return found
}

// checkOutages refuses outages of no length, and those that lie within another.
func (c *Config) checkOutages() (found problems) {
	for i, o := range c.Outages {
		at := fmt.Sprintf("outages[%d]", i)
		found.addWhere(o.For <= 0, "%s.for: must be positive", at)
		within := func(p Outage) bool { return o.At < p.At+p.For && p.At < o.At+o.For }
		found.addWhere(slices.ContainsFunc(c.Outages[:i], within), "%s.at: must not lie within another outage", at)
	}
	return found
}

// checkDelays refuses delays and outages where no moment lies between rounds, delays of moves that are to take no time, and
// delays that look like a stall.
func (c *Config) checkDelays() (found problems) {
	longest := c.StartDelay + c.StartDelaySpread + c.ReleaseDelay
	for _, option := range [...]struct {
		name string
		set  bool
		move bool // it delays moves
	}{
		{"start_delay", c.StartDelay > 0, true},
		{"start_delay_spread", c.StartDelaySpread > 0, true},
		{"release_delay", c.ReleaseDelay > 0, true},
		{"outages", len(c.Outages) > 0, false},
	} {
		found.addWhere(option.set && c.Publication.byRounds(), "%s: needs publication.progress: exact", option.name)
		found.addWhere(option.set && option.move && c.Publication.Moves == freeAlike, "%s: needs publication.moves: restart, for moves that are free begin at once", option.name)
	}
	overhead, _ := c.LongestPause()
	found.addWhere(longest > 0 && longest+overhead >= c.StallAfter, "stall_after: must be longer than start_delay, start_delay_spread, release_delay and the restart overhead together")
	return found
}
