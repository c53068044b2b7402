package placement

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// NewBestFit seats jobs where least is left: CPUs and devices alike.
//
// Source: baseline of FGD (ATC'23).
func NewBestFit() core.Factory[core.Placer] {
	return byScore(core.Info{
		Type:        "best_fit",
		Summary:     "where least is left",
		Description: "Seats a job on the node that has least left afterwards, CPUs and devices counted alike, and on its fullest devices.",
		Source:      "Beware of Fragmentation, ATC'23, baseline",
	}, false, func(*rand.Rand, []score.Task) score.Scorer { return score.BestFit{} })
}
