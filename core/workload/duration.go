package workload

import "math"

// durationModel is a job of known length: one phase, its work in seconds at the requested replicas, and a rate in
// proportion to the replicas, so that elastic policies work on it too.
type durationModel struct {
	seconds   float64
	requested float64
}

// NewDurationModel models a job that runs for the given seconds on the requested replicas.
func NewDurationModel(seconds float64, requested int) Model {
	return &durationModel{seconds: seconds, requested: float64(requested)}
}

func (m *durationModel) Phases() int                   { return 1 }
func (m *durationModel) PhaseEnd(int) float64          { return m.seconds }
func (m *durationModel) Rate(_ int, c Running) float64 { return float64(c.Replicas) / m.requested }
func (m *durationModel) StepsLeft(int) float64         { return math.NaN() }

// newDurationJob is a rigid job of known length.
func newDurationJob(name string, submit, seconds float64, replicas int) Job {
	job := Job{Model: NewDurationModel(seconds, replicas)}
	job.Spec.Name, job.Spec.Weight = name, 1
	job.Spec.SubmitSeconds, job.Spec.TotalWork = submit, seconds
	job.Spec.Requested, job.Spec.MinReplicas, job.Spec.MaxReplicas = replicas, replicas, replicas
	return job
}
