package workload

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// siaModel is a training job that goes as its application was measured to, on the accelerator type it runs on. A phase
// is an epoch. Work is counted in iterations at the initial batch, or, of a job that keeps its batch, in its steps.
// Jobs of one application, one requested batch and one category share it.
type siaModel struct {
	*siaProfile
	batch        core.BatchSpec
	byType       []core.TypeBatch
	accelerators []string
	maxReplicas  int
	fixed        bool // the batch stays as requested
	slowdown     float64
	ends         []float64 // work done at the end of each epoch
	iterations   []float64 // steps at the requested batch at the end of each epoch
	stepTimes    core.StepTimes
	truth        *core.Truth
}

// newSiaModel returns nil for a batch that the application was not trained with.
func newSiaModel(p *siaProfile, batch int, fixed bool, slowdown float64) *siaModel {
	m := &siaModel{siaProfile: p, fixed: fixed, slowdown: slowdown, ends: p.progress}
	if m.iterations = p.learning.iterations(batch); m.iterations == nil || m.iterations[len(m.iterations)-1] <= 0 {
		return nil
	}
	m.batch = core.BatchSpec{Requested: batch, Initial: p.trainings[0].batch, Max: p.trainings[len(p.trainings)-1].batch}
	if fixed {
		m.batch.Initial, m.batch.Max, m.ends = batch, batch, m.iterations
	}
	for i := range p.types {
		s := &p.types[i]
		if i == 0 || s.least < m.batch.MinPerDevice {
			m.batch.MinPerDevice = s.least
		}
		m.batch.MaxPerDevice = max(m.batch.MaxPerDevice, s.most)
		m.byType = append(m.byType, core.TypeBatch{Accelerator: s.accelerator, MinPerDevice: s.least, MaxPerDevice: s.most})
		m.accelerators = append(m.accelerators, s.accelerator)
	}
	m.maxReplicas = max(min(profileMaxReplicas, m.batch.Max/m.batch.MinPerDevice), 1)
	m.fillStepTimes()
	m.fillTruth()
	return m
}

// limits are the bounds of the batch on an accelerator type.
func (m *siaModel) limits(s *siaSpeeds) core.BatchSpec {
	b := m.batch
	b.MinPerDevice, b.MaxPerDevice = s.least, s.most
	return b
}

// fillStepTimes fills in the step times at the requested batch.
func (m *siaModel) fillStepTimes() {
	for i := range m.types {
		s := &m.types[i]
		most := min(m.maxReplicas, m.batch.Requested/s.least)
		on := core.TypeTimes{
			Accelerator: s.accelerator, OneNode: make([]float64, min(most, s.devicesPerNode)), ManyNodes: make([]float64, most),
		}
		for r := 1; r <= most; r++ {
			seconds := 0.0
			perDevice, accumulation := goodput.SplitBatch(m.batch.Requested, r, m.limits(s))
			if time, ok := s.stepTime(consolidated(r, s.devicesPerNode), perDevice); ok {
				seconds = time.total(accumulation) * m.slowdown
			}
			if r <= s.devicesPerNode {
				on.OneNode[r-1] = seconds
			} else {
				on.ManyNodes[r-1] = seconds
			}
		}
		m.stepTimes.Types = append(m.stepTimes.Types, on)
	}
}

// fillTruth says what the profile holds of consolidated placements, at several batches each.
func (m *siaModel) fillTruth() {
	m.truth = &core.Truth{}
	if g, ok := m.gradients(m.trainings[0].batch, 0); ok {
		m.truth.Gradients = core.Gradients{SquaredNorm: g.square, Variance: g.variance}
	}
	for i := range m.types {
		s := &m.types[i]
		for _, replicas := range [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64} {
			if replicas > m.maxReplicas {
				break
			}
			shape := consolidated(replicas, s.devicesPerNode)
			for _, b := range s.batches() {
				if time, ok := s.stepTime(shape, b); ok {
					m.truth.Measurements = append(m.truth.Measurements, m.measurement(s, len(shape), replicas, b, time))
				}
			}
		}
	}
}

func (m *siaModel) measurement(s *siaSpeeds, nodes, replicas, perDevice int, t stepTime) core.Measurement {
	return core.Measurement{
		Accelerator: s.accelerator, Nodes: nodes, Replicas: replicas, PerDevice: perDevice,
		PassSeconds: (t.step - t.sync) * m.slowdown, StepSeconds: t.step * m.slowdown,
	}
}

// runsOn reports whether the job can run with so many replicas, consolidated, at its batch on some type.
func (m *siaModel) runsOn(replicas int) bool {
	for _, on := range m.stepTimes.Types {
		if replicas <= len(on.OneNode) && on.OneNode[replicas-1] > 0 || replicas <= len(on.ManyNodes) && on.ManyNodes[replicas-1] > 0 {
			return true
		}
	}
	return false
}

func (m *siaModel) Phases() int { return len(m.ends) }

func (m *siaModel) PhaseEnd(phase int) float64 { return m.ends[phase] }

// step is the time of an optimizer step, and the total batch it takes, at the requested batch when the tuning leaves
// the batch to the job; false where the job cannot run so.
func (m *siaModel) step(c Running) (s *siaSpeeds, time stepTime, perDevice, accumulation int, ok bool) {
	accelerator, one := c.Accelerator()
	if s = m.on(accelerator); s == nil || !one {
		return nil, stepTime{}, 0, 0, false
	}
	perDevice, accumulation = c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
	if perDevice == 0 {
		perDevice, accumulation = goodput.SplitBatch(m.batch.Requested, c.Replicas, m.limits(s))
	}
	time, ok = s.stepTime(c.Shape, perDevice)
	return s, time, perDevice, accumulation, ok && accumulation >= 0
}

func (m *siaModel) Rate(phase int, c Running) float64 {
	_, time, perDevice, accumulation, ok := m.step(c)
	if !ok {
		return 0
	}
	seconds := time.total(accumulation) * m.slowdown
	if m.fixed {
		return 1 / seconds
	}
	return m.gain(c.Replicas*perDevice*(accumulation+1), phase) / seconds
}

func (m *siaModel) StepsLeft(phase int) float64 {
	left := m.iterations[len(m.iterations)-1]
	if phase > 0 {
		left -= m.iterations[phase-1]
	}
	return left
}

// Measure is what the profile says of the configuration, free of noise.
func (m *siaModel) Measure(phase int, c Running) (core.Measurement, core.Gradients, bool) {
	s, time, perDevice, accumulation, ok := m.step(c)
	if !ok {
		return core.Measurement{}, core.Gradients{}, false
	}
	g, known := m.gradients(c.Replicas*perDevice*(accumulation+1), phase)
	if !known && !m.fixed {
		return core.Measurement{}, core.Gradients{}, false
	}
	return m.measurement(s, len(c.Shape), c.Replicas, perDevice, time), core.Gradients{SquaredNorm: g.square, Variance: g.variance}, true
}
