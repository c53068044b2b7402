package placement

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// NewDotProduct seats jobs where what they want and what is left are least alike.
//
// Source: baseline of FGD (ATC'23), after the alignment of Tetris (SIGCOMM'14), whose sign is the opposite.
func NewDotProduct() core.Factory[core.Placer] {
	return byScore(core.Info{
		Type:        "dot_product",
		Summary:     "where what it wants times what is left is least",
		Description: "Seats a job on the node where the product of what it wants and what is left, summed over CPUs and devices, is least.",
		Source:      "Beware of Fragmentation, ATC'23, baseline",
	}, false, func(*rand.Rand, []score.Task) score.Scorer { return score.DotProduct{} })
}
