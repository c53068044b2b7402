package goodput

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// drawPerformance draws parameters under which several nodes are no faster than one.
func drawPerformance(t *rapid.T) Performance {
	part := rapid.Float64Range(0.01, 1)
	p := Performance{
		AlphaGrad: part.Draw(t, "alpha grad"), BetaGrad: part.Draw(t, "beta grad") / 50, AlphaLocal: part.Draw(t, "alpha local"),
		BetaLocal: part.Draw(t, "beta local") / 50, Gamma: rapid.Float64Range(1, 10).Draw(t, "gamma"),
	}
	p.AlphaNode = p.AlphaLocal * rapid.Float64Range(1, 5).Draw(t, "node over local")
	p.BetaNode = p.BetaLocal * rapid.Float64Range(1, 5).Draw(t, "node over local")
	return p
}

func drawGradients(t *rapid.T) Gradients {
	return Gradients{SquaredNorm: rapid.Float64Range(1e-3, 10).Draw(t, "square"), Variance: rapid.Float64Range(0, 1e3).Draw(t, "variance")}
}

func drawLimits(t *rapid.T) core.BatchSpec {
	b := core.BatchSpec{Initial: rapid.IntRange(8, 200).Draw(t, "initial"), MinPerDevice: rapid.IntRange(1, 8).Draw(t, "least")}
	b.Max = b.Initial * rapid.IntRange(1, 64).Draw(t, "times")
	b.MaxPerDevice = b.MinPerDevice + rapid.IntRange(8, 200).Draw(t, "room")
	return b
}

// measure is what a job with given parameters measures on some configurations.
func measure(t *rapid.T, p *Performance, mostNodes, mostReplicas int) []core.Measurement {
	var seen []core.Measurement
	for range rapid.IntRange(1, 8).Draw(t, "measurements") {
		m := core.Measurement{Replicas: rapid.IntRange(1, mostReplicas).Draw(t, "replicas"), PerDevice: rapid.IntRange(1, 200).Draw(t, "per device")}
		m.Nodes = rapid.IntRange(1, min(m.Replicas, mostNodes)).Draw(t, "nodes")
		b := float64(m.PerDevice)
		m.PassSeconds = p.GradTime(b) * rapid.Float64Range(0.9, 1.1).Draw(t, "error")
		m.StepSeconds = max(p.StepTime(m.Nodes, m.Replicas, b, 0)*rapid.Float64Range(0.9, 1.1).Draw(t, "error"), m.PassSeconds)
		seen = append(seen, m)
	}
	return seen
}

// The best batch is no worse than any that may be chosen, and next to the best of all batches there are.
func TestBestBatchIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Model{Performance: drawPerformance(t), Gradients: drawGradients(t), Limits: drawLimits(t)}
		l := m.Limits
		replicas := rapid.IntRange(1, max(l.Max/l.MinPerDevice, 1)).Draw(t, "replicas")
		nodes := rapid.IntRange(1, min(replicas, 2)).Draw(t, "nodes")
		goodput := func(perDevice, accumulation int) float64 {
			scale := float64(replicas*perDevice*(accumulation+1)) / float64(l.Initial)
			return m.Performance.Throughput(nodes, replicas, float64(perDevice), accumulation) * m.Gradients.Efficiency(scale)
		}
		best := m.Best(nodes, replicas)
		tried := 0
		m.each(replicas, func(c Choice) {
			tried++
			if g := goodput(c.PerDevice, c.Accumulation); g > best.Goodput*(1+1e-9) {
				t.Errorf("%d samples, %d passes more reach %v, the best %v", c.PerDevice, c.Accumulation, g, best.Goodput)
			}
		})
		if tried == 0 {
			return // the initial batch fits on no device
		}
		if g := goodput(best.PerDevice, best.Accumulation); math.Abs(g/best.Goodput-1) > 1e-9 {
			t.Errorf("%+v reaches %v", best, g)
		}
		all := 0.0
		for accumulation := 0; accumulation <= l.Max/(replicas*l.MinPerDevice); accumulation++ {
			if replicas == 1 && accumulation == 0 {
				continue // tells nothing of the variance
			}
			for b := l.MinPerDevice; b <= l.MaxPerDevice; b++ {
				if total := replicas * b * (accumulation + 1); total >= l.Initial && total <= l.Max {
					all = max(all, goodput(b, accumulation))
				}
			}
		}
		if best.Goodput < 0.9*all {
			t.Errorf("the best of %d settings reaches %v, the best of all %v", tried, best.Goodput, all)
		}
	})
}

// A job is no faster across nodes than on one. Where further replicas cost nothing, more are no slower, but for what
// whole samples lose.
func TestCurvesAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPerformance(t)
		if rapid.Bool().Draw(t, "fitted") {
			p = Fit(measure(t, &p, 1, 2))
		}
		limits := core.BatchSpec{Initial: 2000, Max: 2000 * rapid.IntRange(1, 16).Draw(t, "times"), MinPerDevice: 1, MaxPerDevice: rapid.IntRange(1000, 5000).Draw(t, "room")}
		grid, g := NewGrid(limits, 16), drawGradients(t)
		c := NewCurves(grid, p, g, 16)
		for r, one := range c.Goodput[OneNode] {
			if many := c.Goodput[ManyNodes][r]; r > 0 && many > one*(1+1e-9) {
				t.Errorf("%d replicas: %v on one node, %v across", r+1, one, many)
			}
		}
		p.BetaLocal, p.BetaNode = tiny, tiny
		c = NewCurves(grid, p, g, 16)
		for shape := range c.Goodput {
			for r := 2; r < 16; r++ {
				if fewer, more := c.Goodput[shape][r-1], c.Goodput[shape][r]; more < fewer*0.98 {
					t.Errorf("shape %d: %v on %d replicas, %v on %d", shape, fewer, r, more, r+1)
				}
			}
		}
	})
}

// New statistics on old curves are as curves made anew, and every point is that of Best.
func TestCurvesAreThoseOfTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, limits := drawPerformance(t), drawLimits(t)
		grid := NewGrid(limits, 12)
		updated, g := NewCurves(grid, p, drawGradients(t), 8), drawGradients(t)
		updated.Update(g)
		m := Model{Performance: p, Gradients: g, Limits: limits}
		for shape, length := range [2]int{12, 8} {
			if len(updated.Goodput[shape]) != length {
				t.Errorf("shape %d: %d points, want %d", shape, len(updated.Goodput[shape]), length)
			}
			for r, got := range updated.Choices[shape] {
				want := m.Best(1+shape, r+1)
				again := m.goodput(r+1, got, math.Log(p.SyncTime(1+shape, r+1))) // of settings that tie but for rounding, either will do
				if math.Abs(got.Goodput-want.Goodput) > 1e-12*want.Goodput || math.Abs(again-want.Goodput) > 1e-12*want.Goodput {
					t.Errorf("shape %d, %d replicas: %+v, want %+v", shape, r+1, got, want)
				}
			}
		}
	})
}

func TestEfficiencyIsAPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, scale := drawGradients(t), rapid.Float64Range(1, 1e4).Draw(t, "scale")
		if e := g.Efficiency(scale); !(e > 0) || e > 1+1e-12 {
			t.Errorf("efficiency %v at scale %v", e, scale)
		}
		if e := g.Efficiency(1); math.Abs(e-1) > 1e-12 {
			t.Errorf("efficiency %v at the initial batch", e)
		}
	})
}

// A fit is no worse than where it began, within bounds, and takes what was never seen to be free.
func TestFitKeepsItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := drawPerformance(t)
		seen := measure(t, &truth, rapid.IntRange(1, 4).Draw(t, "most nodes"), rapid.IntRange(1, 16).Draw(t, "most replicas"))
		f := newFitting(seen)
		var start vector
		for i, x := range coldStart {
			start[i] = math.Min(math.Max(math.Log(x), f.low[i]), f.high[i])
		}
		_, reached := f.minimise(coldStart)
		if began := f.evaluate(&start, &point{}); reached > began+1e-12 {
			t.Errorf("objective %v, began at %v", reached, began)
		}
		oneBatch, nodes, local, many := true, false, false, false
		for _, m := range seen {
			oneBatch = oneBatch && m.PerDevice == seen[0].PerDevice
			nodes, local, many = nodes || m.Nodes > 1, local || m.Nodes == 1 && m.Replicas > 1, many || m.Replicas > 2
		}
		p := Fit(seen)
		free := func(name string, value float64, isFree bool) {
			if isFree && math.Abs(value/tiny-1) > 1e-6 {
				t.Errorf("%s is %v, want nothing: it was never seen", name, value)
			}
		}
		free("alpha_local", p.AlphaLocal, !local)
		free("beta_local", p.BetaLocal, !local || !many)
		free("beta_node", p.BetaNode, nodes && !many)
		if !nodes && (p.AlphaNode < 1.1*p.AlphaLocal || p.BetaNode < 1.1*p.BetaLocal) {
			t.Errorf("several nodes, never seen, are no slower than one: %+v", p)
		}
		if oneBatch {
			mean := 0.0
			for _, m := range seen {
				mean += m.PassSeconds / float64(len(seen))
			}
			if math.Abs(p.AlphaGrad/(mean/2)-1) > 1e-9 {
				t.Errorf("alpha_grad is %v with one batch, want half of a pass, %v", p.AlphaGrad, mean/2)
			}
		}
		for i, x := range p.vector() {
			if !(x >= tiny*(1-1e-9)) || math.IsInf(x, 1) || i == gamma && (x < 1-1e-12 || x > 10+1e-9) {
				t.Errorf("parameter %d is %v", i, x)
			}
		}
	})
}

// The gradient is that of differences.
func TestGradientOfTheObjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, at := drawPerformance(t), drawPerformance(t)
		f := newFitting(measure(t, &truth, 3, 8))
		var y, gradient vector
		for i, x := range at.vector() {
			y[i] = math.Log(x)
		}
		value := f.evaluateWithGradient(&y, &gradient)
		const h = 1e-6
		for i := range y {
			up, down := y, y
			up[i] += h
			down[i] -= h
			slope := (f.evaluate(&up, &point{}) - f.evaluate(&down, &point{})) / (2 * h)
			if math.Abs(slope-gradient[i]) > 1e-4*(1+value) {
				t.Errorf("component %d: %v, by differences %v", i, gradient[i], slope)
			}
		}
	})
}

// Measured by the example trainer, whose passes take 0.1 ms: they fit as well as if the unit of time were another.
func TestQuickPassesFit(t *testing.T) {
	cases := map[string][][2]float64{ // pass and step, in µs, of two replicas with the batches below
		"softmax":     {{34.361, 174.619}, {133.448, 357.83}, {42.103, 188.449}, {58.727, 209.18}, {66.298, 196.606}, {76.704, 205.584}},
		"mlp":         {{54.701, 176.882}, {205.985, 496.185}, {88.431, 235.038}, {79.198, 233.997}, {101.029, 287.326}},
		"another mlp": {{52.678, 185.695}, {295.067, 657.575}, {99.237, 313.955}, {90.665, 274.907}, {85.728, 294.947}, {103.343, 314.356}},
	}
	batches := map[string][]int{"softmax": {32, 152, 57, 61, 70, 81}, "mlp": {32, 115, 46, 49, 53}, "another mlp": {32, 132, 46, 49, 53, 57}}
	for name, times := range cases {
		in := func(unit float64) float64 {
			var seen []core.Measurement
			for i, micros := range times {
				seen = append(seen, core.Measurement{
					Nodes: 1, Replicas: 2, PerDevice: batches[name][i], PassSeconds: unit * micros[0], StepSeconds: unit * micros[1],
				})
			}
			return objective(seen, Fit(seen))
		}
		if got, want := in(1e-6), in(1e-3); math.Abs(got-want) > 1e-3 {
			t.Errorf("%s: objective %v, %v in another unit", name, got, want)
		}
	}
}
