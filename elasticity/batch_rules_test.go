package elasticity

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// ruleOf is a rule whose settings differ from the defaults by what is given.
func ruleOf(t rapid.TB, settings map[string]any) BatchRule {
	t.Helper()
	config, problems := NewBatchRule().Decode(settings)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return config.(*BatchRuleConfig).rule()
}

// batches are those of epochs before which the gradients were so.
func batches(rule BatchRule, limits core.BatchSpec, before []core.Gradients) (list []int) {
	s := BatchState{Limits: limits, Epochs: len(before), Batch: limits.Initial}
	for s.Epoch = range before {
		s.Gradients = before[s.Epoch]
		s.Batch = rule.Next(&s)
		list = append(list, s.Batch)
	}
	return list
}

func TestBatchRules(t *testing.T) {
	limits := core.BatchSpec{Initial: 100, Max: 1000}
	none := core.Gradients{}
	// noiseOf are gradients with such a noise scale at an initial batch of 100.
	noiseOf := func(samples float64) core.Gradients { return core.Gradients{SquaredNorm: 2, Variance: samples / 50} }
	norm := func(norm float64) core.Gradients { return core.Gradients{SquaredNorm: norm * norm, Variance: 1} }
	cases := map[string]struct {
		settings map[string]any
		before   []core.Gradients
		want     []int
	}{
		"doubled each fifth": {
			map[string]any{"rule": ruleSchedule},
			make([]core.Gradients, 10),
			[]int{100, 100, 200, 200, 400, 400, 800, 800, 1000, 1000},
		},
		"times five each third": {
			map[string]any{"rule": ruleSchedule, "parts": 3, "factor": 5.0},
			make([]core.Gradients, 6),
			[]int{100, 100, 500, 500, 1000, 1000},
		},
		"parts that do not divide the epochs": {
			map[string]any{"rule": ruleSchedule, "parts": 3, "factor": 2.0},
			make([]core.Gradients, 4),
			[]int{100, 100, 200, 400},
		},
		"more parts than epochs": {
			map[string]any{"rule": ruleSchedule, "parts": 4, "factor": 2.0},
			make([]core.Gradients, 2),
			[]int{100, 400},
		},
		"a factor that is not whole": {
			map[string]any{"rule": ruleSchedule, "parts": 2, "factor": 1.333},
			make([]core.Gradients, 2),
			[]int{100, 134},
		},
		"noise": {
			map[string]any{"rule": ruleNoise},
			[]core.Gradients{none, noiseOf(400), noiseOf(150.5), noiseOf(50), none, noiseOf(5000), {SquaredNorm: 0, Variance: 1}, {SquaredNorm: 3, Variance: 4}},
			[]int{100, 400, 151, 100, 100, 1000, 1000, 134},
		},
		"noise known from the start": {map[string]any{"rule": ruleNoise}, []core.Gradients{noiseOf(300), none}, []int{300, 300}},
		"doubling": {
			map[string]any{"rule": ruleNoiseDoubling},
			[]core.Gradients{none, noiseOf(199), noiseOf(200), noiseOf(399), noiseOf(900), none, {SquaredNorm: 0, Variance: 1}, noiseOf(1600), noiseOf(5000), noiseOf(1)},
			[]int{100, 100, 200, 200, 400, 400, 800, 1000, 1000, 1000},
		},
		"averaged noise": {
			map[string]any{"rule": ruleAveragedNoise, "keep": 0.5},
			[]core.Gradients{none, {SquaredNorm: 1, Variance: 2}, {SquaredNorm: 1, Variance: 6}, none, {SquaredNorm: 3, Variance: 4}},
			[]int{100, 200, 400, 400, 200},
		},
		"averaged noise without a memory": {
			map[string]any{"rule": ruleAveragedNoise, "keep": 0.0},
			[]core.Gradients{noiseOf(200), noiseOf(600)},
			[]int{200, 600},
		},
		// Checked before epochs 2, 4, 6 and 8. The first norm has nothing to be compared with; 2 to 1 and 1 to 1.5 are half, 1.5 to 2.2 is less.
		"critical regime": {
			map[string]any{"rule": ruleCriticalRegime, "checks": 5},
			[]core.Gradients{norm(9), norm(9), norm(2), norm(9), norm(1), norm(9), norm(1.5), norm(9), norm(2.2), norm(9)},
			[]int{100, 100, 100, 100, 100, 100, 100, 100, 1000, 1000},
		},
		"critical again": {
			map[string]any{"rule": ruleCriticalRegime, "checks": 4},
			[]core.Gradients{none, norm(2), norm(2), norm(3.1)},
			[]int{100, 100, 1000, 100},
		},
		"a smaller change is critical": {
			map[string]any{"rule": ruleCriticalRegime, "checks": 3, "change": 0.1},
			[]core.Gradients{none, norm(2), norm(2.2)},
			[]int{100, 100, 100},
		},
		"no gradients": {map[string]any{"rule": ruleCriticalRegime, "checks": 4}, make([]core.Gradients, 4), []int{100, 100, 100, 100}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, batches(ruleOf(t, tc.settings), limits, tc.before)); diff != "" {
				t.Errorf("batches by epoch (-want +got):\n%s", diff)
			}
		})
	}
}

// The noise scale is where half of the samples of a step are wasted: there the efficiency of Pollux, (noise + initial)/(noise + batch),
// is half of what it is at a batch of next to nothing.
func TestNoiseIsWhereHalfIsWasted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		initial := rapid.IntRange(1, 1000).Draw(t, "initial")
		g := core.Gradients{SquaredNorm: rapid.Float64Range(1e-3, 1e3).Draw(t, "square"), Variance: rapid.Float64Range(1e-3, 1e6).Draw(t, "variance")}
		needed := func(batch float64) float64 { return g.Variance*float64(initial)/batch + g.SquaredNorm } // to gain what one step does, in steps of this batch
		samples := func(batch float64) float64 { return batch * needed(batch) }
		b, few := noise(g, initial), 1e-9
		if ratio := samples(b) / samples(few*b); math.Abs(ratio-2) > 1e-6 {
			t.Errorf("at the noise scale %v a job needs %v times the samples, want 2", b, ratio)
		}
	})
}

func drawGradients(t *rapid.T) core.Gradients {
	value := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1), rapid.Float64Range(0, 1e18))
	return core.Gradients{SquaredNorm: value.Draw(t, "square"), Variance: value.Draw(t, "variance")}
}

var ruleNames = []string{ruleSchedule, ruleNoise, ruleNoiseDoubling, ruleAveragedNoise, ruleCriticalRegime}

func drawRule(t *rapid.T) (string, BatchRule) {
	name := rapid.SampledFrom(ruleNames).Draw(t, "rule")
	return name, ruleOf(t, map[string]any{
		"rule": name, "parts": rapid.IntRange(1, 20).Draw(t, "parts"), "factor": rapid.Float64Range(1, 1000).Draw(t, "factor"),
		"keep": rapid.Float64Range(0, 1).Draw(t, "keep"), "checks": rapid.IntRange(1, 20).Draw(t, "checks"), "change": rapid.Float64Range(0, 2).Draw(t, "change"),
	})
}

// Whatever the gradients, a batch is within its bounds; a schedule and doublings never shrink it, doublings double it at most, and the
// critical regime knows two batches.
func TestBatchRulesKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		initial := rapid.IntRange(1, 1000).Draw(t, "initial")
		limits := core.BatchSpec{Initial: initial, Max: rapid.IntRange(initial, 100_000).Draw(t, "max")}
		name, rule := drawRule(t)
		before := initial
		for i, batch := range batches(rule, limits, rapid.SliceOfN(rapid.Custom(drawGradients), 1, 40).Draw(t, "gradients")) {
			if batch < limits.Initial || batch > limits.Max {
				t.Fatalf("epoch %d: a batch of %d, outside %d to %d", i, batch, limits.Initial, limits.Max)
			}
			switch {
			case (name == ruleSchedule || name == ruleNoiseDoubling) && batch < before:
				t.Fatalf("epoch %d: the batch shrinks from %d to %d", i, before, batch)
			case name == ruleNoiseDoubling && batch > 2*before:
				t.Fatalf("epoch %d: the batch grows from %d to %d", i, before, batch)
			case name == ruleCriticalRegime && batch != limits.Initial && batch != limits.Max:
				t.Fatalf("epoch %d: a batch of %d", i, batch)
			}
			before = batch
		}
	})
}

// More noise never makes the batch of a rule that follows it smaller.
func TestBatchRulesGrowWithTheNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := core.BatchSpec{Initial: 10, Max: 5000}
		rule := ruleOf(t, map[string]any{"rule": rapid.SampledFrom([]string{ruleNoise, ruleNoiseDoubling, ruleAveragedNoise}).Draw(t, "rule")})
		less := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Gradients {
			return core.Gradients{SquaredNorm: rapid.Float64Range(0.1, 10).Draw(t, "square"), Variance: rapid.Float64Range(0, 1000).Draw(t, "variance")}
		}), 1, 20).Draw(t, "gradients")
		more := slices.Clone(less)
		factor := rapid.Float64Range(1, 10).Draw(t, "factor")
		for i := range more {
			more[i].Variance *= factor
		}
		small, large := batches(rule, limits, less), batches(rule, limits, more)
		for i := range small {
			if small[i] > large[i] {
				t.Fatalf("epoch %d: %d with more noise, %d with less", i, large[i], small[i])
			}
		}
	})
}
