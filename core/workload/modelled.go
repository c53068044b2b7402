package workload

import (
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// modelledModel is a training job that goes as the profile of its application says: step times from the throughput
// model, whatever the placement, and gains from the noise curve. A phase is an epoch, and work is counted in iterations
// at the initial batch. Jobs of one application and one requested batch share it.
type modelledModel struct {
	profile   *goodput.Profile
	batch     core.BatchSpec
	gradients []goodput.Gradients // by epoch
	stepsLeft []float64           // at the requested batch, when an epoch begins
	stepTimes core.StepTimes
	truth     core.Truth
	sensitive *core.Sensitivity // nil when nothing is known
}

// newModelledModel returns nil for a batch that the application does not train with.
func newModelledModel(p *goodput.Profile, batch int) *modelledModel {
	if batch < p.Batch.Initial || batch > p.Batch.Max {
		return nil
	}
	m := &modelledModel{profile: p, batch: p.Batch.Spec()}
	m.batch.Requested = batch
	m.gradients, m.stepsLeft = make([]goodput.Gradients, p.Epochs), make([]float64, p.Epochs)
	left := 0.0
	for e := p.Epochs - 1; e >= 0; e-- {
		m.gradients[e] = p.Gradients(e)
		left += p.IterationsPerEpoch / m.gradients[e].Gain(m.scale(batch))
		m.stepsLeft[e] = left
	}
	most := min(p.MaxReplicas, batch/p.Batch.MinPerDevice)
	m.stepTimes.OneNode, m.stepTimes.ManyNodes = make([]float64, most), make([]float64, most)
	for r := 1; r <= most; r++ {
		m.stepTimes.OneNode[r-1] = m.stepSeconds(1, r)
		if r > 1 {
			m.stepTimes.ManyNodes[r-1] = m.stepSeconds(2, r)
		}
	}
	m.truth, m.sensitive = truthOf(p), p.Sensitivity.Of()
	return m
}

// Training is the model of a training job that goes as a profile says and asks for a total batch. It is a Measurer. It fails for a
// batch that the application does not train with.
func Training(p *goodput.Profile, batch int) (Model, error) {
	m := newModelledModel(p, batch)
	if m == nil {
		return nil, fmt.Errorf("%s trains with a batch from %d to %d, not %d", p.Name, p.Batch.Initial, p.Batch.Max, batch)
	}
	return m, nil
}

// Faster is a workload of which the jobs that go by profiles do the same in less time. It shares all else with this one.
func (w *Workload) Faster(times float64) *Workload {
	faster := *w
	faster.Jobs = slices.Clone(w.Jobs)
	models := map[*modelledModel]*modelledModel{}
	for i := range faster.Jobs {
		j := &faster.Jobs[i]
		m, is := j.Model.(*modelledModel)
		if !is {
			continue
		}
		if models[m] == nil {
			p := m.profile.Faster(times)
			models[m] = newModelledModel(&p, m.batch.Requested)
		}
		j.Model = models[m]
		j.Spec.StepTimes, j.Spec.Truth = &models[m].stepTimes, &models[m].truth
	}
	return &faster
}

// truthOf is enough of what an application would measure to tell its parameters: a few placements, alone and on one
// node and across nodes, at a few batches each.
func truthOf(p *goodput.Profile) core.Truth {
	truth := core.Truth{Gradients: core.Gradients(p.Gradients(0))}
	least, most := p.Batch.MinPerDevice, p.Batch.MaxPerDevice
	batches := slices.Compact([]int{least, int(math.Sqrt(float64(least) * float64(most))), most})
	for replicas := 1; replicas <= p.MaxReplicas; replicas *= 2 {
		for nodes := 1; nodes <= min(replicas, 2); nodes++ {
			for _, b := range batches {
				truth.Measurements = append(truth.Measurements, modelled(p, nodes, replicas, b))
			}
		}
	}
	return truth
}

// modelled is what a job would measure.
func modelled(p *goodput.Profile, nodes, replicas, perDevice int) core.Measurement {
	b := float64(perDevice)
	return core.Measurement{
		Nodes: nodes, Replicas: replicas, PerDevice: perDevice,
		PassSeconds: p.Performance.GradTime(b), StepSeconds: p.Performance.StepTime(nodes, replicas, b, 0),
	}
}

// scale is a total batch over the initial one.
func (m *modelledModel) scale(batch int) float64 { return float64(batch) / float64(m.batch.Initial) }

// stepSeconds is the time of an optimizer step at the requested batch; 0 where the job cannot run so.
func (m *modelledModel) stepSeconds(nodes, replicas int) float64 {
	perDevice, accumulation := goodput.SplitBatch(m.batch.Requested, replicas, m.batch)
	if !m.trains(replicas, perDevice, accumulation) {
		return 0
	}
	return m.profile.Performance.StepTime(nodes, replicas, float64(perDevice), accumulation)
}

// trains reports whether a batch setting lies within the limits of the application. It may fall short of the initial
// batch where whole samples leave nothing between that and the largest.
func (m *modelledModel) trains(replicas, perDevice, accumulation int) bool {
	total := replicas * perDevice * (accumulation + 1)
	return replicas > 0 && accumulation >= 0 && m.batch.MinPerDevice <= perDevice && perDevice <= m.batch.MaxPerDevice &&
		(m.batch.Initial <= total || total+replicas*(accumulation+1) > m.batch.Max) && total <= m.batch.Max
}

// setting is the batch that a job runs with: the requested one when the tuning leaves the batch to it. It is false when
// the job cannot run so.
func (m *modelledModel) setting(c Running) (perDevice, accumulation int, ok bool) {
	perDevice, accumulation = c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
	if perDevice == 0 {
		perDevice, accumulation = goodput.SplitBatch(m.batch.Requested, c.Replicas, m.batch)
	}
	return perDevice, accumulation, m.trains(c.Replicas, perDevice, accumulation)
}

// Profile is shared; it is not to be changed.
func (m *modelledModel) Profile() *goodput.Profile { return m.profile }

func (m *modelledModel) Phases() int { return m.profile.Epochs }

func (m *modelledModel) PhaseEnd(phase int) float64 {
	return float64(phase+1) * m.profile.IterationsPerEpoch
}

func (m *modelledModel) Rate(phase int, c Running) float64 {
	perDevice, accumulation, ok := m.setting(c)
	if !ok {
		return 0
	}
	nodes, replicas := spread(c.Shape)
	seconds := m.profile.Performance.StepTime(nodes, replicas, float64(perDevice), accumulation)
	return m.gradients[phase].Gain(m.scale(replicas*perDevice*(accumulation+1))) / seconds
}

func (m *modelledModel) StepsLeft(phase int) float64 { return m.stepsLeft[phase] }

// Measure is what the profile says of the configuration, free of noise.
func (m *modelledModel) Measure(phase int, c Running) (core.Measurement, core.Gradients, bool) {
	perDevice, _, ok := m.setting(c)
	if !ok {
		return core.Measurement{}, core.Gradients{}, false
	}
	nodes, replicas := spread(c.Shape)
	return modelled(m.profile, nodes, replicas, perDevice), core.Gradients(m.gradients[phase]), true
}

// newTrainingJob is an elastic job that asks for so many replicas at the batch of its model.
func newTrainingJob(name string, submit float64, replicas int, m *modelledModel) Job {
	job := Job{Model: m}
	spec := &job.Spec
	spec.Name, spec.Application, spec.SubmitSeconds, spec.Weight = name, m.profile.Name, submit, 1
	spec.Requested, spec.MinReplicas, spec.MaxReplicas = replicas, 1, max(m.profile.MaxReplicas, replicas)
	spec.Batch, spec.StepTimes, spec.Truth, spec.Sensitivity = m.batch, &m.stepTimes, &m.truth, m.sensitive
	spec.TotalWork = m.PhaseEnd(m.Phases() - 1)
	return job
}
