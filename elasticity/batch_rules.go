package elasticity

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// clip is a batch within the bounds of a job, from above where it is not whole.
func (j *BatchState) clip(batch float64) int {
	if !(batch < float64(j.Limits.Max)) {
		return j.Limits.Max
	}
	return max(int(math.Ceil(batch)), j.Limits.Initial)
}

// unknown reports whether nothing is known of the gradients.
func (j *BatchState) unknown() bool { return j.Gradients == core.Gradients{} }

// noise is the simple noise scale in samples, tr(Σ)/|g|², above which a larger batch is worth little; +Inf where only noise is left.
//
// Source: McCandlish et al., An Empirical Model of Large-Batch Training (2018), section 2.2.
func noise(g core.Gradients, initial int) float64 {
	if !(g.SquaredNorm > 0) {
		return math.Inf(1)
	}
	return float64(initial) * g.Variance / g.SquaredNorm
}

// scheduleRule multiplies the batch at the borders of equal parts of the training.
//
// Sources: AdaBatch (Devarakonda et al., 2017) doubles the batch every so many epochs, 20 of 100 in its main case. Smith et al.,
// Don't Decay the Learning Rate, Increase the Batch Size (ICLR'18), multiplies it by 5 where the rate would be divided by it. O(1).
type scheduleRule struct {
	parts  int
	factor float64
}

func (r scheduleRule) Next(j *BatchState) int {
	grown := j.Epoch * r.parts / j.Epochs
	return j.clip(float64(j.Limits.Initial) * math.Pow(r.factor, float64(grown)))
}

// noiseRule takes the noise scale of the epoch before for the batch.
//
// Source: McCandlish et al. (2018), as clipped to the bounds of the job. O(1).
type noiseRule struct{}

func (noiseRule) Next(j *BatchState) int {
	if j.unknown() {
		return j.Batch
	}
	return j.clip(noise(j.Gradients, j.Limits.Initial))
}

// noiseDoublingRule doubles the batch after an epoch whose noise scale was at least twice the batch. It never shrinks it. O(1).
type noiseDoublingRule struct{}

func (noiseDoublingRule) Next(j *BatchState) int {
	if j.unknown() || noise(j.Gradients, j.Limits.Initial) < 2*float64(j.Batch) {
		return j.Batch
	}
	return j.clip(2 * float64(j.Batch))
}

// averagedNoiseRule takes the noise scale of moving averages of both gradient statistics.
//
// Source: the noise scale that KungFu (Mai et al., OSDI'20) monitors, S/G, for its adaptation policies. Deviation: it averages over
// steps and takes the statistics from the gradients of workers; here an epoch is averaged, of statistics that the job tracks. O(1).
type averagedNoiseRule struct{ keep float64 }

func (r averagedNoiseRule) Next(j *BatchState) int {
	if j.unknown() {
		return j.Batch
	}
	m := &j.Memory.Mean
	if *m == (core.Gradients{}) {
		*m = j.Gradients
	} else {
		m.SquaredNorm = r.keep*m.SquaredNorm + (1-r.keep)*j.Gradients.SquaredNorm
		m.Variance = r.keep*m.Variance + (1-r.keep)*j.Gradients.Variance
	}
	return j.clip(noise(*m, j.Limits.Initial))
}

// criticalRegimeRule takes the initial batch in a critical regime of the training, and the largest one outside. A regime is critical
// from the start, and while the norm of the gradient changes by a part of it from check to check.
//
// Source: Accordion (Agarwal et al., MLSys'21), whose part is 0.5 and whose checks are ten epochs apart. Deviation: the norm is that of
// the expected gradient, as estimated by the job. O(1).
type criticalRegimeRule struct {
	checks int
	change float64
}

func (r criticalRegimeRule) Next(j *BatchState) int {
	every := max(1, j.Epochs/r.checks)
	if j.Epoch == 0 || j.Epoch%every != 0 || j.unknown() {
		return j.Batch
	}
	norm, before := math.Sqrt(max(j.Gradients.SquaredNorm, 0)), j.Memory.Norm
	j.Memory.Norm = norm
	switch {
	case before == 0: // there is nothing to compare with
		return j.Batch
	case math.Abs(norm-before) >= r.change*before:
		return j.Limits.Initial
	default:
		return j.Limits.Max
	}
}
