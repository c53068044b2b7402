package placement

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// NewMostFree takes devices from the node with the most free ones, ties to the lowest, until the job is complete.
//
// Source: the placement that the baselines of the Pollux artifact share, which knows one accelerator type: of several,
// the lowest with enough free devices is taken. It spreads small jobs over the emptiest nodes. O(nodes × nodes taken)
// for each new seating.
func NewMostFree() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "most_free",
		Sharing: []core.Sharing{core.TimeSlice},
		Summary: "takes devices from the node with the most free ones",
		Description: "Repeatedly takes what the job misses from the node with the most free devices. Spreads small jobs over the emptiest nodes and may fragment the cluster. " +
			"Among accelerator types, which the source does not know, it takes the first of the cluster with enough free devices. O(nodes × nodes taken) for each new seating.",
		Source: "Pollux artifact, OSDI'21: placement of the Tiresias and Optimus baselines",
	}, core.None{}, func(core.None, core.Settings) (core.Placer, error) { return &mostFree{}, nil })
}

type mostFree struct{ seating.Seater }

func (p *mostFree) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	return p.SeatAll(v, grants, func(g *core.Grant) bool { return p.OnLowestType(v, g, chooseMostFree) }), nil
}

func chooseMostFree(s *seating.Seater, v *core.View, _ *core.Job, t core.AcceleratorID, n int) bool {
	for n > 0 {
		best, bestFree := core.NodeID(-1), 0
		for i := range v.Cluster.Nodes {
			if free := s.Ledger.Free(core.NodeID(i)); free > bestFree && v.Cluster.Nodes[i].Accelerator == t {
				best, bestFree = core.NodeID(i), free
			}
		}
		n -= s.Take(best, n)
	}
	return true
}
