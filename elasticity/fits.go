package elasticity

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/memo"
)

// fitted are the models of what was measured before, for jobs of an application often measure alike, and always do in a
// simulation. Some 0.3 kB each.
var fitted = memo.New[string, goodput.Performance](10_000)

// fit is goodput.Fit with a memory.
func fit(seen []core.Measurement) goodput.Performance {
	return fitted.Of(fitKey(seen), func() goodput.Performance { return goodput.Fit(seen) })
}

// fitKey is what a fit depends on.
func fitKey(seen []core.Measurement) string {
	key := make([]byte, 0, 512)
	differ := slices.ContainsFunc(seen, func(m core.Measurement) bool { return m.Spread > 0 })
	for _, m := range seen {
		weight := 1
		if differ {
			weight = goodput.Weight(m)
		}
		for _, part := range [...]uint64{
			uint64(m.Nodes), uint64(m.Replicas), uint64(m.PerDevice), math.Float64bits(m.PassSeconds), math.Float64bits(m.StepSeconds), uint64(weight),
		} {
			key = binary.LittleEndian.AppendUint64(key, part)
		}
	}
	return string(key)
}
