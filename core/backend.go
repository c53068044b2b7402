package core

import (
	"context"
	"fmt"
)

// Backend is the world that a pipeline schedules: the simulator, or real machines. It reports events and applies changes.
// One goroutine calls Next and Apply, in turn. What a backend keeps to, backendtest.Run checks.
//
// Time is the backend's own, in seconds since the run began, from a clock that it was given. NowSeconds never goes back,
// not even over a restart of the scheduler.
//
// A backend that may deliver an event again, because a watch was set up anew or a scheduler ended between delivering and
// remembering, gives its events ids. See Event.ID.
type Backend interface {
	// Next waits until a round is due, and returns the moment and what happened up to it: what happened to one job, or to
	// one node, in order of time. A real clock may be late for a round, and is never early for one.
	//
	// It waits for nothing else. When the context ends it returns its error, or the round that is due anyway, and loses
	// nothing: the next call returns what this one did not. It returns io.EOF when nothing more will ever happen, and from
	// then on. Unavailable says that it cannot answer for a while, and ErrFenced that another scheduler took over. Any other error
	// is a malfunction that ends the run.
	Next(ctx context.Context, w Wake) (Observation, error)
	// Apply takes in the changes of a round, as of the last observation. It returns once they outlive the scheduler,
	// where jobs do, and need not wait for them to be carried out: a job that is to run on devices that another one has not
	// let go of starts when they are free. Applying the changes of a round again has no further effect; Change.Round says
	// a repetition from a new decision.
	//
	// A change for a job that has ended, or lost its devices, since the observation has no effect, for the pipeline is yet to
	// be reported. What becomes of the others is reported as events: a start that comes to nothing, because its node is down, as
	// JobInterrupted; the end of a job that was faster than its stop, as that. An error, for a job that was never submitted
	// say, is a malfunction that ends the run; some changes may have been taken in. After Unavailable the same changes are
	// applied again.
	Apply(ctx context.Context, changes []Change) error
	// Capabilities are the same at every call.
	Capabilities() []Capability
}

// Wake says when the next round is due.
type Wake struct {
	// BySeconds is when to wake even if nothing happens; +Inf to wake on events only.
	BySeconds float64
	// IntervalSeconds is the grid of rounds, 0 for none: an event wakes the pipeline at the next multiple of it.
	IntervalSeconds float64
	// OnEvents wakes the pipeline at the very moment of an event, except for JobProgressed and JobReported, which stay on the grid.
	OnEvents bool
	// OnReports has JobReported wake the pipeline: at the next multiple of the interval, and at its very moment without one. Otherwise a
	// report comes with the next event; a backend of real machines may wake the pipeline for it within seconds, for those who watch.
	OnReports bool
}

// Observation is what a backend reports at a round. The events are valid until the next call of Next. None is later than
// NowSeconds, and none that is reported for the first time is earlier than the observation before: what a backend learns too
// late, such as that a job ended before it was stopped, it reports as of then.
type Observation struct {
	NowSeconds float64 // moment of the round, in seconds of the run
	Events     []Event // what happened since the round before, in order of time
	// Decided is set for a round that an earlier scheduler held: what it decided stands. nil for a new round.
	Decided *Decided
}

// Capability is something beyond the plain View that a backend can report and a policy may need. A config that puts a
// policy on a backend without its capability is refused.
type Capability string

// The capabilities.
const (
	CapabilityRemainingWork Capability = "remaining_work" // JobSpec.TotalWork and Job.Progress are known
	CapabilityStepTimes     Capability = "step_times"     // JobSpec.StepTimes and Job.StepsLeft are the truth
	CapabilityMeasurements  Capability = "measurements"   // JobSpec.Truth is known
	CapabilityScaleCluster  Capability = "scale_cluster"  // nodes can be added and removed
	CapabilityShares        Capability = "shares"         // jobs can share devices
	CapabilitySlices        Capability = "slices"         // devices can be divided into slices
	CapabilityResources     Capability = "resources"      // jobs can have other CPUs and memory than they ask for, and others while they run
	CapabilityPairRates     Capability = "pair_rates"     // JobSpec.Pairs is the truth
)

// InvariantError says which component broke a rule that every plan obeys.
type InvariantError struct {
	Component string // component id, such as "placement/first_fit"
	Round     int    // number of the round, from 1
	Job       string // name; empty when no job is to blame
	Rule      string // that was broken, in a few words
	Detail    string // what the component answered, in one sentence
}

// Error words which component broke which rule in which round, and how.
func (e *InvariantError) Error() string {
	job := ""
	if e.Job != "" {
		job = fmt.Sprintf(" for job %q", e.Job)
	}
	return fmt.Sprintf("round %d: component %q broke %s%s: %s", e.Round, e.Component, e.Rule, job, e.Detail)
}
