package placement

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// NewRandom seats jobs anywhere.
func NewRandom() core.Factory[core.Placer] {
	return byScore(core.Info{
		Type:        "random",
		Summary:     "on a drawn node with room",
		Description: "Draws a node among those with room for a job, and devices of it. A baseline that other placements should beat.",
		Source:      "Beware of Fragmentation, ATC'23, baseline",
	}, false, func(r *rand.Rand, _ []score.Task) score.Scorer { return score.NewRandom(r) })
}
