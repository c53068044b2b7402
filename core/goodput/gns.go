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

// Successive compares the gradients of two steps of a job on a single replica without accumulation, given the squared
// norms of both and of their mean; scale is that of one step. It takes the parameters for unchanged in between, which
// biases the estimate.
func Successive(previous, current, mean, scale float64) Scatter {
	return Scatter{Parts: 2, Local: (previous + current) / 2, Total: mean, Scale: 2 * scale}
}

// Estimate is what one step tells of the statistics: unbiased, and as noisy as the step. Single components may be
// negative. It is false when the parts are too few, or not finite.
func (s Scatter) Estimate() (Gradients, bool) {
	if s.Parts < 2 {
		return Gradients{}, false
	}
	n := float64(s.Parts)
	g := Gradients{Square: (n*s.Total - s.Local) / (n - 1), Variance: (s.Local - s.Total) * s.Scale / (n - 1)}
	return g, finite(g.Square) && finite(g.Variance)
}

// decay is what an average keeps of itself over a step at the initial batch.
const decay = 0.999

// Tracker follows the gradient statistics of one group of parameters from step to step, by moving averages that forget
// with the samples seen. The zero value has seen nothing.
//
// Source: the agent of AdaptDL (Pollux, OSDI'21).
type Tracker struct {
	square, variance average

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
	if !ok {
		return
	}
	if t.successive && !successive {
		t.square, t.variance = average{}, average{}
	}
	t.successive = successive
	keep := math.Pow(decay, s.Scale)
	t.square.add(g.Square, keep)
	t.variance.add(g.Variance, keep)
}

// kept is a tracker in a checkpoint.
type kept struct {
	Square     [2]float64 `json:"square"` // sum and weight of the average
	Variance   [2]float64 `json:"variance"`
	Successive bool       `json:"successive,omitempty"`
}

// MarshalJSON keeps the averages for a checkpoint. The last gradient is left out, for it is large: a job that goes on
// with a single part needs two steps to learn more.
func (t *Tracker) MarshalJSON() ([]byte, error) {
	return json.Marshal(kept{
		[2]float64{t.square.sum, t.square.weight}, [2]float64{t.variance.sum, t.variance.weight}, t.successive,
	})
}

// UnmarshalJSON goes on from a checkpoint.
func (t *Tracker) UnmarshalJSON(text []byte) error {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	*t = Tracker{square: average{k.Square[0], k.Square[1]}, variance: average{k.Variance[0], k.Variance[1]}, successive: k.Successive}
	return nil
}

// leastVariance keeps a report from telling of gradients without any noise.
const leastVariance = 1e-6

// Report is the statistics of a job whose parameters are tracked in groups: their sum, of values that can be. It is
// zero before the first step that told something.
func Report(groups ...*Tracker) core.Gradients {
	var g core.Gradients
	for _, t := range groups {
		if t.square.weight > 0 {
			g.Square += max(t.square.value(), 0)
			g.Variance += max(t.variance.value(), leastVariance)
		}
	}
	return g
}

// average is an exponential moving average with bias correction.
type average struct{ sum, weight float64 }

func (a *average) add(x, keep float64) {
	a.sum = keep*a.sum + (1-keep)*x
	a.weight = keep*a.weight + (1 - keep)
}

func (a *average) value() float64 { return a.sum / a.weight }

func squaredNorm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return sum
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
