//go:build linux

package kubetrainee

import (
	"errors"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
)

// model is how a training goes that has a profile: the very model that the simulator goes by.
type model interface {
	workload.Model
	workload.Measurer
}

// readModel reads a profile. The total batch is what the job asks for; 0 for the initial one.
func readModel(text string, batch int) (model, error) {
	p, err := goodput.ReadProfile("profile", []byte(text))
	if err != nil {
		return nil, err
	}
	if batch == 0 {
		batch = p.Batch.Initial
	}
	training, err := workload.Training(&p, batch)
	if err != nil {
		return nil, err
	}
	m, ok := training.(model)
	if !ok {
		return nil, errors.New("it says nothing of measurements")
	}
	return m, nil
}

// running is the training as its model knows it, under a tuning.
func (t *training) running(tuning *agent.Tuning) workload.Running {
	n := t.world.Replicas
	nodes := max(1, min(t.world.Nodes, n))
	c := workload.Running{Replicas: n, Shape: make([]int, nodes), Tuning: core.Tuning{
		BatchPerDevice: tuning.BatchPerDevice, AccumulationSteps: tuning.AccumulationSteps, LearningRateFactor: tuning.LearningRateFactor,
	}}
	for i := range c.Shape { // how many are on which of them makes no difference to a profile
		c.Shape[i] = 1
	}
	c.Shape[0] += n - nodes
	return c
}

// tune takes over the tuning that was told, once it suits the world: what is decided together is told one after the other. A world
// that the tuning so far does not suit any more gets the batch that the job asks for, until another is told.
func (t *training) tune() {
	if t.told != nil && t.suits(t.told) {
		t.tuning, t.told = *t.told, nil
	}
	if !t.suits(&t.tuning) {
		t.tuning = agent.Tuning{}
	}
}

func (t *training) suits(tuning *agent.Tuning) bool {
	return t.plan.model == nil || t.plan.model.Rate(t.phase(), t.running(tuning)) > 0
}

// phase is the part of the training that it is in.
func (t *training) phase() int {
	m := t.plan.model
	phase := 0
	for phase < m.Phases()-1 && m.PhaseEnd(phase) <= t.progress {
		phase++
	}
	return phase
}

// advance does what is done in so many seconds.
func (t *training) advance(seconds float64) {
	m := t.plan.model
	if m == nil {
		t.progress = min(t.progress+seconds*t.plan.rate(t.world.Replicas), t.plan.work)
		return
	}
	for seconds > 0 && t.progress < t.plan.work {
		phase := t.phase()
		rate := m.Rate(phase, t.running(&t.tuning))
		if rate <= 0 {
			return // it cannot run so
		}
		end := m.PhaseEnd(phase)
		needs := (end - t.progress) / rate
		if needs > seconds {
			t.progress += seconds * rate
			return
		}
		t.progress, seconds = end, seconds-needs
	}
}

// modelled is what the model says that is measured.
func (t *training) modelled() (agent.Report, bool) {
	seen, g, ok := t.plan.model.Measure(t.phase(), t.running(&t.tuning))
	return agent.Report{
		Replicas: seen.Replicas, Nodes: seen.Nodes, BatchPerDevice: seen.PerDevice, PassSeconds: seen.PassSeconds, StepSeconds: seen.StepSeconds,
		GradientSquare: g.SquaredNorm, GradientVariance: g.Variance, Progress: t.progress,
	}, ok
}
