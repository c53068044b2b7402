package goodput

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func measured(nodes, replicas, batch int, pass, step float64) core.Measurement {
	return core.Measurement{Nodes: nodes, Replicas: replicas, PerDevice: batch, PassSeconds: pass, StepSeconds: step}
}

// A measurement of three reports counts as three, where reports differ; where none does, one is as good as many.
func TestReportsWeigh(t *testing.T) {
	once, more := measured(1, 1, 8, 1, 1.5), measured(1, 2, 16, 3, 4)
	p := Performance{0.5, 0.2, 0.3, 0.1, 0.2, 0.1, 2}
	plain := []core.Measurement{once, more}
	repeated := []core.Measurement{once, more, more, more}
	more.Count = 3
	if got, want := objective([]core.Measurement{once, more}, p), objective(plain, p); got != want {
		t.Errorf("without a spread: objective %v, want %v", got, want)
	}
	more.Spread = 0.1
	for name, seen := range map[string][]core.Measurement{"first": {more, once}, "last": {once, more}} {
		if got, want := objective(seen, p), objective(repeated, p); math.Abs(got-want) > 1e-12 {
			t.Errorf("with a spread %s: objective %v, want %v", name, got, want)
		}
	}
}

// The gradient of the objective is that of its differences, for measurements of unequal weight, too.
func TestGradientIsThatOfDifferences(t *testing.T) {
	seen := []core.Measurement{measured(1, 1, 8, 1, 1.5), measured(1, 4, 16, 3, 4), measured(2, 4, 32, 6, 9)}
	seen[1].Count, seen[1].Spread = 5, 0.1
	f := newFitting(seen)
	p := Performance{0.5, 0.2, 0.3, 0.1, 0.2, 0.1, 2}
	var y, gradient vector
	for i, x := range p.vector() {
		y[i] = math.Log(x)
	}
	f.evaluateWithGradient(&y, &gradient)
	const h = 1e-6
	for i := range y {
		up, down := y, y
		up[i] += h
		down[i] -= h
		if want := (f.evaluate(&up, &point{}) - f.evaluate(&down, &point{})) / (2 * h); math.Abs(gradient[i]-want) > 1e-6 {
			t.Errorf("parameter %d: slope %v, want %v", i, gradient[i], want)
		}
	}
}

// Where the model is exact there is no error to go down from: with all parameters 1 a pass over one sample takes 2 s, and so
// does the synchronisation of three replicas.
func TestNoSlopeWithoutAnError(t *testing.T) {
	f := newFitting([]core.Measurement{measured(1, 3, 1, 2, 4)})
	var y, gradient vector
	f.evaluateWithGradient(&y, &gradient)
	want := vector{betaNode: 2e-2, alphaNode: -2e-2, betaLocal: 2e-2, alphaLocal: -2e-2}
	if gradient != want {
		t.Errorf("slopes %v, want those of the regularisation alone, %v", gradient, want)
	}
}

// Half of a quick pass is taken to be constant; synchronisation takes what a step takes beyond its pass, a hundredth at least.
func TestQuickPassesStartNearby(t *testing.T) {
	quickly := []core.Measurement{measured(1, 2, 10, 4e-4, 10e-4), measured(1, 2, 30, 8e-4, 8e-4)}
	cases := map[string]struct {
		seen []core.Measurement
		want vector
	}{
		"slow":        {[]core.Measurement{measured(1, 1, 8, 1, 1)}, coldStart},
		"just slow":   {[]core.Measurement{measured(1, 1, 8, quick, quick)}, coldStart},
		"quick":       {quickly, vector{3e-4, 3e-4 / 20, 3.04e-4, 3.04e-5, 3.04e-4, 3.04e-5, 1.1}}, // (6e-4 + 8e-6)/2
		"tiny batch":  {[]core.Measurement{measured(1, 1, 0, 2e-4, 2e-4)}, vector{1e-4, 1e-4, 2e-6, 2e-7, 2e-6, 2e-7, 1.1}},
		"on average":  {[]core.Measurement{measured(1, 1, 8, 1e-4, 1), measured(1, 1, 8, 19e-4+1e-6, 1)}, coldStart},
		"nearly slow": {[]core.Measurement{measured(1, 1, 1, 8e-4, 18e-4)}, vector{4e-4, 4e-4, 1e-3, 1e-4, 1e-3, 1e-4, 1.1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, newFitting(tc.seen).start(), approximately); diff != "" {
				t.Errorf("start (-want +got):\n%s", diff)
			}
		})
	}
}

// What was never seen is free; several nodes are a tenth slower than one where none were seen.
func TestTheUnseenIsFree(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got/want-1) < 1e-6 }
	one := Fit([]core.Measurement{measured(1, 1, 8, 1, 1), measured(1, 1, 16, 2, 2)})
	if !near(one.AlphaLocal, tiny) || !near(one.BetaLocal, tiny) || !near(one.AlphaNode, 1.1*tiny) || !near(one.BetaNode, 1.1*tiny) {
		t.Errorf("of one replica: %+v", one)
	}
	two := Fit([]core.Measurement{measured(2, 2, 8, 1, 1.5), measured(2, 2, 16, 2, 2.5)})
	if !near(two.AlphaLocal, tiny) || !near(two.BetaLocal, tiny) || two.AlphaNode < 0.1 || !near(two.BetaNode, tiny) {
		t.Errorf("of two nodes: %+v", two)
	}
	four := Fit([]core.Measurement{measured(2, 4, 8, 1, 1.5), measured(2, 3, 16, 2, 2.5)})
	if !near(four.AlphaLocal, tiny) || !near(four.BetaLocal, tiny) {
		t.Errorf("of four replicas on two nodes: %+v", four)
	}
	local := Fit([]core.Measurement{measured(1, 2, 8, 1, 1.5), measured(1, 4, 8, 1, 1.5)})
	if !near(local.AlphaNode, 1.1*local.AlphaLocal) || !near(local.BetaNode, math.Max(1.1*local.BetaLocal, tiny)) {
		t.Errorf("of four replicas on one node: %+v", local)
	}
}

// A step of the search is as long as it may be where that goes downhill: e² for a known curvature, √e for none.
func TestSearchSteps(t *testing.T) {
	f := newFitting([]core.Measurement{measured(1, 1, 8, 1e6, 1e6), measured(1, 1, 16, 2e6, 2e6)})
	var y, g vector
	for i, x := range coldStart {
		y[i] = math.Min(math.Max(math.Log(x), f.low[i]), f.high[i])
	}
	value := f.evaluateWithGradient(&y, &g)
	cases := map[string]struct {
		length float64
		fresh  bool
		want   float64
	}{
		"far":              {8, false, 2},
		"as far as it may": {2, false, 2},
		"near":             {0.25, false, 0.25},
		"far, afresh":      {8, true, 0.5},
		"near, afresh":     {0.25, true, 0.25},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var direction, next vector
			direction[alphaGrad], direction[betaGrad] = tc.length/2, tc.length
			slope := direction[alphaGrad]*g[alphaGrad] + direction[betaGrad]*g[betaGrad]
			better, found := f.search(&y, &direction, value, slope, tc.fresh, &next, &point{})
			if !found || better >= value || math.Abs(next[betaGrad]-y[betaGrad]-tc.want) > 1e-12 || math.Abs(next[alphaGrad]-y[alphaGrad]-tc.want/2) > 1e-12 {
				t.Errorf("from %v (%v) to %v (%v), found %v; want a step of %v", y, value, next, better, found, tc.want)
			}
		})
	}
	var uphill, next vector
	uphill[betaGrad] = -1
	if _, found := f.search(&y, &uphill, value, -g[betaGrad], true, &next, &point{}); found {
		t.Error("found a decrease uphill")
	}
}

// A coordinate is free inside its box, and at a bound when it goes inwards.
func TestFreeCoordinates(t *testing.T) {
	f := &fitting{}
	for i := range f.low {
		f.low[i], f.high[i] = -1, 1
	}
	f.low[6], f.high[6] = 0.5, 0.5
	y := vector{0, -1, -1, 1, 1, 0, 0.5}
	g := vector{1, 1, -1, -1, 1, -1, 1}
	if got, want := f.free(&y, &g), [dimensions]bool{true, false, true, false, true, true, false}; got != want {
		t.Errorf("free %v, want %v", got, want)
	}
	var direction vector
	inverse, free := identity(), f.free(&y, &g)
	if slope := descend(&direction, &inverse, &g, &free); direction != (vector{-1, 0, 1, 0, -1, 1, 0}) || slope != -4 {
		t.Errorf("direction %v with slope %v", direction, slope)
	}
}

// What update learns of the curvature explains the step that it learned from.
func TestUpdateExplainsTheStep(t *testing.T) {
	inverse := identity()
	y, next := vector{}, vector{1, 2, 0, 0, 1, 0, 0}
	g, nextG := vector{}, vector{2, 1, 1, 0, 3, 0, 0}
	if !update(&inverse, &y, &next, &g, &nextG) {
		t.Fatal("no curvature")
	}
	for i := range inverse {
		got := 0.0
		for j := range nextG {
			got += inverse[i][j] * nextG[j]
		}
		if math.Abs(got-next[i]) > 1e-12 {
			t.Errorf("coordinate %d: %v, want %v", i, got, next[i])
		}
	}
	kept := inverse
	if update(&inverse, &y, &next, &g, &g) || update(&inverse, &y, &next, &nextG, &g) || inverse != kept {
		t.Error("no curvature, or a negative one, was taken in")
	}
}

// Powers of times that lie far apart overflow; their sum does not.
func TestStepTimesDoNotOverflow(t *testing.T) {
	p := Performance{AlphaGrad: 1e-40, BetaGrad: 1e-60, AlphaNode: 3, BetaNode: 1, AlphaLocal: 1e-90, BetaLocal: 1e-99, Gamma: 10}
	if got := p.StepTime(2, 2, 1, 0); math.Abs(got-3) > 1e-6 {
		t.Errorf("synchronisation dominates: %v s, want 3", got)
	}
	if got := p.StepTime(1, 2, 1, 0); math.Abs(got/1e-40-1) > 1e-6 {
		t.Errorf("computation dominates: %v s, want 1e-40", got)
	}
	if got := (Gradients{}).Gain(3); got != 1 {
		t.Errorf("a gain of %v where nothing is known, want 1", got)
	}
}

// objective is what Fit minimises, for given parameters.
func objective(seen []core.Measurement, p Performance) float64 {
	f := newFitting(seen)
	var y vector
	for i, x := range p.vector() {
		y[i] = math.Log(x)
	}
	return f.evaluate(&y, &point{})
}

// evaluateWithGradient returns the objective at y and sets its gradient there.
func (f *fitting) evaluateWithGradient(y, gradient *vector) float64 {
	var at point
	value := f.evaluate(y, &at)
	f.gradient(&at, gradient)
	return value
}
