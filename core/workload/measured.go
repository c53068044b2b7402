package workload

import (
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// measuredModel is a training job that goes as its application was measured to. A phase is an epoch, and work is
// counted in iterations at the initial batch. Jobs of one application and one requested batch share it.
type measuredModel struct {
	*profile
	batch      core.BatchSpec
	iterations []float64 // steps at the requested batch at the end of each epoch
	published  bool
	reports    [][]Reported // by phase
	stepTimes  core.StepTimes
}

// newMeasuredModel returns nil for a batch that the application was not trained with.
func newMeasuredModel(p *profile, batch int, published bool) *measuredModel {
	m := &measuredModel{profile: p, batch: p.batch, published: published}
	m.batch.Requested = batch
	if m.iterations = p.iterations(batch); m.iterations == nil {
		return nil
	}
	most := min(p.maxReplicas, batch/p.batch.MinPerDevice)
	m.stepTimes.OneNode = make([]float64, min(most, profileDevicesPerNode))
	m.stepTimes.ManyNodes = make([]float64, most)
	for r := 1; r <= most; r++ {
		if seconds := m.stepSeconds(consolidated(r, profileDevicesPerNode), r); r <= profileDevicesPerNode {
			m.stepTimes.OneNode[r-1] = seconds
		} else {
			m.stepTimes.ManyNodes[r-1] = seconds
		}
	}
	m.reports = p.reports(batch)
	return m
}

// stepSeconds is the time of an optimizer step at the requested batch; 0 where the job cannot run so. The published form
// accumulates on a single replica at any batch, where a job does so above its initial batch only.
func (m *measuredModel) stepSeconds(shape []int, replicas int) float64 {
	perDevice, accumulation := goodput.SplitBatch(m.batch.Requested, replicas, m.batch)
	if m.published && replicas == 1 && accumulation == 0 {
		half := min((perDevice+1)/2, m.batch.Max/2)
		if time, ok := m.stepTime(shape, half); ok {
			return time.total(1)
		}
	}
	time, ok := m.stepTime(shape, perDevice)
	if !ok {
		return 0
	}
	return time.total(accumulation)
}

// mostReplicas is the greatest number of replicas, consolidated, that the job can run with at the requested batch.
func (m *measuredModel) mostReplicas() int {
	for r := len(m.stepTimes.ManyNodes); r > 0; r-- {
		if m.stepTimes.ManyNodes[r-1] > 0 || r <= len(m.stepTimes.OneNode) && m.stepTimes.OneNode[r-1] > 0 {
			return r
		}
	}
	return 0
}

func (m *measuredModel) Phases() int { return len(m.progress) }

func (m *measuredModel) PhaseEnd(phase int) float64 { return m.progress[phase] }

// Rate runs at the requested batch when the tuning leaves the batch to the job.
func (m *measuredModel) Rate(phase int, c Running) float64 {
	perDevice, accumulation := c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
	if perDevice == 0 {
		perDevice, accumulation = goodput.SplitBatch(m.batch.Requested, c.Replicas, m.batch)
	}
	time, ok := m.stepTime(c.Shape, perDevice)
	if !ok || accumulation < 0 {
		return 0
	}
	return m.gain(c.Replicas*perDevice*(accumulation+1), phase) / time.total(accumulation)
}

// StepsLeft counts the steps of the epochs from phase on. The published form takes the epochs done for the index of a
// row, which stands for the end of an epoch, and so forgets one epoch.
func (m *measuredModel) StepsLeft(phase int) float64 {
	last := len(m.iterations) - 1
	switch {
	case m.published && phase >= last:
		return 1
	case m.published:
		return m.iterations[last] - m.iterations[phase]
	case phase == 0:
		return m.iterations[last]
	default:
		return m.iterations[last] - m.iterations[phase-1]
	}
}

// Measure is what the profile says of the configuration, free of noise.
func (m *measuredModel) Measure(phase int, c Running) (core.Measurement, core.Gradients, bool) {
	perDevice, accumulation := c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
	if perDevice == 0 {
		perDevice, accumulation = goodput.SplitBatch(m.batch.Requested, c.Replicas, m.batch)
	}
	time, ok := m.stepTime(c.Shape, perDevice)
	g, known := m.gradients(c.Replicas*perDevice*(accumulation+1), phase)
	if !ok || !known {
		return core.Measurement{}, core.Gradients{}, false
	}
	return core.Measurement{
		Nodes: len(c.Shape), Replicas: c.Replicas, PerDevice: perDevice, PassSeconds: time.step - time.sync, StepSeconds: time.step,
	}, core.Gradients{SquaredNorm: g.square, Variance: g.variance}, true
}

// truth is what the profile would tell a job on consolidated placements, at several batches each. It is made once.
func (p *profile) truth() *core.Truth {
	if p.told != nil {
		return p.told
	}
	p.told = &core.Truth{}
	if g, ok := p.gradients(p.batch.Initial, 0); ok {
		p.told.Gradients = core.Gradients{SquaredNorm: g.square, Variance: g.variance}
	}
	for _, replicas := range [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64} {
		if replicas > p.maxReplicas {
			break
		}
		shape := consolidated(replicas, profileDevicesPerNode)
		last := 0
		for i := range truthBatches {
			from, to := float64(p.batch.MinPerDevice), float64(p.batch.MaxPerDevice)
			b := int(math.Round(from * math.Pow(to/from, float64(i)/(truthBatches-1))))
			time, ok := p.stepTime(shape, b)
			if !ok || b == last {
				continue
			}
			last = b
			p.told.Measurements = append(p.told.Measurements, core.Measurement{
				Nodes: len(shape), Replicas: replicas, PerDevice: b, PassSeconds: time.step - time.sync, StepSeconds: time.step,
			})
		}
	}
	return p.told
}

// truthBatches is how many batches truth holds for each placement, in geometric steps.
const truthBatches = 6
