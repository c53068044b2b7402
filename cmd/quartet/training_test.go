package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
)

// training is the model of a job that trains: it measures its steps, and learns by its batch. Its epochs are short
// enough for a scenario.
type training struct {
	performance goodput.Performance
	batch       core.BatchSpec
	epochs      []goodput.Gradients
	iterations  float64 // of an epoch, at the initial batch
}

func (m *training) Phases() int { return len(m.epochs) }

func (m *training) PhaseEnd(phase int) float64 { return float64(phase+1) * m.iterations }

func (m *training) StepsLeft(phase int) (steps float64) {
	for _, g := range m.epochs[phase:] {
		steps += m.iterations / g.Gain(float64(m.batch.Requested)/float64(m.batch.Initial))
	}
	return steps
}

// setting is the batch that a job runs with, and the nodes it runs on.
func (m *training) setting(c workload.Running) (perDevice, accumulation, nodes int) {
	perDevice, accumulation = c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
	if perDevice == 0 {
		perDevice, accumulation = goodput.SplitBatch(m.batch.Requested, c.Replicas, m.batch)
	}
	for _, replicas := range c.Shape {
		nodes += min(replicas, 1)
	}
	return perDevice, accumulation, nodes
}

func (m *training) Rate(phase int, c workload.Running) float64 {
	perDevice, accumulation, nodes := m.setting(c)
	total := c.Replicas * perDevice * (accumulation + 1)
	if perDevice < 1 || perDevice > m.batch.MaxPerDevice || total > m.batch.Max {
		return 0
	}
	return m.epochs[phase].Gain(float64(total)/float64(m.batch.Initial)) /
		m.performance.StepTime(nodes, c.Replicas, float64(perDevice), accumulation)
}

func (m *training) Measure(phase int, c workload.Running) (core.Measurement, core.Gradients, bool) {
	perDevice, _, nodes := m.setting(c)
	return m.measured(nodes, c.Replicas, perDevice), core.Gradients(m.epochs[phase]), perDevice > 0
}

func (m *training) measured(nodes, replicas, perDevice int) core.Measurement {
	b := float64(perDevice)
	return core.Measurement{
		Nodes: nodes, Replicas: replicas, PerDevice: perDevice,
		PassSeconds: m.performance.GradTime(b), StepSeconds: m.performance.StepTime(nodes, replicas, b, 0),
	}
}

// job is a job of the model, with all that policies may ask for.
func (m *training) job(name, application string, submit float64, requested, most int) workload.Job {
	job := workload.Job{Model: m}
	spec := &job.Spec
	spec.Name, spec.Application, spec.SubmitSeconds, spec.Weight = name, application, submit, 1
	spec.Requested, spec.MinReplicas, spec.MaxReplicas = requested, 1, most
	spec.Batch, spec.TotalWork = m.batch, m.PhaseEnd(m.Phases()-1)
	spec.StepTimes, spec.Truth = &core.StepTimes{}, &core.Truth{Gradients: core.Gradients(m.epochs[0])}
	for r := 1; r <= most; r++ {
		perDevice, accumulation := goodput.SplitBatch(m.batch.Requested, r, m.batch)
		for nodes, times := range map[int]*[]float64{1: &spec.StepTimes.OneNode, 2: &spec.StepTimes.ManyNodes} {
			*times = append(*times, m.performance.StepTime(nodes, r, float64(perDevice), accumulation))
			spec.Truth.Measurements = append(spec.Truth.Measurements, m.measured(nodes, r, perDevice))
		}
	}
	slices.SortFunc(spec.Truth.Measurements, func(a, b core.Measurement) int {
		return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Replicas, b.Replicas))
	})
	return job
}

// drawTraining draws jobs that train, in every other scenario.
func (s *scenario) drawTraining(t *rapid.T) {
	if rapid.Bool().Draw(t, "training") {
		return
	}
	fraction := rapid.Float64Range(0.01, 1)
	for i := range rapid.IntRange(1, 12).Draw(t, "training jobs") {
		step := s.unit * rapid.Float64Range(0.5, 4).Draw(t, "step") // of the initial batch on one device
		m := &training{batch: core.BatchSpec{Initial: 64, Max: 64 << rapid.IntRange(0, 4).Draw(t, "max batch"), MinPerDevice: 4, MaxPerDevice: 128}}
		m.batch.Requested = min(64<<rapid.IntRange(0, 4).Draw(t, "requested batch"), m.batch.Max)
		m.performance = goodput.Performance{
			AlphaGrad: step * fraction.Draw(t, "alpha"), BetaGrad: step / 64, AlphaNode: step * fraction.Draw(t, "across"),
			BetaNode: step / 50, AlphaLocal: step / 4 * fraction.Draw(t, "local"), BetaLocal: step / 200,
			Gamma: rapid.Float64Range(1, 4).Draw(t, "gamma"),
		}
		for range rapid.IntRange(1, 4).Draw(t, "epochs") {
			m.epochs = append(m.epochs, goodput.Gradients{SquaredNorm: 1, Variance: rapid.Float64Range(0, 100).Draw(t, "noise")})
		}
		m.iterations = math.Round(rapid.Float64Range(10, 200).Draw(t, "iterations"))
		application := rapid.SampledFrom([]string{"narrow", "wide"}).Draw(t, "kind")
		most := map[string]int{"narrow": 2, "wide": 16}[application]
		s.trains = append(s.trains, m.job(fmt.Sprintf("j%d", len(s.rows)+i), application,
			s.unit*50*float64(rapid.IntRange(0, 40).Draw(t, "submit")), rapid.IntRange(1, most).Draw(t, "requested"), most))
	}
}

func (s *scenario) jobs() int { return len(s.rows) + len(s.trains) }

// addTraining puts the jobs that train among the others, in submission order.
func (s *scenario) addTraining(w *workload.Workload) {
	w.Jobs = append(w.Jobs, s.trains...)
	slices.SortStableFunc(w.Jobs, func(a, b workload.Job) int {
		return cmp.Or(cmp.Compare(a.Spec.SubmitSeconds, b.Spec.SubmitSeconds), cmp.Compare(len(a.Spec.Name), len(b.Spec.Name)), cmp.Compare(a.Spec.Name, b.Spec.Name))
	})
	for i := range w.Jobs {
		w.Jobs[i].Spec.ID = core.JobID(i)
	}
}
