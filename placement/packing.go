package placement

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// NewPacking seats jobs on shared devices first, then on idle ones of nodes in use, then on idle nodes.
//
// Source: baseline of FGD (ATC'23).
func NewPacking() core.Factory[core.Placer] {
	return byScore(core.Info{
		Type:        "packing",
		Summary:     "shared devices first, then nodes in use, then idle ones",
		Description: "Seats a job on devices that are shared already if it fits, otherwise on idle ones of a node in use, and last on an idle node.",
		Source:      "Beware of Fragmentation, ATC'23, baseline",
	}, false, func(*rand.Rand, []score.Task) score.Scorer { return score.Packing{} })
}
