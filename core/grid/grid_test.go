package grid

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestGrid(t *testing.T) {
	cases := map[string]struct{ t, interval, on, next float64 }{
		"the start":                          {0, 60, 0, 60},
		"between two points":                 {61, 60, 120, 120},
		"on a point":                         {120, 60, 120, 180},
		"a quotient rounded down to a point": {43 * 0.1, 0.1, 43 * 0.1, 44 * 0.1},
		"for ever":                           {math.Inf(1), 60, math.Inf(1), math.Inf(1)},
		"finer than the clock":               {1e18, 1, 1e18, 1e18 + 128},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := From(tc.t, tc.interval); got != tc.on {
				t.Errorf("on the grid from %v s: %v s, want %v", tc.t, got, tc.on)
			}
			if got := After(tc.t, tc.interval); got != tc.next {
				t.Errorf("next on the grid after %v s: %v s, want %v", tc.t, got, tc.next)
			}
		})
	}
}

// From any point the walk along the grid meets every point once, and from anywhere in between the next one.
func TestGridHasNoPointTwiceAndMissesNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.OneOf(
			rapid.SampledFrom([]float64{0.1, 0.3, 1.1, 1. / 3, 2. / 3, 0.7, 1e-3, 60, 300, math.Pi, 1e-9, 86_400}),
			rapid.Float64Range(1e-6, 1e6),
		).Draw(t, "interval")
		k := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, 1<<50)).Draw(t, "k")
		now := float64(k) * interval
		for range 100 {
			if got := From(now, interval); got != now {
				t.Fatalf("point %d, %v s, is taken to be off the grid: %v s", k, now, got)
			}
			k++
			want := float64(k) * interval
			if got := After(now, interval); got != want {
				t.Fatalf("after %v s comes %v s, want point %d, %v s", now, got, k, want)
			}
			between := now + (want-now)*rapid.Float64Range(0, 1).Draw(t, "fraction")
			if got := From(between, interval); between > now && got != want {
				t.Fatalf("not before %v s comes %v s, want point %d, %v s", between, got, k, want)
			}
			now = want
		}
	})
}
