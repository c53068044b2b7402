package core

import (
	"math"
	"testing"
)

func TestTruthMultiplier(t *testing.T) {
	known := &Truth{Steps: []BatchSteps{{10, 200}, {20, 150}, {40, 100}}}
	for name, tc := range map[string]struct {
		batch, from int
		want        float64
	}{
		"the same batch":       {10, 10, 1},
		"half the steps fewer": {20, 10, 1.5},
		"on the line between":  {15, 10, 175 * 15 / 2000.0},
		"from another":         {40, 20, 4.0 / 3},
		"below all":            {9, 10, math.NaN()},
		"above all":            {41, 10, math.NaN()},
		"from above all":       {10, 41, math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := known.Multiplier(tc.batch, tc.from); math.Abs(got-tc.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(tc.want) {
				t.Errorf("%v times the samples, want %v", got, tc.want)
			}
		})
	}
	if got := (&Truth{}).Multiplier(10, 10); !math.IsNaN(got) {
		t.Errorf("without steps: %v", got)
	}
}
