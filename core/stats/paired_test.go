package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/stats"
)

func scaled(x []float64, by float64) []float64 {
	y := slices.Clone(x)
	for i := range y {
		y[i] *= by
	}
	return y
}

func TestCompareFewWorkloads(t *testing.T) {
	a, b := []float64{80, 90, 100, 50}, []float64{100, 90, 50, 100}
	for n, want := range []stats.Paired{
		{Change: nan, RatioOfMeans: nan, Wilcoxon: 1},
		{Change: -0.2, RatioOfMeans: -0.2, Wins: 1, Wilcoxon: 1},
		{Change: math.Sqrt(0.8) - 1, RatioOfMeans: 170./190 - 1, Wins: 1, Ties: 1, Wilcoxon: 1},
		{Change: math.Cbrt(1.6) - 1, RatioOfMeans: 270./240 - 1, Wins: 1, Ties: 1, Wilcoxon: 1},
		{Change: math.Pow(0.8, 0.25) - 1, RatioOfMeans: 320./340 - 1, Wins: 2, Ties: 1, Wilcoxon: 1},
	} {
		got, err := stats.Compare(a[:n], b[:n], 0.95)
		if err != nil {
			t.Fatal(err)
		}
		want.Method, want.N, want.Degenerate, want.P = stats.MethodValues, n, n == 1, nan
		want.T, want.Percentile, want.BCa, want.Expanded, want.Unpaired = stats.Unknown(), stats.Unknown(), stats.Unknown(), stats.Unknown(), stats.Unknown()
		for i := range n {
			want.Values = append(want.Values, math.Log(a[i]/b[i]))
		}
		if diff := cmp.Diff(want, got, nearly, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%d workloads (-want +got):\n%s", n, diff)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	ok := []float64{1, 2, 3}
	for name, tc := range map[string]struct {
		a, b  []float64
		level float64
		want  string
	}{
		"zero":     {[]float64{1, 0, 3}, ok, 0.95, "compare: a[1] is 0: want a value that is positive and finite"},
		"negative": {ok, []float64{1, 2, -3}, 0.95, "compare: b[2] is -3: want a value that is positive and finite"},
		"NaN":      {ok, []float64{nan, 2, 3}, 0.95, "compare: b[0] is NaN: want a value that is positive and finite"},
		"infinite": {[]float64{1, inf, 3}, ok, 0.95, "compare: a[1] is +Inf: want a value that is positive and finite"},
		"level":    {ok, ok, 95, "compare: level 95 is not between 0 and 1, such as 0.95"},
		"all of it": {
			[]float64{1, -inf},
			[]float64{0},
			1,
			"compare: level 1 is not between 0 and 1, such as 0.95; 2 values against 1: a paired comparison needs one of each per workload; " +
				"a[1] is -Inf: want a value that is positive and finite; b[0] is 0: want a value that is positive and finite",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := stats.Compare(tc.a, tc.b, tc.level)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestCompareWithoutVariation(t *testing.T) {
	b := []float64{1500, 900, 3100, 777, 1234.5, 8000}
	for name, tc := range map[string]struct {
		by     float64
		equal  bool
		change float64
		wins   int
		p      float64
	}{
		"equal samples":      {1, true, 0, 0, 1},
		"ten per cent above": {1.1, false, 0.1, 0, 0.03125},
		"a third below":      {2. / 3, false, -1. / 3, 6, 0.03125},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := stats.Compare(scaled(b, tc.by), b, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if got.Equal != tc.equal || !got.Degenerate || got.Wins != tc.wins || got.Wilcoxon != tc.p || math.Abs(got.Change-tc.change) > 1e-12 {
				t.Errorf("got %+v", got)
			}
			for _, i := range []stats.Interval{got.T, got.Percentile, got.BCa, got.Expanded} {
				if i.Width() != 0 || math.Abs(i.Low-tc.change) > 1e-12 {
					t.Errorf("interval %v, want [%v, %v]", i, tc.change, tc.change)
				}
			}
		})
	}
	// One pair less alike is no longer degenerate.
	a := scaled(b, 1.1)
	a[0] *= 1 + 1e-9
	if got, err := stats.Compare(a, b, 0.95); err != nil || got.Degenerate || got.Equal || got.T.Width() == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOneOutlier(t *testing.T) {
	a, b := []float64{90, 91, 89, 90, 5000}, []float64{100, 100, 100, 100, 100}
	got, err := stats.Compare(a, b, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if got.Wins != 4 || !got.T.Contains(0) || got.RatioOfMeans < 9 || got.Change > 1.1 {
		t.Errorf("got %+v", got)
	}
}

// An interval of a change is that of the reverse comparison, reversed, and wider at a higher level.
func TestCompareBothWays(t *testing.T) {
	a, b := []float64{1873.2, 2677.0, 2176.6, 2287.9, 2148.3}, []float64{2109.3, 3378.4, 2219.8, 2736.2, 2480.6}
	there, err := stats.Compare(a, b, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	back, err := stats.Compare(b, a, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	same(t, 1/(1+there.Change), 1+back.Change)
	same(t, 1/(1+there.T.Low), 1+back.T.High)
	same(t, 1/(1+there.Unpaired.Low), 1+back.Unpaired.High)
	for _, level := range []float64{0.99, 0.999} {
		wide, err := stats.Compare(a, b, level)
		if err != nil {
			t.Fatal(err)
		}
		if wide.T.Low >= there.T.Low || wide.T.High <= there.T.High || wide.BCa.Low >= there.BCa.Low || wide.BCa.High <= there.BCa.High {
			t.Errorf("at %v: %+v, at 0.95: %+v", level, wide, there)
		}
	}
	if there.Method != stats.MethodPaired || there.Interval() != there.T {
		t.Errorf("a table judges by %v, want t", there.Interval())
	}
}

// The order of the workloads changes no byte but that of Values.
func TestOrderOfPairs(t *testing.T) {
	for _, n := range []int{5, 8, 9, 40} {
		a, b := sample(n, 1), sample(n, 2)
		for i := range a {
			a[i], b[i] = math.Exp(a[i]), math.Exp(b[i])
		}
		want, err := stats.Compare(a, b, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			order := make([]int, n)
			for i := range order {
				order[i] = i
			}
			order = rapid.Permutation(order).Draw(t, "order")
			c, d := make([]float64, n), make([]float64, n)
			for i, from := range order {
				c[i], d[i] = a[from], b[from]
			}
			got, err := stats.Compare(c, d, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			got.Values = want.Values
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyWorkloads(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a hundred million draws")
	}
	const n = 10_000
	a, b := make([]float64, n), make([]float64, n)
	for i, v := range sample(n, 3) {
		a[i], b[i] = math.Exp(0.1*v-0.05), 1
	}
	got, err := stats.Compare(a, b, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []stats.Interval{got.Percentile, got.BCa, got.Expanded} {
		if math.Abs(i.Low-got.T.Low) > 1e-4 || math.Abs(i.High-got.T.High) > 1e-4 {
			t.Errorf("interval %v, t %v", i, got.T)
		}
	}
}

// Whatever the values, an interval is in order, and t's holds the change.
func TestCompareOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Float64Range(math.SmallestNonzeroFloat64, math.MaxFloat64), n, n)
		got, err := stats.Compare(values.Draw(t, "a"), values.Draw(t, "b"), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		for name, i := range map[string]stats.Interval{
			"t": got.T, "percentile": got.Percentile, "bca": got.BCa, "expanded": got.Expanded, "unpaired": got.Unpaired,
		} {
			if i.Known() != (n >= stats.MinSample) || i.Low > i.High {
				t.Errorf("%s of %d workloads is %v", name, n, i)
			}
		}
		if n >= stats.MinSample && !got.T.Contains(got.Change) && !got.Degenerate {
			t.Errorf("t %v does not hold the change %v", got.T, got.Change)
		}
	})
}
