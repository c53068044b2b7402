// Package twin simulates what may become of a run, from a moment of it on, with second instances of its policies. It never touches the run.
//
// A RunSnapshot is a run at a moment. A World is an assumption about the machines and jobs: nobody knows the truth of a live run, and a forecast of a
// simulated one does not look it up. A RunSnapshot and a World give a Future; several Worlds, drawn from a WorkloadModel, give a Forecast.
package twin

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
)

// RunSnapshot is a run at a moment between two rounds. It does not change, and many futures may begin with it at the same time.
type RunSnapshot struct {
	pipeline *core.Pipeline
}

// Policies make the policies of a future.
type Policies struct {
	NewInstances func() (core.Stages, error) // makes second instances
	End          func(*core.Stages) error    // called when the future is over; nil for nothing to do
	Options      core.RoundOptions           // of their rounds
	// Same says that they are those that decide in the run: they go on where those of the run are. Others take over, as if the config were changed.
	Same bool
}

// World is an assumption about the machines and the jobs of a run from a moment on.
type World struct {
	Config   sim.Config     // settings of the simulator
	Jobs     []Job          // those that have not ended, by JobID
	Arrivals []workload.Job // to come, in order of their submissions, which are after the moment; their ids are given to them
	// Present ends a future when the jobs that were there at its beginning have ended, whatever else arrived.
	Present bool
	Seed    uint64 // of what is drawn in the course of the simulation, such as delays of starts
	// Nodes are changes in the health of nodes to come, in order of time.
	Nodes []NodeChange
}

// Job is the assumption about a job that was submitted: how it goes on. Model.PhaseEnd of the last phase is all of its work, in the unit of core.Job.Progress.
type Job struct {
	ID    core.JobID     // of a job that has not ended
	Model workload.Model // how it goes on
}

// NodeChange is a node that changes its health at a moment.
type NodeChange = sim.NodeChange

// JobOutcome is what becomes of a job in a future.
type JobOutcome struct {
	ID            core.JobID // of the job
	SubmitSeconds float64    // moment of its submission, in seconds of the run
	// StartSeconds is when it has devices next, or began to have those that it has; NaN for not within the horizon.
	StartSeconds float64
	EndSeconds   float64       // NaN for not within the horizon
	Outcome      core.JobState // state at the end of the future
	Restarts     int           // from the moment on
	Progress     float64       // at the end of the future, in the unit of core.Job.Progress
}

// Future is a simulation of what may become of a run.
type Future struct {
	FromSeconds, ToSeconds float64      // span of the future, in seconds of the run
	Jobs                   []JobOutcome // those that have not ended at its beginning, by JobID, then those that arrive
	Rounds                 int          // held in it
	DeviceSeconds          float64      // that jobs held
}

// Take is the run of a pipeline as it stands. It is called between two rounds of the pipeline, by the goroutine that runs it. O(jobs).
func Take(p *core.Pipeline) *RunSnapshot { return &RunSnapshot{p.Fork()} }

// Unfinished are the jobs that have not ended, those that wait for admission as well, by JobID. O(jobs).
func (s *RunSnapshot) Unfinished() []*core.Job { return s.pipeline.Unfinished() }

// View is the state of the run. It is not to be changed.
func (s *RunSnapshot) View() *core.View { return s.pipeline.View() }

// ViewAfter is the state of the run after an observation, and before anything is decided. It must not be changed.
func (s *RunSnapshot) ViewAfter(seen core.Observation) (*core.View, error) {
	return s.pipeline.ViewAfter(seen)
}
