package metrics

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// A number is written as the shortest decimal that reads back, whichever way it is found.
func TestNumbersAreShortestDecimals(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, x float64) {
		want := strconv.FormatFloat(x, 'f', -1, 64)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			want = ""
		}
		if got := string(AppendNumber(nil, x)); got != want {
			t.Errorf("%v is written as %q, want %q", x, got, want)
		}
	}
	for _, x := range []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, 1<<53 - 1, 1 << 53, 1<<53 + 2, -(1 << 53), 1 << 62, 1 << 63, -(1 << 63), 1e22, 1e300,
		math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64,
	} {
		check(t, x)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.Float64().Draw(t, "any"))
		check(t, float64(rapid.Int64().Draw(t, "whole")))
	})
}
