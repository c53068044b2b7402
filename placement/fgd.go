package placement

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// NewFGD seats jobs where they leave the fewest fragments: fragmentation gradient descent.
//
// Source: Weng et al., Beware of Fragmentation (ATC'23). Deviation: the typical tasks, by which fragments are counted, are those of the jobs submitted so
// far, counted anew each time a quarter more of them came; the publication takes them from the trace that it replays.
func NewFGD() core.Factory[core.Placer] {
	return byScore(core.Info{
		Type:    "fgd",
		Summary: "where it leaves the fewest fragments for jobs like those submitted so far",
		Description: "Counts how much of each node would be of no use to typical jobs, and seats a job where that grows least. " +
			"Typical are the jobs submitted so far, by CPUs, devices and types.",
		Source: "Beware of Fragmentation, ATC'23",
	}, true, func(_ *rand.Rand, seen []score.Task) score.Scorer {
		return score.NewFGD(score.NewTypical(seen, nil, score.OfAll))
	})
}
