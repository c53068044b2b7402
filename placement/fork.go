package placement

import (
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

var (
	_ core.Forker = (*cellular)(nil)
	_ core.Forker = (*scored)(nil)
)

// Fork goes on with the same cells: in which order they became free decides which are taken next. O(devices + jobs submitted so far).
func (p *cellular) Fork(*rand.Rand) any {
	return &cellular{
		config: p.config, clusters: p.clusters.Fork(), cluster: p.cluster, healthChanges: p.healthChanges,
		restored: slices.Clone(p.restored), rejoined: p.rejoined, jobs: slices.Clone(p.jobs), of: slices.Clone(p.of), round: p.round,
	}
}

// Fork goes on with the jobs seen, those that ended among them, by which a scorer knows what is typical. What is left of the nodes it counts anew. O(1).
func (p *scored) Fork(r *rand.Rand) any {
	return &scored{
		ScoredConfig: p.ScoredConfig, learns: p.learns, scorer: p.scorer, random: r,
		tasks: slices.Clip(p.tasks), known: p.known, seen: p.seen, // the list only grows
	}
}
