package placement

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// NewFirstFit takes what is free, node by node in ascending order. Shape is no concern: a grant fits when enough
// devices of a type are free, and the lowest such type is taken. O(nodes) for each new seating.
func NewFirstFit() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "first_fit",
		Sharing: []core.Sharing{core.TimeSlice},
		Summary: "takes free devices node by node",
		Description: "Walks the nodes in order and takes what is free until the job is complete. Spreads jobs over as many nodes as it happens to. " +
			"Of the accelerator types it takes the first of the cluster with enough free devices. O(nodes) for each new seating.",
	}, core.None{}, func(core.None, core.Settings) (core.Placer, error) { return &firstFit{}, nil })
}

type firstFit struct{ seating.Seater }

func (p *firstFit) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	return p.SeatAll(v, grants, func(g *core.Grant) bool { return p.OnLowestType(v, g, chooseFirstFit) }), nil
}

func chooseFirstFit(s *seating.Seater, v *core.View, _ *core.Job, t core.AcceleratorID, n int) bool {
	for i := range v.Cluster.Nodes {
		if n == 0 {
			break
		}
		if v.Cluster.Nodes[i].Accelerator == t {
			n -= s.Take(core.NodeID(i), n)
		}
	}
	return true
}
