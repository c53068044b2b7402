package core

import (
	"context"
	"fmt"
)

// Backend is the world that a pipeline schedules: the simulator, or real machines. It tells events and applies changes.
type Backend interface {
	// Next waits until a round is due and returns the moment and what happened up to it, in order of time. It returns
	// io.EOF when nothing more will ever happen.
	Next(ctx context.Context, w Wake) (Observation, error)
	// Apply carries out the changes of a round. Applying the same changes twice has the effect of once.
	Apply(ctx context.Context, changes []Change) error
	Capabilities() []Capability
}

// Wake says when the next round is due.
type Wake struct {
	// BySeconds is when to wake even if nothing happens; +Inf to wake on events only.
	BySeconds float64
	// IntervalSeconds is the grid of rounds, 0 for none: an event wakes the pipeline at the next multiple of it.
	IntervalSeconds float64
	// OnEvents wakes the pipeline at the very moment of an event, except for JobProgressed, which stays on the grid.
	OnEvents bool
}

// Observation is what a backend tells at a round. The events are valid until the next call of Next.
type Observation struct {
	NowSeconds float64
	Events     []Event
}

// Capability is something beyond the plain View that a backend can tell and a policy may need. A config that puts a
// policy on a backend without its capability is refused.
type Capability string

// The capabilities.
const (
	CapabilityRemainingWork Capability = "remaining_work" // JobSpec.TotalWork and Job.Progress are known
	CapabilityStepTimes     Capability = "step_times"     // JobSpec.StepTimes and Job.StepsLeft are the truth
	CapabilityMeasurements  Capability = "measurements"   // JobSpec.Truth is known
	CapabilityScaleCluster  Capability = "scale_cluster"  // nodes can be added and removed
)

// InvariantError says which component broke a rule that every plan obeys.
type InvariantError struct {
	Component string // component id, such as "placement/first_fit"
	Round     int
	Job       string // name; empty when no job is to blame
	Rule      string
	Detail    string
}

func (e *InvariantError) Error() string {
	job := ""
	if e.Job != "" {
		job = fmt.Sprintf(" for job %q", e.Job)
	}
	return fmt.Sprintf("round %d: component %q broke %s%s: %s", e.Round, e.Component, e.Rule, job, e.Detail)
}
