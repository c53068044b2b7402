package goodput

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Scatter is how far the gradients of one optimizer step lie apart: those of several parts of its batch, each replica
// and each accumulation pass being one. Norms are squared, and of gradients as they are with mixed precision undone;
// under Adam, divided element by element by its denominator first.
//
// The means weigh each part by its samples. So weighted, the norm of a part is above that of the batch by the same as
// if the parts were equal: the variance that it has too much is in inverse proportion to its samples.
type Scatter struct {
	Parts int     // at least 2
	Local float64 // mean of the squared norms of the parts
	Total float64 // squared norm of the mean of the parts
	Scale float64 // batch of all parts together, over the initial batch
}

// ScatterOf compares the gradients of parts of a batch that is scale times the initial one. They are of one length. The
// parts are of so many samples, or equal when nothing is said.
func ScatterOf(parts [][]float64, scale float64, samples ...int) Scatter {
	s := Scatter{Scale: scale}
	if len(samples) == 0 {
		samples = slices.Repeat([]int{1}, len(parts))
	}
	if len(parts) == 0 || len(samples) != len(parts) {
		return s
	}
	all := 0
	for _, n := range samples {
		all += n
	}
	mean := make([]float64, len(parts[0]))
	for i, part := range parts {
		if samples[i] == 0 { // an idle replica has no gradient
			continue
		}
		s.Parts++
		share := float64(samples[i]) / float64(all)
		s.Local += share * squaredNorm(part)
		for d, x := range part {
			mean[d] += share * x
		}
	}
	s.Total = squaredNorm(mean)
	return s
}

// Estimate is what one step says about the statistics: unbiased, and as noisy as the step. Single components may be
// negative. It is false when the parts are too few, or not finite.
func (s Scatter) Estimate() (Gradients, bool) {
	if s.Parts < 2 {
		return Gradients{}, false
	}
	n := float64(s.Parts)
	g := Gradients{SquaredNorm: (n*s.Total - s.Local) / (n - 1), Variance: (s.Local - s.Total) * s.Scale / (n - 1)}
	return g, finite(g.SquaredNorm) && finite(g.Variance)
}

// Tracker follows the gradient statistics of one group of parameters from step to step, by moving averages that forget
// with the samples seen. Of averages from short to long, the longest counts that the shorter ones do not contradict: a
// training that stands still is averaged over a thousand steps, one that learns quickly is followed. The zero value has
// seen nothing.
//
// Source: the agent of AdaptDL (Pollux, OSDI'21), which has the longest average alone; the choice among several is that
// of Goldenshluger and Nemirovski (1997).
type Tracker struct {
	square, variance averages

	successive    bool      // the averages hold estimates from successive gradients
	previous      []float64 // last gradient of a step in one part; nil if the last step had several
	previousScale float64
}

// Observe takes in the gradients of a step at scale times the initial batch, one for each part. A step in one part is
// compared with the one before, if that was alike.
func (t *Tracker) Observe(parts [][]float64, scale float64) {
	if len(parts) != 1 {
		t.previous = nil
		t.Take(ScatterOf(parts, scale))
		return
	}
	current := parts[0]
	if len(t.previous) == len(current) && t.previousScale == scale {
		pair := [][]float64{t.previous, current}
		t.TakeSuccessive(ScatterOf(pair, 2*scale))
	}
	t.previous, t.previousScale = append(t.previous[:0], current...), scale
}

// Take takes in a step. What came from successive gradients is forgotten, for it is biased.
func (t *Tracker) Take(s Scatter) { t.take(s, false) }

// TakeSuccessive takes in a comparison of successive gradients.
func (t *Tracker) TakeSuccessive(s Scatter) { t.take(s, true) }

func (t *Tracker) take(s Scatter, successive bool) {
	g, ok := s.Estimate()
	if !ok || !finite(g.SquaredNorm*g.SquaredNorm) || !finite(g.Variance*g.Variance) {
		return
	}
	if t.successive && !successive {
		t.square, t.variance = averages{}, averages{}
	}
	t.successive = successive
	t.square.add(g.SquaredNorm, s.Scale)
	t.variance.add(g.Variance, s.Scale)
}

// kept is a tracker in a checkpoint.
type kept struct {
	Square     averages `json:"square"`
	Variance   averages `json:"variance"`
	Successive bool     `json:"successive,omitempty"`
}

// MarshalJSON keeps the averages for a checkpoint. The last gradient is left out, for it is large: a job that goes on
// with a single part needs two steps to learn more.
func (t *Tracker) MarshalJSON() ([]byte, error) {
	return json.Marshal(kept{t.square, t.variance, t.successive})
}

// UnmarshalJSON goes on from a checkpoint.
func (t *Tracker) UnmarshalJSON(text []byte) error {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	*t = Tracker{square: k.Square, variance: k.Variance, successive: k.Successive}
	return nil
}

// leastVariance keeps a report from telling of gradients without any noise.
const leastVariance = 1e-6

// Report is the statistics of a job whose parameters are tracked in groups: their sum, of values that can be. It is
// zero before the first step with statistics.
func Report(groups ...*Tracker) core.Gradients {
	var g core.Gradients
	for _, t := range groups {
		if t.square.known() && t.variance.known() {
			g.SquaredNorm += max(t.square.value(), 0)
			g.Variance += max(t.variance.value(), leastVariance)
		}
	}
	return g
}

// memories are what averages, from short to long, keep of themselves over a step at the initial batch.
var memories = [...]float64{0.8, 0.9, 0.95, 0.97, 0.985, 0.993, 0.997, 0.999}

// averages are exponential moving averages of one quantity, one for each memory.
type averages [len(memories)]average

// average is an exponential moving average with bias correction, and what says how uncertain it is.
type average struct {
	Sum     float64 `json:"sum"`
	Squares float64 `json:"squares"` // sum of squares
	Weight  float64 `json:"weight"`
	Weights float64 `json:"weights"` // sum of squared weights
}

func (a *averages) add(x, scale float64) {
	for i, memory := range memories {
		keep := math.Pow(memory, scale)
		forget := 1 - keep
		m := &a[i]
		m.Sum = keep*m.Sum + forget*x
		m.Squares = keep*m.Squares + forget*x*x
		m.Weight = keep*m.Weight + forget
		m.Weights = keep*keep*m.Weights + forget*forget
	}
}

func (a *averages) known() bool { return a[len(a)-1].Weight > 0 }

const (
	leastSteps = 6   // that an average must stand for to say how uncertain it is
	errorBars  = 1.5 // standard errors at which averages contradict each other
)

// value is the longest average that agrees with all shorter ones.
func (a *averages) value() float64 {
	value := a[len(a)-1].mean()
	low, high := math.Inf(-1), math.Inf(1)
	for i := range a {
		mean, steps := a[i].mean(), a[i].Weight*a[i].Weight/a[i].Weights
		if !(steps >= leastSteps) {
			continue
		}
		margin := errorBars * math.Sqrt(max(a[i].Squares/a[i].Weight-mean*mean, 0)/steps)
		if mean-margin > high || mean+margin < low {
			break
		}
		value, low, high = mean, max(low, mean-margin), min(high, mean+margin)
	}
	return value
}

func (a *average) mean() float64 { return a.Sum / a.Weight }

func squaredNorm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return sum
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
