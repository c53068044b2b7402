package synergy_test

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
	. "github.com/quartet-sched/quartet/policykit/synergy"
)

// Keys at 100 s on 10 devices, 20 CPUs and 100 GB, by hand.
func TestKeys(t *testing.T) {
	t.Parallel()
	state := State{ArrivalSeconds: 40, RemainingSeconds: 30, DurationSeconds: 60, Devices: 2, Demand: core.Resources{CPUs: 8, MemoryGB: 10}}
	of := Capacity{10, core.Resources{CPUs: 20, MemoryGB: 100}}
	for name, tc := range map[string]struct {
		order func(*State, float64, Capacity) float64
		want  float64
	}{
		"by finish-time fairness":         {FTF, -1.5},
		"the best off first, as the slip": {MisreadFTF, 1.5},
		"by the dominant share":           {DRF, 0.4},
		"by work in all resources":        {Tetris, 30 * 0.7},
	} {
		if got := tc.order(&state, 100, of); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	uncounted := Capacity{Devices: 10}
	if drf, tetris := DRF(&state, 100, uncounted), Tetris(&state, 100, uncounted); math.Abs(drf-0.2) > 1e-12 || math.Abs(tetris-6) > 1e-12 {
		t.Errorf("where CPUs and memory are not counted the keys are %v and %v, want 0.2 and 6", drf, tetris)
	}
}
