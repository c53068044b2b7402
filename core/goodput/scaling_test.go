package goodput

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestScalingRules(t *testing.T) {
	g := Gradients{SquaredNorm: 1, Variance: 3}
	cases := map[string]struct {
		rule   ScalingRule
		scale  float64
		warmup Warmup
		want   float64
	}{
		"adascale is the gain":                    {AdaScale, 3, Warmup{}, 2},       // (3+1)/(3/3+1)
		"adascale at the initial batch":           {AdaScale, 1, Warmup{}, 1},       //
		"square root":                             {SquareRoot, 9, Warmup{}, 3},     //
		"linear":                                  {Linear, 9, Warmup{}, 9},         //
		"legew at the start":                      {LEGW, 4, Warmup{0, 100}, 0.005}, // a step of 4·100
		"legew halfway":                           {LEGW, 4, Warmup{199, 100}, 1},   // 2·200/400
		"legew at the last step":                  {LEGW, 4, Warmup{399, 100}, 2},   //
		"legew warmed up":                         {LEGW, 4, Warmup{400, 100}, 2},   //
		"legew long after":                        {LEGW, 4, Warmup{9000, 100}, 2},  //
		"legew without warm-up":                   {LEGW, 4, Warmup{0, 0}, 2},       //
		"legew warms up longer with larger batch": {LEGW, 16, Warmup{399, 100}, 1},  // 4·400/1600
		"an empty rule is adascale":               {"", 3, Warmup{}, 2},             //
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.rule.Factor(tc.scale, g, tc.warmup); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("factor %v, want %v", got, tc.want)
			}
		})
	}
}

// The gain lies between 1 and the scale, and never falls with the scale.
func TestGain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Gradients{SquaredNorm: rapid.Float64Range(0, 1e3).Draw(t, "square"), Variance: rapid.Float64Range(0, 1e3).Draw(t, "variance")}
		scale := rapid.Float64Range(1, 1e3).Draw(t, "scale")
		gain := g.Gain(scale)
		if gain < 1-1e-9 || gain > scale*(1+1e-9) {
			t.Errorf("gain %v at scale %v", gain, scale)
		}
		if more := g.Gain(2 * scale); more < gain*(1-1e-9) {
			t.Errorf("gain %v at scale %v, %v at twice that", gain, scale, more)
		}
		if efficiency := g.Efficiency(scale); efficiency > 1+1e-9 {
			t.Errorf("efficiency %v", efficiency)
		}
	})
}
