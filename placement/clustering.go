package placement

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
)

// NewClustering seats jobs beside those that want as many devices.
//
// Source: baseline of FGD (ATC'23), after the affinity of Gandiva (OSDI'18).
func NewClustering() core.Factory[core.Placer] {
	return byScore(core.Info{
		Type:        "clustering",
		Summary:     "beside jobs that want as many devices",
		Description: "Seats a job on a node whose jobs want as many devices as it does, if there is one, the fullest of several.",
		Source:      "Beware of Fragmentation, ATC'23, baseline",
	}, false, func(*rand.Rand, []score.Task) score.Scorer { return score.Clustering{} })
}
