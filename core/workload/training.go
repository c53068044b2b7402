package workload

import (
	"sort"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// Trainer is implemented by the model of a job that trains at a batch.
type Trainer interface {
	// Training is the batch of an optimizer step of a job that runs so in a phase, over all replicas, its statistical
	// efficiency, and the samples at the initial batch that a unit of work is worth. It is false where the job cannot run so.
	//
	// Source of the efficiency: Pollux, OSDI 2021, section 2.2.
	Training(phase int, c Running) (batch int, efficiency, samples float64, ok bool)
}

// Trainings says how the jobs of a workload train where they run.
type Trainings struct {
	cluster *core.Cluster
	jobs    JobsOf
	running Running // to use again
}

// NewTrainings returns the trainings of the jobs of a workload on a cluster.
func NewTrainings(c *core.Cluster, jobs JobsOf) *Trainings { return &Trainings{cluster: c, jobs: jobs} }

// At is how a job trains on seats at a progress, in the unit of its work. It is false for a job that does not train at a
// batch, or cannot run so, and for one that was not part of the workload.
func (t *Trainings) At(id core.JobID, progress float64, seats []core.Seat, tuning core.Tuning) (batch int, efficiency, samples float64, ok bool) {
	job := t.jobs.JobOf(id)
	if job == nil {
		return 0, 0, 0, false
	}
	model := job.Model
	trainer, ok := model.(Trainer)
	if !ok {
		return 0, 0, 0, false
	}
	last := model.Phases() - 1
	phase := sort.Search(last, func(p int) bool { return model.PhaseEnd(p) > progress })
	c := &t.running
	c.Shape, c.Accelerators, c.Tuning = c.Shape[:0], c.Accelerators[:0], tuning
	for _, s := range seats {
		c.Shape = append(c.Shape, s.Devices.Count())
		c.Accelerators = append(c.Accelerators, t.cluster.Accelerators[t.cluster.Nodes[s.Node].Accelerator])
	}
	c.Replicas = core.Replicas(seats)
	return trainer.Training(phase, *c)
}

// Training is as the profile says.
func (m *modelledModel) Training(phase int, c Running) (batch int, efficiency, samples float64, ok bool) {
	perDevice, accumulation, ok := m.setting(c)
	if !ok {
		return 0, 0, 0, false
	}
	batch = c.Replicas * perDevice * (accumulation + 1)
	return batch, m.gradients[phase].Efficiency(m.scale(batch)), float64(m.batch.Initial), true
}

// Training is as the profile says.
func (m *measuredModel) Training(phase int, c Running) (batch int, efficiency, samples float64, ok bool) {
	perDevice, accumulation := c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
	if perDevice == 0 {
		perDevice, accumulation = goodput.SplitBatch(m.batch.Requested, c.Replicas, m.batch)
	}
	batch = c.Replicas * perDevice * (accumulation + 1)
	if _, ok := m.stepTime(c.Shape, perDevice); !ok || accumulation < 0 {
		return 0, 0, 0, false
	}
	efficiency, ok = m.efficiency(batch, phase)
	return batch, efficiency, float64(m.trainings[0].batch), ok
}

// Training is as the profile says. Work of a job that keeps its batch is counted in steps at it.
func (m *siaModel) Training(phase int, c Running) (batch int, efficiency, samples float64, ok bool) {
	_, _, perDevice, accumulation, ok := m.step(c)
	if !ok {
		return 0, 0, 0, false
	}
	batch = c.Replicas * perDevice * (accumulation + 1)
	if efficiency, ok = m.efficiency(batch, phase); !ok {
		return 0, 0, 0, false
	}
	samples = float64(m.trainings[0].batch)
	if m.fixed {
		samples = float64(batch) * efficiency
	}
	return batch, efficiency, samples, true
}

// efficiency is what a sample at a total batch gains, over one at the initial batch; false when the batch is out of range.
func (p *learning) efficiency(batch, epoch int) (float64, bool) {
	if _, _, ok := p.around(batch); !ok {
		return 0, false
	}
	return p.gain(batch, epoch) * float64(p.trainings[0].batch) / float64(batch), true
}
