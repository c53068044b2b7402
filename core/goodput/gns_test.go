package goodput

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

var approximately = cmpopts.EquateApprox(1e-12, 0)

func TestScatter(t *testing.T) {
	cases := map[string]struct {
		scatter Scatter
		want    Gradients
		wantOK  bool
	}{
		// (3,1) and (1,3): local (10+10)/2 = 10; mean (2,2), total 8; square 2·8-10 = 6, variance (10-8)·4 = 8.
		"two replicas": {ScatterOf([][]float64{{3, 1}, {1, 3}}, 4), Gradients{SquaredNorm: 6, Variance: 8}, true},
		// 1, 2, 6: local 41/3; mean 3, total 9; square (27-41/3)/2 = 20/3, variance (41/3-9)·6/2 = 14.
		"three passes": {ScatterOf([][]float64{{1}, {2}, {6}}, 6), Gradients{SquaredNorm: 20.0 / 3, Variance: 14}, true},
		// 1 and -1: local 1, total 0: the squared norm comes out below 0, which only an average mends.
		"noise alone": {ScatterOf([][]float64{{1}, {-1}}, 2), Gradients{SquaredNorm: -1, Variance: 2}, true},
		// The first case again, at twice a scale of 2.
		"successive steps": {Successive(10, 10, 8, 2), Gradients{SquaredNorm: 6, Variance: 8}, true},
		// 3 of one sample and 1 of three: local (9+3)/4 = 3; mean (3+3)/4, total 2.25; square 2·2.25-3 = 1.5, variance (3-2.25)·2.
		"unequal parts":   {ScatterOf([][]float64{{3}, {1}}, 2, 1, 3), Gradients{SquaredNorm: 1.5, Variance: 1.5}, true},
		"an idle replica": {ScatterOf([][]float64{{3, 1}, {9, 9}, {1, 3}}, 4, 5, 0, 5), Gradients{SquaredNorm: 6, Variance: 8}, true},
		"samples missing": {ScatterOf([][]float64{{3, 1}, {1, 3}}, 4, 5), Gradients{}, false},
		"equal parts":     {ScatterOf([][]float64{{3, 4}, {3, 4}}, 2), Gradients{SquaredNorm: 25}, true},
		"one part":        {ScatterOf([][]float64{{3, 4}}, 1), Gradients{}, false},
		"no part":         {ScatterOf(nil, 1), Gradients{}, false},
		"overflowed":      {ScatterOf([][]float64{{math.Inf(1)}, {1}}, 2), Gradients{}, false},
		"not a number":    {Successive(1, 1, math.NaN(), 1), Gradients{}, false},
		"norm overflows":  {ScatterOf([][]float64{{1e200}, {1}}, 2), Gradients{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := tc.scatter.Estimate()
			if ok != tc.wantOK {
				t.Fatalf("estimate %+v, usable %v, want %v", got, ok, tc.wantOK)
			}
			if diff := cmp.Diff(tc.want, got, approximately); ok && diff != "" {
				t.Errorf("estimate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTracker(t *testing.T) {
	two := func(square, variance float64) Scatter { // an estimate of exactly these at scale 1
		return Scatter{Parts: 2, Local: square + variance, Total: square + variance/2, Scale: 1}
	}
	doubled := func(s Scatter) Scatter {
		s.Scale = 2
		return s
	}
	// With bias correction, two steps at scale 1 weigh 0.999 : 1, whatever came of the start from 0; steps at scale 1
	// and then 2 weigh 0.001·0.998001 : 0.001999.
	cases := map[string]struct {
		observe func(*Tracker)
		want    core.Gradients
	}{
		"nothing":  {func(*Tracker) {}, core.Gradients{}},
		"one step": {func(t *Tracker) { t.Take(two(4, 2)) }, core.Gradients{SquaredNorm: 4, Variance: 1}},
		"two steps": {
			func(t *Tracker) { t.Take(two(4, 2)); t.Take(two(8, 6)) },
			core.Gradients{SquaredNorm: (4*0.999 + 8) / 1.999, Variance: (1*0.999 + 3) / 1.999},
		},
		"a larger step weighs more": {
			func(t *Tracker) { t.Take(two(4, 2)); t.Take(doubled(two(8, 6))) },
			core.Gradients{
				SquaredNorm: (4*0.998001*0.001 + 8*0.001999) / (0.998001*0.001 + 0.001999),
				Variance:    (1*0.998001*0.001 + 6*0.001999) / (0.998001*0.001 + 0.001999),
			},
		},
		"what is not finite is skipped": {
			func(t *Tracker) { t.Take(two(4, 2)); t.Take(two(math.NaN(), 1)); t.Take(two(math.Inf(1), 1)) },
			core.Gradients{SquaredNorm: 4, Variance: 1},
		},
		"values that cannot be": {
			func(t *Tracker) {
				t.Take(Scatter{Parts: 2, Local: 1, Total: 0, Scale: 2})
				t.Take(Scatter{Parts: 2, Local: 0, Total: 1, Scale: 2})
			},
			core.Gradients{SquaredNorm: (-1*0.998001 + 2) / 1.998001, Variance: 1e-6},
		},
		"several parts drop what successive steps told": {
			func(t *Tracker) { t.TakeSuccessive(two(100, 100)); t.Take(two(4, 2)) },
			core.Gradients{SquaredNorm: 4, Variance: 1},
		},
		"but not the other way round": {
			func(t *Tracker) { t.Take(two(4, 2)); t.TakeSuccessive(two(8, 6)) },
			core.Gradients{SquaredNorm: (4*0.999 + 8) / 1.999, Variance: (1*0.999 + 3) / 1.999},
		},
		// (3,1), then (1,3), as in TestScatter.
		"a step in one part is compared with the one before": {
			func(t *Tracker) { t.Observe([][]float64{{3, 1}}, 2); t.Observe([][]float64{{1, 3}}, 2) },
			core.Gradients{SquaredNorm: 6, Variance: 8},
		},
		"unless the batch changed": {
			func(t *Tracker) { t.Observe([][]float64{{3, 1}}, 2); t.Observe([][]float64{{1, 3}}, 1) }, core.Gradients{},
		},
		"or a step in several came between": {
			func(t *Tracker) {
				t.Observe([][]float64{{9, 9}}, 2)
				t.Observe([][]float64{{3, 1}, {1, 3}}, 4)
				t.Observe([][]float64{{9, 9}}, 2)
			},
			core.Gradients{SquaredNorm: 6, Variance: 8},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var tracker Tracker
			tc.observe(&tracker)
			if diff := cmp.Diff(tc.want, Report(&tracker), approximately); diff != "" {
				t.Errorf("statistics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportSumsGroups(t *testing.T) {
	var noisy, still, silent Tracker
	noisy.Take(Scatter{Parts: 2, Local: 10, Total: 8, Scale: 4}) // 6 and 8
	still.Take(Scatter{Parts: 2, Local: 25, Total: 25, Scale: 4})
	want := core.Gradients{SquaredNorm: 31, Variance: 8 + 1e-6}
	if diff := cmp.Diff(want, Report(&noisy, &still, &silent), approximately); diff != "" {
		t.Errorf("statistics (-want +got):\n%s", diff)
	}
}

// Gradients of b samples are drawn as |g|² says plus noise of the variance that b samples leave, initial batch 8. The
// estimates must come near the truth however the batch is cut: over forty seeds, none of them was off by more than 4.5 %.
func TestTrackerFindsTheTruth(t *testing.T) {
	const initial, dimensions, steps = 8, 50, 2000
	want := core.Gradients{SquaredNorm: 4, Variance: 10}
	gradient := func(r *rand.Rand, samples int) []float64 {
		g := make([]float64, dimensions)
		deviation := math.Sqrt(want.Variance * initial / float64(samples) / dimensions)
		for i := range g {
			g[i] = math.Sqrt(want.SquaredNorm/dimensions) + deviation*r.NormFloat64()
		}
		return g
	}
	cases := map[string]struct{ parts, samples int }{
		"four replicas":        {4, 8},
		"sixteen replicas":     {16, 4},
		"two of a large batch": {2, 64},
		"one replica":          {1, 8},
		"one, larger batch":    {1, 32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var tracker Tracker
			for range steps {
				parts := make([][]float64, tc.parts)
				for i := range parts {
					parts[i] = gradient(r, tc.samples)
				}
				tracker.Observe(parts, float64(tc.parts*tc.samples)/initial)
			}
			if diff := cmp.Diff(want, Report(&tracker), cmpopts.EquateApprox(0.06, 0)); diff != "" {
				t.Errorf("statistics (-want +got):\n%s", diff)
			}
		})
	}
}

// A training that learned much in few steps is followed: a thousand before do not weigh on the report for long.
func TestTrackerFollows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var tracker Tracker
	learn := func(steps int, truth core.Gradients) {
		for range steps {
			square, variance := truth.SquaredNorm*(1+0.2*r.NormFloat64()), truth.Variance*(1+0.2*r.NormFloat64())
			tracker.Take(Scatter{Parts: 2, Local: square + 2*variance, Total: square + variance, Scale: 1})
		}
	}
	learn(1000, core.Gradients{SquaredNorm: 4, Variance: 10})
	want := core.Gradients{SquaredNorm: 1, Variance: 9}
	learn(120, want)
	if diff := cmp.Diff(want, Report(&tracker), cmpopts.EquateApprox(0.15, 0)); diff != "" {
		t.Errorf("statistics (-want +got):\n%s", diff)
	}
}

// A tracker that went through a checkpoint reports the same, now and after further steps in several parts.
func TestTrackerIsKept(t *testing.T) {
	for name, parts := range map[string][][]float64{"several parts": {{3, 1}, {1, 3}}, "one part": {{3, 1}}} {
		var before, after Tracker
		for _, shift := range []float64{0, 0.5, 0.1} {
			for _, part := range parts {
				part[0] += shift
			}
			before.Observe(parts, 2)
		}
		text, err := json.Marshal(&before)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &after); err != nil {
			t.Fatal(err)
		}
		if got, want := Report(&after), Report(&before); got != want || want.Variance == 0 {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		step := Scatter{Parts: 2, Local: 7, Total: 5, Scale: 2}
		before.Take(step)
		after.Take(step)
		if got, want := Report(&after), Report(&before); got != want {
			t.Errorf("%s, a step later: %+v, want %+v", name, got, want)
		}
	}
	if err := json.Unmarshal([]byte(`{"square": "much"}`), new(Tracker)); err == nil {
		t.Error("garbage is a tracker")
	}
}

// The same of unequal parts.
func TestUnequalPartsTellTheTruth(t *testing.T) {
	want := core.Gradients{SquaredNorm: 4, Variance: 10} // at the initial batch of 1
	r := rand.New(rand.NewPCG(1, 2))
	samples, all := []int{1, 8, 3, 0, 20}, 32
	var tracker Tracker
	for range 2000 {
		parts := make([][]float64, len(samples))
		for i, n := range samples {
			parts[i] = make([]float64, 50)
			for d := range parts[i] {
				parts[i][d] = math.Sqrt(want.SquaredNorm/50) + math.Sqrt(want.Variance/50/math.Max(float64(n), 1))*r.NormFloat64()
			}
		}
		tracker.Take(ScatterOf(parts, float64(all), samples...))
	}
	if diff := cmp.Diff(want, Report(&tracker), cmpopts.EquateApprox(0.08, 0)); diff != "" {
		t.Errorf("statistics (-want +got):\n%s", diff)
	}
}

// Successive compares the gradients of two steps of a job on a single replica without accumulation, given the squared
// norms of both and of their mean; scale is that of one step. It takes the parameters for unchanged in between, which
// biases the estimate.
func Successive(previous, current, mean, scale float64) Scatter {
	return Scatter{Parts: 2, Local: (previous + current) / 2, Total: mean, Scale: 2 * scale}
}
