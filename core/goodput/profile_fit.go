package goodput

import (
	"fmt"
	"math"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

// Training is the record of one training at a constant total batch.
type Training struct {
	Batch  int     // total, in samples
	Epochs []Epoch // in their order
}

// Epoch is what was measured in an epoch.
type Epoch struct {
	Progress  float64   // at its end, in iterations at the initial batch
	Gradients Gradients // gradient statistics of the epoch
}

// noisePoints is the most points of a fitted noise curve.
const noisePoints = 20

// FitProfile sums up an application: the throughput model is fitted to all that was seen within the limits, and the
// noise curve to trainings at several batches. It fails without anything to fit to. Figures are rounded to six digits.
func FitProfile(name string, limits BatchLimits, maxReplicas int, seen []core.Measurement, trainings []Training) (Profile, error) {
	p := Profile{Version: 1, Name: name, Batch: limits, MaxReplicas: maxReplicas, Epochs: math.MaxInt}
	for _, t := range trainings {
		p.Epochs = min(p.Epochs, len(t.Epochs))
	}
	if len(trainings) == 0 || p.Epochs == 0 {
		return Profile{}, fmt.Errorf("no epoch of %q was recorded", name)
	}
	progress := math.Inf(1)
	for _, t := range trainings {
		progress = min(progress, t.Epochs[p.Epochs-1].Progress)
	}
	p.IterationsPerEpoch = rounded(progress / float64(p.Epochs))

	var within []core.Measurement
	for _, m := range seen {
		if limits.MinPerDevice <= m.PerDevice && m.PerDevice <= limits.MaxPerDevice && m.Replicas <= maxReplicas {
			within = append(within, m)
		}
	}
	if len(within) == 0 {
		return Profile{}, fmt.Errorf("no measurement lies within the limits of %q", name)
	}
	v := Fit(within).vector()
	for i := range v {
		v[i] = rounded(v[i])
	}
	p.Performance = performanceOf(v)

	p.fitNoise(trainings)
	p.Residuals.Points = len(within)
	p.Residuals.Pass, p.Residuals.Step = p.timeErrors(within)
	p.Residuals.Gain = p.gainError(trainings)
	return p, nil
}

// fitNoise lays the noise curve through the epochs that shape it most: the first, the last, and one after the other
// that in which the gain of the largest batch is farthest off.
func (p *Profile) fitNoise(trainings []Training) {
	scales := make([]float64, p.Epochs)
	for e := range scales {
		scales[e] = rounded(p.epochNoise(trainings, e))
	}
	chosen := make([]bool, p.Epochs)
	chosen[0], chosen[p.Epochs-1] = true, true
	for {
		p.Noise = p.Noise[:0]
		for e, scale := range scales {
			if chosen[e] {
				p.Noise = append(p.Noise, NoisePoint{Progress: rounded(p.middle(e)), Samples: scale})
			}
		}
		farthest := p.farthest(scales, chosen)
		if farthest < 0 || len(p.Noise) == noisePoints {
			return
		}
		chosen[farthest] = true
	}
}

// farthest is the epoch that the curve misses most; -1 if it misses none.
func (p *Profile) farthest(scales []float64, chosen []bool) int {
	worst, at := 0.0, -1
	for e, scale := range scales {
		if off := math.Abs(math.Log(p.gain(p.Batch.Max, p.NoiseScale(p.middle(e))) / p.gain(p.Batch.Max, scale))); !chosen[e] && off > worst {
			worst, at = off, e
		}
	}
	return at
}

// mostNoise is a noise scale under which any batch is as good as many steps.
const mostNoise = 1e12

// epochNoise is the noise scale in an epoch: that under which steps gain as much as measured, in the geometric mean over
// the trainings. It is found by bisection, for a gain grows with the noise.
func (p *Profile) epochNoise(trainings []Training, epoch int) float64 {
	low, high := math.Log(1e-3), math.Log(mostNoise)
	for range 60 {
		middle, missing := (low+high)/2, 0.0
		for _, t := range trainings {
			scale := float64(t.Batch) / float64(p.Batch.Initial)
			missing += math.Log(t.Epochs[epoch].Gradients.Gain(scale) / p.gain(t.Batch, math.Exp(middle)))
		}
		if missing > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(low)
}

// gain is that of a step at a batch under a noise scale.
func (p *Profile) gain(batch int, noise float64) float64 {
	initial := float64(p.Batch.Initial)
	return Gradients{SquaredNorm: 1, Variance: noise / initial}.Gain(float64(batch) / initial)
}

func (p *Profile) timeErrors(seen []core.Measurement) (pass, step float64) {
	for _, m := range seen {
		b := float64(m.PerDevice)
		pass += square(math.Log(p.Performance.GradTime(b) / m.PassSeconds))
		step += square(math.Log(p.Performance.StepTime(m.Nodes, m.Replicas, b, 0) / m.StepSeconds))
	}
	n := float64(len(seen))
	return rounded(math.Sqrt(pass / n)), rounded(math.Sqrt(step / n))
}

// gainError compares the gain of each training, at its own batch, epoch by epoch.
func (p *Profile) gainError(trainings []Training) float64 {
	sum := 0.0
	for _, t := range trainings {
		scale := float64(t.Batch) / float64(p.Batch.Initial)
		for e := range p.Epochs {
			sum += square(math.Log(p.Gradients(e).Gain(scale) / t.Epochs[e].Gradients.Gain(scale)))
		}
	}
	return rounded(math.Sqrt(sum / float64(len(trainings)*p.Epochs)))
}

func square(x float64) float64 { return x * x }

// rounded keeps six digits, which is more than a fit is worth and makes profiles short.
func rounded(x float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // what was formatted parses
	return short
}
