package placement

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// NewFragmentation seats jobs where they and those after them leave the fewest fragments.
//
// Source: this project, on the measure of FGD (ATC'23); see score.Fragmentation. Typical tasks as of NewFGD.
func NewFragmentation() core.Factory[core.Placer] {
	return byScore(core.Info{
		Type:    "fragmentation",
		Summary: "where it and the next job like those submitted so far leave the fewest fragments",
		Description: "Counts fragments as fgd does, and looks one job ahead: half of what a typical job would leave after it counts as well. " +
			"Among nodes that are about as good it takes the fullest.",
	}, true, func(_ *rand.Rand, seen []score.Task) score.Scorer {
		return score.NewFragmentation(score.NewTypical(seen, nil, score.OfAll))
	})
}
