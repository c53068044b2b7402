package workload

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// gavelTask is what jobs must have in common to be as fast as each other.
type gavelTask struct {
	jobType  string
	replicas int
}

func compareGavelTasks(a, b gavelTask) int {
	return cmp.Or(cmp.Compare(a.jobType, b.jobType), cmp.Compare(a.replicas, b.replicas))
}

// gavelSpeed is how fast jobs of a task are.
type gavelSpeed struct {
	replicas     int
	pairs        *core.PairTable
	accelerators []string  // types that can run it, ascending
	rates        []float64 // steps per second on each of them
	stepTimes    core.StepTimes
}

// newGavelSpeed takes the types in ascending order, each once.
func newGavelSpeed(replicas int, accelerators []string, rates []float64) *gavelSpeed {
	s := &gavelSpeed{replicas: replicas}
	for i, rate := range rates {
		if rate <= 0 {
			continue
		}
		s.accelerators, s.rates = append(s.accelerators, accelerators[i]), append(s.rates, rate)
		times := make([]float64, replicas)
		times[replicas-1] = 1 / rate
		s.stepTimes.Types = append(s.stepTimes.Types, core.TypeTimes{Accelerator: accelerators[i], OneNode: times, ManyNodes: times})
	}
	return s
}

// on is the rate on an accelerator type; 0 where the job cannot run.
func (s *gavelSpeed) on(accelerator string) float64 {
	if i, found := slices.BinarySearch(s.accelerators, accelerator); found {
		return s.rates[i]
	}
	return 0
}

// gavelModel is a rigid job of so many steps: one phase, at a rate that depends on the accelerator type only.
type gavelModel struct {
	*gavelSpeed
	steps float64
}

func (m *gavelModel) Phases() int           { return 1 }
func (m *gavelModel) PhaseEnd(int) float64  { return m.steps }
func (m *gavelModel) StepsLeft(int) float64 { return m.steps }

func (m *gavelModel) Rate(_ int, c Running) float64 {
	accelerator, one := c.Accelerator()
	if !one || c.Replicas != m.replicas {
		return 0
	}
	return m.on(accelerator)
}

// newGavelJob is a rigid job of so many steps.
func newGavelJob(name, jobType string, submit, steps float64, speed *gavelSpeed) Job {
	job := Job{Model: &gavelModel{speed, steps}}
	spec := &job.Spec
	spec.Name, spec.Application, spec.Weight = name, jobType, 1
	spec.SubmitSeconds, spec.TotalWork = submit, steps
	spec.Requested, spec.MinReplicas, spec.MaxReplicas = speed.replicas, speed.replicas, speed.replicas
	spec.Accelerators, spec.StepTimes, spec.Pairs = speed.accelerators, &speed.stepTimes, speed.pairs
	return job
}
