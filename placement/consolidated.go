package placement

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// ConsolidatedConfig configures NewConsolidated.
type ConsolidatedConfig struct {
	// Strict refuses a job rather than spread it over more nodes than it would need if all were idle.
	Strict bool `config:"strict" doc:"refuse a job, rather than spread it over more nodes of a type than it would need if all ready ones were idle"`
}

// NewConsolidated seats a job on the fewest nodes that the free devices allow: of the accelerator types that the job may
// have, it takes the one on which it needs the fewest, ties to the lowest.
//
// On one node it is best fit: the node with the fewest free devices that suffice, ties to the lowest. Over several, it
// takes the node with the most free devices, idle ones first and then the lowest, until the rest fits on one node, and
// chooses that by best fit. O(nodes × nodes taken) for each new seating and type.
func NewConsolidated() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "consolidated",
		Sharing: []core.Sharing{core.TimeSlice},
		Summary: "seats a job on the fewest nodes, best fit",
		Description: "Uses the fewest nodes that the free devices of any one accelerator type allow: best fit when one node suffices, otherwise the emptiest nodes and best fit for the remainder. " +
			"When strict, a job waits until it fits on as few nodes of a type as it would need if all of them were idle. O(nodes × nodes taken) for each new seating and type.",
	}, ConsolidatedConfig{}, func(c ConsolidatedConfig, _ core.Settings) (core.Placer, error) {
		return &consolidated{strict: c.Strict}, nil
	})
}

type consolidated struct {
	seating.Seater
	strict bool
}

func (p *consolidated) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	choose := seating.Consolidated
	if p.strict {
		choose = chooseStrict
	}
	return p.SeatAll(v, grants, func(g *core.Grant) bool { return p.OnFewestNodes(v, g, choose) }), nil
}

func chooseStrict(s *seating.Seater, v *core.View, j *core.Job, t core.AcceleratorID, n int) bool {
	first := len(s.Seats)
	seating.Consolidated(s, v, j, t, n)
	if used := len(s.Seats) - first; used > 1 && used > fewestNodes(v, t, n) {
		s.Untake(first)
		return false
	}
	return true
}

// fewestNodes is how many ready nodes of a type n replicas would need if all were idle.
func fewestNodes(v *core.View, t core.AcceleratorID, n int) int {
	var bySize [core.MaxDevicesPerNode + 1]int
	for i := range v.Cluster.Nodes {
		if node := &v.Cluster.Nodes[i]; node.Accelerator == t && node.Health == core.Ready {
			bySize[node.Devices-node.Unusable.Count()]++
		}
	}
	used := 0
	for size := core.MaxDevicesPerNode; size > 0 && n > 0; size-- {
		taken := min(bySize[size], (n+size-1)/size)
		used += taken
		n -= taken * size
	}
	return used
}
