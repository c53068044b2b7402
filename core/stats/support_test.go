package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core/stats"
)

// nearly compares numbers to 1e-9 of themselves, NaN equal to NaN.
var nearly = cmp.Options{cmpopts.EquateApprox(1e-9, 1e-12), cmpopts.EquateNaNs()}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, nearly); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func TestInterval(t *testing.T) {
	i := stats.Interval{Low: -1, High: 2}
	none := stats.Unknown()
	for _, tc := range []struct {
		name      string
		got, want any
	}{
		{"known", i.Known(), true},
		{"unknown", none.Known(), false},
		{"low end unknown", stats.Interval{Low: nan}.Known(), false},
		{"high end unknown", stats.Interval{High: nan}.Known(), false},
		{"holds its low end", i.Contains(-1), true},
		{"holds its high end", i.Contains(2), true},
		{"below", i.Contains(-1.1), false},
		{"above", i.Contains(2.1), false},
		{"an unknown one holds nothing", none.Contains(0), false},
		{"width", i.Width(), 3.0},
		{"width of an unknown one", none.Width(), nan},
	} {
		t.Run(tc.name, func(t *testing.T) { same(t, tc.want, tc.got) })
	}
}

func TestT(t *testing.T) {
	x := []float64{4, 1, 5, 3, 2} // mean 3, standard error √0.5
	for name, tc := range map[string]struct {
		x     []float64
		level float64
		half  float64 // of a width around 3, NaN for no interval
	}{
		"95 %":         {x, 0.95, 2.7764451051977987 * math.Sqrt(0.5)},
		"90 %":         {x, 0.90, 2.1318467863266504 * math.Sqrt(0.5)},
		"99 %":         {x, 0.99, 4.604094871349993 * math.Sqrt(0.5)},
		"two values":   {[]float64{2, 4}, 0.95, 12.706204736174694},
		"equal values": {[]float64{3, 3, 3}, 0.95, 0},
		"one value":    {[]float64{3}, 0.95, nan},
		"none":         {nil, 0.95, nan},
		"NaN":          {[]float64{1, nan, 2}, 0.95, nan},
		"infinite":     {[]float64{1, -inf, 2}, 0.95, nan},
		"level 0":      {x, 0, nan},
		"level 1":      {x, 1, nan},
		"level NaN":    {x, nan, nan},
		"level 95":     {x, 95, nan},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, stats.Interval{Low: 3 - tc.half, High: 3 + tc.half}, stats.T(tc.x, tc.level))
		})
	}
	y := sample(40, 10)
	want := stats.T(y, 0.95)
	slices.Reverse(y)
	if got := stats.T(y, 0.95); got != want {
		t.Errorf("T of the same values in another order = %v, want %v", got, want)
	}
	third := []float64{0.1, 0.1, 0.1} // the sum of which is rounded
	if got := stats.T(third, 0.95); got != (stats.Interval{Low: 0.1, High: 0.1}) {
		t.Errorf("T of equal values = %v", got)
	}
}

func TestUnpairedT(t *testing.T) {
	x, y := []float64{3, 1, 2}, []float64{4, 2} // variances 1 and 2, pooled 4/3, standard error √(10/9)
	half := 3.182446305284263 * math.Sqrt(10./9)
	for name, tc := range map[string]struct {
		x, y  []float64
		level float64
		want  stats.Interval
	}{
		"three and two": {x, y, 0.95, stats.Interval{Low: -1 - half, High: -1 + half}},
		"two and three": {y, x, 0.95, stats.Interval{Low: 1 - half, High: 1 + half}},
		"one and three": {[]float64{1}, x, 0.95, stats.Unknown()},
		"three and one": {x, []float64{1}, 0.95, stats.Unknown()},
		"NaN first":     {[]float64{1, nan}, x, 0.95, stats.Unknown()},
		"NaN last":      {x, []float64{1, nan}, 0.95, stats.Unknown()},
		"level 1":       {x, y, 1, stats.Unknown()},
	} {
		t.Run(name, func(t *testing.T) { same(t, tc.want, stats.UnpairedT(tc.x, tc.y, tc.level)) })
	}
}

func TestJain(t *testing.T) {
	for name, tc := range map[string]struct {
		x    []float64
		want float64
	}{
		"equal":        {[]float64{3, 3, 3, 3}, 1},
		"one has all":  {[]float64{0, 7, 0, 0}, 0.25},
		"one, two":     {[]float64{1, 2}, 0.9},
		"huge":         {[]float64{1e300, 2e300}, 0.9},
		"tiny":         {[]float64{1e-300, 2e-300}, 0.9},
		"all zero":     {[]float64{0, 0}, nan},
		"none":         {nil, nan},
		"one negative": {[]float64{1, -1}, nan},
		"NaN":          {[]float64{1, nan}, nan},
		"infinite":     {[]float64{1, inf}, nan},
	} {
		t.Run(name, func(t *testing.T) { same(t, tc.want, stats.Jain(tc.x)) })
	}
}
