package backend

import (
	"io"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// Abilities is what a backend can do besides core.Backend: AbilitiesOf finds it out once, and whoever carries the run out goes by the
// value. A field is nil, or false, where the backend cannot.
type Abilities struct {
	Scaling      core.Scaling     // adds and removes nodes
	KeepsDevices bool             // a job that stays on a node keeps its devices there
	Reseating    Reseating        // knows more of nodes than their devices
	Memory       core.Memory      // records rounds, so that a run is resumed
	Observer     core.Observer    // looks at rounds itself
	Files        core.FileReader  // has read files that the run depends on
	Clock        Ticking          // its time goes on between rounds: it is no simulation
	Driven       Driven           // lets a workload submit and end jobs while the run goes on
	Run          Identified       // distinguishes runs in the same folder
	Reactive     Reactive         // brings the reactive workload itself
	Jobs         workload.JobsOf  // knows the jobs that were submitted while the run goes on
	StartPauses  StartPauses      // knows how long jobs pause when they first start
	Pairs        Pairs            // knows whether jobs that share devices were measured together
	GivesUp      GivesUp          // may end a run in which nothing comes further
	Pending      Pending          // knows of jobs that the pipeline does not know yet
	Ends         Ends             // knows of ends that the pipeline does not know yet
	Leaving      Leaving          // can close while its jobs run on
	Closer       io.Closer        // has something to close
	Recalling    Recalling        // is a preview of a run whose rounds nobody kept
	Operated     Operated         // takes orders while it runs
	Expecting    Expecting        // knows of jobs that will be submitted later
	Forecasts    ForecastReporter // reports forecasts to the owners of jobs
	CatchingUp   CatchingUp       // may repeat the rounds of an earlier scheduler
}

// AbilitiesOf finds out what a backend can do.
func AbilitiesOf(b core.Backend) (a Abilities) {
	if keeper, is := b.(core.DeviceKeeper); is {
		a.KeepsDevices = keeper.KeepsDevices()
	}
	a.Reseating, _ = b.(Reseating)
	a.Scaling, _ = b.(core.Scaling)
	a.Memory, _ = b.(core.Memory)
	a.Observer, _ = b.(core.Observer)
	a.Files, _ = b.(core.FileReader)
	a.Clock, _ = b.(Ticking)
	a.Driven, _ = b.(Driven)
	a.Run, _ = b.(Identified)
	a.Reactive, _ = b.(Reactive)
	a.Jobs, _ = b.(workload.JobsOf)
	a.StartPauses, _ = b.(StartPauses)
	a.Pairs, _ = b.(Pairs)
	a.GivesUp, _ = b.(GivesUp)
	a.Pending, _ = b.(Pending)
	a.Ends, _ = b.(Ends)
	a.Leaving, _ = b.(Leaving)
	a.Closer, _ = b.(io.Closer)
	a.Recalling, _ = b.(Recalling)
	a.Operated, _ = b.(Operated)
	a.Expecting, _ = b.(Expecting)
	a.Forecasts, _ = b.(ForecastReporter)
	a.CatchingUp, _ = b.(CatchingUp)
	return a
}

// Reseating is a backend that knows which nodes a job can be on for more than their devices.
type Reseating interface {
	// Reseat corrects where a placer puts jobs, and refuses those that can be nowhere. Grants are those that the placer was asked about,
	// in order of precedence. It may be called several times a round, and each time forgets the time before.
	Reseat(v *core.View, grants []core.Grant, answer core.Seating) core.Seating
}

// Reseat is how the backend corrects a placer; nil where it does not.
func (a *Abilities) Reseat() func(*core.View, []core.Grant, core.Seating) core.Seating {
	if a.Reseating == nil {
		return nil
	}
	return a.Reseating.Reseat
}

// SubmittedElsewhere is a backend that is operated and takes no jobs by that.
type SubmittedElsewhere interface {
	// SubmitCommand is the command by which jobs come.
	SubmitCommand() string
}

// Identified is a backend that distinguishes runs in the same folder.
type Identified interface {
	// Begun is the same for all schedulers of a run, one after the other.
	Begun() string
}

// Reactive is a backend that brings a reactive workload itself, as the simulator does.
type Reactive interface {
	// Reacting is that workload; nil for a list of jobs.
	Reacting() workload.Reacting
}

// StartPauses is a backend that knows how long jobs pause when they first start.
type StartPauses interface {
	// StartPause is how long a job pauses when it first starts, in seconds.
	StartPause(id core.JobID) float64
}

// Pairs is a backend that knows whether jobs that share devices were measured together.
type Pairs interface {
	// PairsMeasured reports whether the backend goes by pairs that were measured, and whether two jobs of the workload are among them.
	PairsMeasured() (byPairs, known bool)
}

// GivesUp is a backend that may end a run in which nothing comes further.
type GivesUp interface {
	// GaveUpReason says in one sentence why the backend ended the run; empty where it did not.
	GaveUpReason() string
}

// Pending is a backend that knows of jobs that were submitted since the last round.
type Pending interface {
	// PendingSubmissions lists the jobs that the pipeline does not know yet.
	PendingSubmissions() []*core.Job
}

// Ends is a backend that knows of jobs that ended since the last round.
type Ends interface {
	// Ended returns how and when, in seconds of the run, a job ended; is is false for one that has not.
	Ended(id core.JobID) (state core.JobState, atSeconds float64, is bool)
}

// Leaving is a backend whose jobs can outlive the scheduler.
type Leaving interface {
	// Leave closes the backend, and reports how many jobs run on.
	Leave() (running int, err error)
}

// CatchingUp is a backend that may repeat the rounds of an earlier scheduler before it holds new ones.
type CatchingUp interface {
	// Replaying reports whether the next round is one of an earlier scheduler. It may be called from any goroutine.
	Replaying() bool
}

// OpenerAbilities is what the opener of a backend can do besides Opener: OpenerAbilitiesOf finds it out once.
type OpenerAbilities struct {
	Durable  Durable  // opens a backend of real machines
	Growing  Growing  // its backend finds the nodes itself
	Planner  Planner  // plans without touching anything that runs
	Joining  Joining  // knows which nodes join later
	Starting Starting // knows how long jobs take to start
}

// OpenerAbilitiesOf finds out what the opener of a backend can do.
func OpenerAbilitiesOf(o Opener) (a OpenerAbilities) {
	a.Durable, _ = o.(Durable)
	a.Growing, _ = o.(Growing)
	a.Planner, _ = o.(Planner)
	a.Joining, _ = o.(Joining)
	a.Starting, _ = o.(Starting)
	return a
}

// Joining is an Opener that knows which nodes join later.
type Joining interface {
	// Grown is a cluster with all of them.
	Grown(c *core.Cluster) *core.Cluster
}
