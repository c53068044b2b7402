package pollux

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// TestReference holds the speedup of a job to 1 at what its speed is measured against: its fair share, the best it could
// have, or one replica. The published objective scales the speedup by nodes over devices.
func TestReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := 4 * rapid.IntRange(1, 10).Draw(t, "nodes")
		r := &core.Response{MinReplicas: 1, MaxReplicas: rapid.IntRange(1, 64).Draw(t, "most")}
		rates := rapid.SliceOfN(rapid.Float64Range(0.01, 100), 64, 64)
		r.Curves = []core.Curve{{OneNode: rates.Draw(t, "one node"), ManyNodes: rates.Draw(t, "many nodes")}}
		fair := rapid.IntRange(1, devices).Draw(t, "fair share")
		p := &allocator{config: Default, devices: devices, nodes: devices / 4}
		speedup := func(reference string, rate float64) float64 {
			p.config.Reference = reference
			return rate / p.reference(r, &job{most: r.MaxReplicas}, fair)
		}
		best := 0.0
		for k := 1; k <= r.MaxReplicas; k++ {
			best = max(best, rate(r, 0, k, false), rate(r, 0, k, true))
		}
		for reference, got := range map[string]float64{
			"fair_share": speedup("fair_share", rate(r, 0, fair, false)) * float64(p.devices) / float64(p.nodes),
			"best":       speedup("best", best),
			"one":        speedup("one", rate(r, 0, 1, false)),
		} {
			if math.Abs(got-1) > 1e-12 {
				t.Errorf("measured against %s: speedup %v, want 1", reference, got)
			}
		}
	})
}
