package goodput

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// Times that differ by a factor of e^2.4 for the same batch are each off by 1.2 from the fit between them; gains of 1 and 4, by ln 2 from
// the noise between.
func TestFitProfileTellsWhatIsLeft(t *testing.T) {
	limits := BatchLimits{Initial: 10, Max: 80, MinPerDevice: 5, MaxPerDevice: 20}
	slow := math.Exp(2.4)
	seen := []core.Measurement{measured(1, 1, 10, 1, 1), measured(1, 1, 10, slow, slow)}
	training := func(g Gradients) Training {
		return Training{Batch: 40, Epochs: []Epoch{{Progress: 100, Gradients: g}, {Progress: 200, Gradients: g}}}
	}
	trainings := []Training{training(Gradients{SquaredNorm: 1}), training(Gradients{Variance: 1})}
	p, err := FitProfile("mine", limits, 8, seen, trainings)
	if err != nil {
		t.Fatal(err)
	}
	want := Residuals{Points: 2, Pass: 1.2, Step: 1.2, Gain: rounded(math.Ln2)}
	if diff := cmp.Diff(want, p.Residuals, cmpopts.EquateApprox(1e-4, 0)); diff != "" {
		t.Errorf("residuals (-want +got):\n%s", diff)
	}
	for i, x := range p.Performance.vector() {
		if x != rounded(x) {
			t.Errorf("parameter %d is %v", i, x)
		}
	}
	if len(p.Noise) != 2 { // the noise is the same in both epochs
		t.Errorf("noise %+v", p.Noise)
	}
}

// A noise that does not change needs two points, however many epochs there are.
func TestFlatNoiseIsShort(t *testing.T) {
	p := Profile{Batch: BatchLimits{Initial: 10, Max: 80}, Epochs: 9}
	training := Training{Batch: 40}
	for range p.Epochs {
		training.Epochs = append(training.Epochs, Epoch{Gradients: Gradients{SquaredNorm: 1, Variance: 3}})
	}
	p.fitNoise([]Training{training})
	if len(p.Noise) != 2 || math.Abs(p.Noise[0].Samples/30-1) > 1e-5 || p.Noise[1].Samples != p.Noise[0].Samples {
		t.Errorf("noise %+v, want two points of 30 samples", p.Noise)
	}
}

// A profile that was not read from a file is held to the same bounds.
func TestValidateHoldsTheOverlap(t *testing.T) {
	p, err := ReadProfile("p.yaml", []byte(validProfile))
	if err != nil {
		t.Fatal(err)
	}
	p.Performance.Gamma = 0.5
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "performance.gamma: must be at least 1") {
		t.Errorf("validated with %v", err)
	}
}

func TestNumbersAreShort(t *testing.T) {
	p := Profile{Noise: []NoisePoint{{Progress: 0.5, Samples: 1e6}}, IterationsPerEpoch: 2e7}
	for _, want := range []string{"{progress: 0.5, samples: 1e+06}", "iterations_per_epoch: 2e+07"} {
		if !bytes.Contains(p.YAML(), []byte(want)) {
			t.Errorf("no %q in\n%s", want, p.YAML())
		}
	}
}

// Estimates that are not finite, or whose squares are not, tell nothing.
func TestOverflowsTellNothing(t *testing.T) {
	cases := map[string]struct {
		scatter  Scatter
		estimate bool
	}{
		"square":           {Scatter{Parts: 2, Local: 1e308, Total: 1e308, Scale: 2}, false},
		"variance":         {Scatter{Parts: 2, Local: 1e10, Total: 1, Scale: 1e300}, false},
		"square squared":   {Scatter{Parts: 2, Local: 1e200, Total: 1e200, Scale: 2}, true},
		"variance squared": {Scatter{Parts: 2, Local: 2, Total: 1.5, Scale: 1e200}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if g, ok := tc.scatter.Estimate(); ok != tc.estimate {
				t.Errorf("estimate %+v, usable %v", g, ok)
			}
			var tracker Tracker
			tracker.Take(tc.scatter)
			if got := Report(&tracker); got != (core.Gradients{}) {
				t.Errorf("reports %+v", got)
			}
		})
	}
}

// A checkpoint that knows only one of the two is as good as none.
func TestHalfACheckpoint(t *testing.T) {
	for _, half := range []string{"square", "variance"} {
		var tracker Tracker
		one := `{"sum": 1, "squares": 1, "weight": 1, "weights": 0.1}`
		text := `{"` + half + `": [` + strings.Repeat(one+",", len(memories)-1) + one + `]}`
		if err := json.Unmarshal([]byte(text), &tracker); err != nil {
			t.Fatal(err)
		}
		if got := Report(&tracker); got != (core.Gradients{}) {
			t.Errorf("of a %s alone it reports %+v", half, got)
		}
	}
}

// The shortest average stands for six steps: mean 10, variance 24, so that it lies within 1.5·√(24/6) = 3 of it.
func TestTheLongestThatAgrees(t *testing.T) {
	short := average{Sum: 7.5, Squares: 0.75 * 124, Weight: 0.75, Weights: 0.09375}
	cases := map[string]struct {
		short average
		long  float64
		want  float64
	}{
		"agrees":              {short, 8, 8},
		"agrees from above":   {short, 12, 12},
		"just agrees":         {short, 7, 7},
		"just agrees, above":  {short, 13, 13},
		"too low":             {short, 6.9, 10},
		"too high":            {short, 13.1, 10},
		"of four steps only":  {average{Sum: 5, Squares: 50, Weight: 0.5, Weights: 0.0625}, 4, 4},
		"of none":             {average{}, 4, 4},
		"without a deviation": {average{Sum: 5, Squares: 50, Weight: 0.5, Weights: 0.015625}, 4, 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var a averages
			a[0] = tc.short
			a[len(a)-1] = average{Sum: tc.long, Squares: tc.long * tc.long, Weight: 1, Weights: 0.03125}
			if got := a.value(); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
