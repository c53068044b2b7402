package advise

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/metrics"
)

func TestExcess(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		limit  Limit
		value  float64
		excess float64
	}{
		"kept":                     {Limit{Below: true, Bound: 2}, 1.5, 0},
		"at the bound":             {Limit{Below: true, Bound: 2}, 2, 0},
		"at the bound, which does": {Limit{Below: true, Equal: true, Bound: 2}, 2, 0},
		"above by half of it":      {Limit{Below: true, Bound: 2}, 3, 0.5},
		"below by a quarter":       {Limit{Bound: 0.8}, 0.6, 0.25},
		"above a negative one":     {Limit{Below: true, Bound: -2}, 2, 2},
		"above nothing":            {Limit{Below: true, Bound: 0}, 1, 1e9},
		"not known":                {Limit{Below: true, Bound: 2}, nan, math.Inf(1)},
	} {
		if got := tc.limit.excess(tc.value); got != tc.excess && math.Abs(got-tc.excess) > 1e-12*tc.excess {
			t.Errorf("%s: misses it by %v, want %v", name, got, tc.excess)
		}
	}
	for name, tc := range map[string]struct {
		limit  Limit
		values []float64
		want   float64
	}{
		"below":     {Limit{Below: true}, []float64{1, 3, 2}, 3},
		"above":     {Limit{}, []float64{2, 1, 3}, 1},
		"the first": {Limit{}, []float64{0, 1}, 0},
		"one":       {Limit{Below: true}, []float64{-1}, -1},
		"not known": {Limit{Below: true}, []float64{1, nan, 2}, nan},
		"none":      {Limit{Below: true}, nil, nan},
	} {
		if got := tc.limit.worst(tc.values); got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
			t.Errorf("%s: the worst is %v, want %v", name, got, tc.want)
		}
	}
}

// Ties by the goal are decided by the mean, and of the mean by the tail.
func TestSecondGoals(t *testing.T) {
	want := map[string]string{"mean": "jct_seconds.p99", "p99": "jct_seconds.mean", "makespan": "jct_seconds.mean", "fair": "jct_seconds.mean"}
	for _, g := range Goals {
		if got := g.second(); got != want[g.Name] {
			t.Errorf("%s, then %s, want %s", g.Name, got, want[g.Name])
		}
	}
}

func TestComparisons(t *testing.T) {
	nan := metrics.Number(math.NaN())
	for name, tc := range map[string]struct {
		c             Comparison
		undecided     bool
		text, against string
	}{
		"equal":               {Comparison{Equal: true, Low: nan, High: nan}, true, "equal", "equal to it in every window"},
		"holds 0":             {Comparison{Change: 0.25, Low: -0.1, High: 0.6}, true, "+25.00 % [-10.00 % to +60.00 %]", "20.00 % better"},
		"begins at 0":         {Comparison{Change: 0.25, Low: 0, High: 0.6}, true, "+25.00 % [+0.00 % to +60.00 %]", "20.00 % better"},
		"ends at 0":           {Comparison{Change: -0.25, Low: -0.5, High: 0}, true, "-25.00 % [-50.00 % to +0.00 %]", "-33.33 % better"},
		"above 0":             {Comparison{Change: 0.25, Low: 0.1, High: 0.6}, false, "+25.00 % [+10.00 % to +60.00 %]", "20.00 % better"},
		"below 0":             {Comparison{Change: -0.2, Low: -0.3, High: -0.1}, false, "-20.00 % [-30.00 % to -10.00 %]", "-25.00 % better"},
		"without an interval": {Comparison{Change: 0.25, Low: nan, High: nan}, false, "+25.00 %", "20.00 % better"},
		"without an end":      {Comparison{Change: 0.25, Low: -0.5, High: metrics.Number(math.Inf(1))}, true, "+25.00 %", "20.00 % better"},
	} {
		if got := tc.c.Undecided(); got != tc.undecided {
			t.Errorf("%s: undecided %v", name, got)
		}
		if text, against := tc.c.Text(), tc.c.against(); text != tc.text || against != tc.against {
			t.Errorf("%s: %q and %q, want %q and %q", name, text, against, tc.text, tc.against)
		}
	}
	if got := (&Comparison{Change: nan, Low: nan, High: nan}).Text(); got != "not comparable" {
		t.Errorf("nothing known: %q", got)
	}
}

// The nearest of the finalists holds limits in the most windows, the first of equal ones.
func TestNearest(t *testing.T) {
	held := func(name string, choosing, heldOut int) Finalist {
		return Finalist{Name: name, Limits: []LimitResult{{Choosing: choosing, HeldOut: heldOut}, {Choosing: 1}}}
	}
	a := &Advice{Finalists: []Finalist{held("a", 1, 1), held("b", 0, 3), held("c", 3, 0)}, Limits: []LimitResult{{Held: true}, {Held: false}}}
	if got := a.Nearest().Name; got != "b" {
		t.Errorf("the nearest is %s", got)
	}
	if a.LimitsHold() || !(&Advice{Limits: []LimitResult{{Held: true}}}).LimitsHold() || !(&Advice{}).LimitsHold() {
		t.Error("limits hold when all do")
	}
	if (&Advice{}).Nearest() != nil {
		t.Error("of none, one is the nearest")
	}
}

func TestResultOf(t *testing.T) {
	values := func(list ...float64) (outcomes []Outcome) {
		for _, v := range list {
			outcomes = append(outcomes, Outcome{Limits: []float64{0, v}})
		}
		return outcomes
	}
	l := Limit{Metric: "fairness.rho_max", Below: true, Bound: 2}
	for name, tc := range map[string]struct {
		choosing, heldOut []Outcome
		want              LimitResult
	}{
		"held":            {values(1, 1.5), values(1.9), LimitResult{Limit: "fairness.rho_max<2", Held: true, Choosing: 2, HeldOut: 1, Worst: 1.9}},
		"not in choosing": {values(1, 2), values(1.9), LimitResult{Limit: "fairness.rho_max<2", Choosing: 1, HeldOut: 1, Worst: 2}},
		"not held out":    {values(1, 1), values(5, 1), LimitResult{Limit: "fairness.rho_max<2", Choosing: 2, HeldOut: 1, Worst: 5}},
	} {
		if got := resultOf(l, 1, tc.choosing, tc.heldOut); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
