package goodput

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// The order of the parameters in a vector.
const (
	alphaGrad = iota
	betaGrad
	alphaNode
	betaNode
	alphaLocal
	betaLocal
	gamma
	dimensions
)

type vector [dimensions]float64

func (p Performance) vector() vector {
	return vector{p.AlphaGrad, p.BetaGrad, p.AlphaNode, p.BetaNode, p.AlphaLocal, p.BetaLocal, p.Gamma}
}

func performanceOf(v vector) Performance {
	return Performance{v[alphaGrad], v[betaGrad], v[alphaNode], v[betaNode], v[alphaLocal], v[betaLocal], v[gamma]}
}

// coldStart is where a fit begins that knows nothing.
var coldStart = vector{0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001}

// Fit finds the parameters under which the measurements are least surprising: it minimises the root mean square error
// of the logarithms of both times, plus what keeps Gamma near 1 and the cost of further replicas below that of the
// first two (Pollux, section 4.1; weights 1e-3 and 1e-2). What was never seen is taken to be free, so that a job tries
// it: more than two replicas, one node, several nodes.
//
// The search is a projected quasi-Newton method in the logarithms of the parameters, with the closed-form gradient. It
// begins at the cold start each time, as published, unless all is quick: a fit takes 0.1 ms at the median. To begin also where the fit before
// ended and keep the better one makes a run 1.2 times as long, and schedules worse: mean JCTs of pollux-best were 2.0 %
// higher over the published workloads, of pollux-guarded 1.3 %. Alone, the fit before is a trap: what it took to be free
// has no slope in logarithms, and stays so.
func Fit(seen []core.Measurement) Performance {
	f := newFitting(seen)
	best, _ := f.minimise(f.start())
	p := performanceOf(best)
	if !f.seenNodes { // several nodes are at least a little slower than one
		p.AlphaNode = math.Max(p.AlphaNode, 1.1*p.AlphaLocal)
		p.BetaNode = math.Max(p.BetaNode, 1.1*p.BetaLocal)
	}
	return p
}

// mostWeight is the number of reports beyond which more of them make a measurement no surer: the rest is the model's error.
const mostWeight = 8

// Weight is how much a measurement counts in a fit: by its reports.
func Weight(m core.Measurement) int { return min(max(m.Count, 1), mostWeight) }

// quick is the mean seconds of a pass below which the cold start is too far away: of fits to passes of 0.1 ms some
// ended with an objective of 0.8 where 0.3 was to be had.
const quick = 1e-3

// start is where the search begins: at the cold start, or where all is much quicker, at times like those measured.
func (f *fitting) start() vector {
	if f.meanPass >= quick {
		return coldStart
	}
	batch, sync := 0.0, 0.0
	for _, m := range f.seen {
		batch += float64(m.PerDevice) / float64(len(f.seen))
		sync += math.Max(m.StepSeconds-m.PassSeconds, m.StepSeconds/100) / float64(len(f.seen))
	}
	return vector{f.meanPass / 2, f.meanPass / 2 / math.Max(batch, 1), sync, sync / 10, sync, sync / 10, 1.1}
}

// fitting is one problem: the data, and the box in which the logarithms of the parameters lie.
type fitting struct {
	seen      []core.Measurement
	weight    []float64 // of a measurement, 1 on average
	logPass   []float64
	logStep   []float64
	meanPass  float64 // seconds
	sameBatch []int   // by measurement: the first of the same batch per device, which takes as long for a pass
	sameSync  []int   // by measurement: the first of the same replicas and nodes, which takes as long to synchronise
	low, high vector
	seenNodes bool
}

func newFitting(seen []core.Measurement) *fitting {
	f := &fitting{seen: seen, weight: make([]float64, len(seen)), logPass: make([]float64, len(seen)), logStep: make([]float64, len(seen))}
	mean, alike := 0.0, true
	for _, m := range seen {
		mean += float64(Weight(m)) / float64(len(seen))
		alike = alike && m.Spread == 0 // where reports never differ, one is as good as many
	}
	for i := range f.low {
		f.low[i], f.high[i] = math.Log(tiny), math.Inf(1)
	}
	f.low[gamma], f.high[gamma] = 0, math.Log(10)
	oneBatch, local, many := true, false, false
	for i, m := range seen {
		if f.weight[i] = 1; !alike {
			f.weight[i] = float64(Weight(m)) / mean
		}
		f.logPass[i], f.logStep[i] = math.Log(m.PassSeconds), math.Log(m.StepSeconds)
		f.meanPass += m.PassSeconds / float64(len(seen))
		f.sameBatch = append(f.sameBatch, slices.IndexFunc(seen, func(o core.Measurement) bool { return o.PerDevice == m.PerDevice }))
		f.sameSync = append(f.sameSync, slices.IndexFunc(seen, func(o core.Measurement) bool { return o.Nodes == m.Nodes && o.Replicas == m.Replicas }))
		oneBatch = oneBatch && m.PerDevice == seen[0].PerDevice
		f.seenNodes = f.seenNodes || m.Nodes > 1
		local = local || m.Nodes == 1 && m.Replicas > 1
		many = many || m.Replicas > 2
	}
	if oneBatch { // half of a pass is constant, half grows with the batch
		f.freeze(alphaGrad, f.meanPass/2)
	}
	if !f.seenNodes {
		f.freeze(alphaNode, tiny)
		f.freeze(betaNode, tiny)
	}
	if !local {
		f.freeze(alphaLocal, tiny)
		f.freeze(betaLocal, tiny)
	}
	if !many {
		f.freeze(betaNode, tiny)
		f.freeze(betaLocal, tiny)
	}
	return f
}

func (f *fitting) freeze(i int, value float64) {
	f.low[i] = math.Log(value)
	f.high[i] = f.low[i]
}

// point is a place in the box that the objective was evaluated at, with what its gradient needs of that.
type point struct {
	x           vector // parameters
	pass, step  float64
	predictions []prediction // by measurement
}

// prediction is what the parameters of a point say of a measurement.
type prediction struct {
	grad, logGrad float64 // seconds of a pass, and their logarithm
	sync, logSync float64 // seconds of a synchronisation, and their logarithm
	logStep       float64 // logarithm of the seconds of a step
}

// evaluate returns the objective at parameters exp(y), and keeps in at what gradient needs. Most points of a search are too far
// away, and their gradient is never asked for.
func (f *fitting) evaluate(y *vector, at *point) float64 {
	for i := range y {
		at.x[i] = math.Exp(y[i])
	}
	p := performanceOf(at.x)
	var passSquares, stepSquares float64
	if at.predictions == nil {
		at.predictions = make([]prediction, len(f.seen))
	}
	for i := range f.seen {
		m, is := &f.seen[i], &at.predictions[i]
		if first := f.sameBatch[i]; first < i {
			is.grad, is.logGrad = at.predictions[first].grad, at.predictions[first].logGrad
		} else {
			is.grad = p.GradTime(float64(m.PerDevice))
			is.logGrad = math.Log(is.grad)
		}
		if first := f.sameSync[i]; first < i {
			is.sync, is.logSync = at.predictions[first].sync, at.predictions[first].logSync
		} else {
			is.sync = p.SyncTime(m.Nodes, m.Replicas)
			is.logSync = math.Log(is.sync)
		}
		is.logStep = p.lastPass(is.logGrad, is.logSync)
		off := is.logGrad - f.logPass[i]
		passSquares += f.weight[i] * off * off
		off = is.logStep - f.logStep[i]
		stepSquares += f.weight[i] * off * off
	}
	n := float64(len(f.seen))
	at.pass, at.step = math.Sqrt(passSquares/n), math.Sqrt(stepSquares/n)
	slopeNode, slopeLocal := p.BetaNode/p.AlphaNode, p.BetaLocal/p.AlphaLocal
	return at.pass + at.step + 1e-3*(p.Gamma-1)*(p.Gamma-1) + 1e-2*(slopeNode*slopeNode+slopeLocal*slopeLocal)
}

// gradient sets g to the gradient of the objective, with respect to y, at a point that was evaluated.
func (f *fitting) gradient(at *point, g *vector) {
	p := performanceOf(at.x)
	var passGradient, stepGradient vector // of half the sums of squares, with respect to x
	for i := range f.seen {
		m, is := &f.seen[i], &at.predictions[i]
		off := f.weight[i] * (is.logGrad - f.logPass[i])
		passGradient[alphaGrad] += off / is.grad
		passGradient[betaGrad] += off * float64(m.PerDevice) / is.grad

		off = f.weight[i] * (is.logStep - f.logStep[i])
		share := 1 / (1 + math.Exp(p.Gamma*(is.logSync-is.logGrad))) // of the pass in the sum of powers
		stepGradient[alphaGrad] += off * share / is.grad
		stepGradient[betaGrad] += off * share * float64(m.PerDevice) / is.grad
		further := max(float64(m.Replicas-2), tiny)
		switch {
		case m.Nodes > 1:
			stepGradient[alphaNode] += off * (1 - share) / is.sync
			stepGradient[betaNode] += off * (1 - share) * further / is.sync
		case m.Replicas > 1:
			stepGradient[alphaLocal] += off * (1 - share) / is.sync
			stepGradient[betaLocal] += off * (1 - share) * further / is.sync
		}
		stepGradient[gamma] += off * (share*is.logGrad + (1-share)*is.logSync - is.logStep) / p.Gamma
	}
	n := float64(len(f.seen))
	for i := range g {
		g[i] = 0
		if at.pass > 0 { // at the kink, 0 is as good as any subgradient
			g[i] += passGradient[i] / (n * at.pass)
		}
		if at.step > 0 {
			g[i] += stepGradient[i] / (n * at.step)
		}
	}
	slopeNode, slopeLocal := p.BetaNode/p.AlphaNode, p.BetaLocal/p.AlphaLocal
	g[gamma] += 2e-3 * (p.Gamma - 1)
	g[betaNode] += 2e-2 * slopeNode / p.AlphaNode
	g[alphaNode] -= 2e-2 * slopeNode * slopeNode / p.AlphaNode
	g[betaLocal] += 2e-2 * slopeLocal / p.AlphaLocal
	g[alphaLocal] -= 2e-2 * slopeLocal * slopeLocal / p.AlphaLocal
	for i := range g {
		g[i] *= at.x[i]
	}
}
