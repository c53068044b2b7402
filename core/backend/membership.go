package backend

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Membership is which node belongs to which pool, as the pipeline knows it: it follows events only, so that who repeats them gets
// the same.
type Membership struct {
	pools  []string // by NodeID
	health []core.Health
}

// Begin takes in the nodes that the pipeline begins with.
func (m *Membership) Begin(c *core.Cluster) {
	for i := range c.Nodes {
		m.pools, m.health = append(m.pools, c.Nodes[i].Pool), append(m.health, c.Nodes[i].Health)
	}
}

// Take takes in the events that the pipeline sees. Each event is taken in once.
func (m *Membership) Take(events []core.Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case core.NodeAdded:
			m.pools, m.health = append(m.pools, e.Added.Pool), append(m.health, e.Added.Health)
		case core.NodeChanged:
			m.health[e.Node] = e.Health
		case core.NodeRemoved:
			m.health[e.Node] = core.Gone
		}
	}
}

// Grow sets for a cluster with pools whether one of them has fewer nodes than it may have.
func (m *Membership) Grow(c *core.Cluster) {
	if len(c.Pools) == 0 {
		return
	}
	c.MayGrow = slices.ContainsFunc(c.Pools, func(p core.Pool) bool {
		size := 0
		for id, pool := range m.pools {
			if h := m.health[id]; pool == p.Name && h != core.Gone && h != core.Draining {
				size++
			}
		}
		return size < p.Max
	})
}
