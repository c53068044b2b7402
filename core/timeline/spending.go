package timeline

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// poolColumns follow those of usageHeader where there are pools.
const poolColumns = ",pool_nodes,pool_cost"

// spending is what nodes of pools cost. A node is paid for from the moment that it is ready until it is gone.
type spending struct {
	pools []core.Pool
	nodes []int   // by pool: those that are paid for
	paid  []int   // by NodeID: the pool of a node that is paid for; -1 for the others
	cost  float64 // so far
}

// newSpending is nil where there are no pools.
func newSpending(c *core.Cluster) *spending {
	if len(c.Pools) == 0 {
		return nil
	}
	s := &spending{pools: c.Pools, nodes: make([]int, len(c.Pools))}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		s.add(s.observe(n.ID, n.Pool, n.Health))
	}
	return s
}

// observe takes in the health of a node, and says which pool has how many nodes more to pay for.
func (s *spending) observe(id core.NodeID, pool string, h core.Health) (of, more int) {
	for len(s.paid) <= int(id) {
		s.paid = append(s.paid, -1)
	}
	is := s.paid[id]
	switch {
	case is < 0 && h != core.Provisioning && h != core.Gone:
		s.paid[id] = slices.IndexFunc(s.pools, func(p core.Pool) bool { return p.Name == pool })
		return s.paid[id], 1
	case is >= 0 && h == core.Gone:
		s.paid[id] = -1
		return is, -1
	}
	return -1, 0
}

func (s *spending) add(of, more int) {
	if of >= 0 {
		s.nodes[of] += more
	}
}

// pay pays for the nodes from a moment to another.
func (s *spending) pay(from, to float64) {
	for i := range s.pools {
		if s.nodes[i] > 0 {
			s.cost += float64(s.nodes[i]) * s.pools[i].Cost(from, to)
		}
	}
}

func (s *spending) count() (nodes int) {
	for _, n := range s.nodes {
		nodes += n
	}
	return nodes
}
