// Package backend holds what every backend has in common.
package backend

import (
	"context"
	"io"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// Opener opens a backend on a cluster for a workload. It is what the factory of a backend builds.
type Opener interface {
	// Check reports what in its settings does not go with a cluster or with the rounds on it. Paths are those inside its
	// config.
	Check(c *core.Cluster, o core.RoundOptions) core.Diagnostics
	// Open opens the backend. The caller closes it, if it has something to close.
	Open(ctx context.Context, c *core.Cluster, w *workload.Workload) (core.Backend, error)
	// Capabilities lists what the backend can tell and do, which components may need.
	Capabilities() []core.Capability
}

// Starting is implemented by an Opener that knows how long jobs take to start.
type Starting interface {
	// LongestStart is how long the start of a job takes at most.
	LongestStart() Start
}

// Start is how long a job has devices at most before it computes, at a start or move that is not spared it.
type Start struct {
	Pause time.Duration // most that a job waits with its devices
	Keys  []string      // in the config of the backend, that add up to it
	// Event is when something first comes of a start that is an event to the pipeline, after which rounds on events follow; 0 for nothing before the job
	// computes. EventKey says so.
	Event    time.Duration
	EventKey string // key in the config of the backend that says how long; empty where none does
}

// Run says what a backend of real machines is opened for.
type Run struct {
	Dir      string          // its folder, for what the config does not place elsewhere
	Identity string          // text that is equal for runs that decide alike
	Config   string          // resolved, for whoever reads the state
	Files    []core.FileRead // that its policies read when they were made
	Program  string          // version of this program; empty when it is not known
	Fresh    bool            // what is found is stopped and forgotten

	// Differs lists in which settings that decide a recorded config is not as the one of the run, as this program reads both. nil where nobody knows.
	Differs func(config string) ([]string, error)
}

// StoreFile is the file in the folder of a backend of real machines that a killed run goes on from.
const StoreFile = "state.db"

// Durable opens a backend of real machines, whose state outlives the scheduler. For is called before Open.
type Durable interface {
	Opener
	// For tells which run the backend is opened for.
	For(r Run)
	// Dir is the folder of the state.
	Dir() string
}

// Growing opens a backend that finds its nodes: the pipeline begins without any, whatever the config says.
type Growing interface {
	Opener
	// Grows does nothing: it marks the opener.
	Grows()
}

// Planner opens a backend on what a scheduler knows, without touching anything that runs.
type Planner interface {
	// Preview opens a snapshot, as Operated writes it; without one, the run is taken to begin now.
	Preview(ctx context.Context, snapshot string, c *core.Cluster, w *workload.Workload) (Preview, error)
}

// Preview is a backend that repeats what a scheduler saw and ends with the round that comes next.
type Preview interface {
	core.Backend
	// Changes are what the next round would do.
	Changes() []core.Change
}

// Recalling is a Preview of a run whose rounds nobody kept: it returns what else of them is known.
type Recalling interface {
	Preview
	// Ended are jobs that have ended, as far as they are known, in the order of their ends.
	Ended() []*core.Job
}

// Operated is a backend that people give orders to while it runs. Its methods may be called from any goroutine; each
// returns once its order outlives the scheduler. What an order comes to, the backend reports as an event.
type Operated interface {
	core.Backend
	// Submit takes in the jobs of a file, all or none, and returns their names. What is wrong with them is a
	// core.Diagnostics error.
	Submit(ctx context.Context, f JobFile) ([]string, error)
	// Cancel ends a job. It is an error to name one that was never submitted, and none to name one that has ended.
	Cancel(ctx context.Context, job string) error
	// SetHealth drains a node, or makes it ready again.
	SetHealth(ctx context.Context, node string, h core.Health) error
	// ReadLog writes what a replica put out, from the beginning of what is kept.
	ReadLog(ctx context.Context, l Log, to io.Writer) error
	// WriteSnapshot writes all that a scheduler needs to take over from this one: Preview begins from it.
	WriteSnapshot(ctx context.Context, to io.Writer) error
}

// ForecastReporter is a backend that reports to the owners of jobs what is expected of them. It may be called from any goroutine, and keeps the list.
type ForecastReporter interface {
	// ReportForecasts replaces what was reported before.
	ReportForecasts(jobs []Expected)
}

// Expected is what is expected of a job that has not ended.
type Expected struct {
	Job          core.JobID   // that is expected to start or end
	AtSeconds    float64      // moment of the forecast, in seconds of the run
	Position     int          // among those that wait; 0 for one that runs
	Start, End   ExpectedBand // Start is the zero value for one that runs
	Judged, Held int          // bands like the one that comes first, so far
}

// ExpectedBand is where a moment lies, in seconds of the run; +Inf for not foreseen.
type ExpectedBand struct {
	Low, Median, High float64 // ends and median of the interval
}

// Expecting is a backend that knows of jobs before their moment of submission.
type Expecting interface {
	// Coming lists the jobs that the pipeline does not know yet, by moment of submission. It may be called from any goroutine.
	Coming(ctx context.Context) ([]Coming, error)
}

// Driven is a backend whose jobs a workload submits and ends by what becomes of earlier ones. It is driven again by whoever takes over: what was done already is not done
// again. Its methods may be called from any goroutine.
type Driven interface {
	Operated
	// SubmitJobs takes in jobs, now; of those whose names are taken nothing comes.
	SubmitJobs(ctx context.Context, jobs []workload.Job) error
	// EndEarly ends a job as completed with what it did. Of one that has ended nothing comes.
	EndEarly(ctx context.Context, job string, why core.Reason) error
	// Begun identifies the run: it is the same for all that drive one, one after the other.
	Begun() string
	// NoMore says that no more jobs are submitted so: the run ends when those that it has by then have ended.
	NoMore(ctx context.Context) error
}

// Coming is a job that is still to be submitted.
type Coming struct {
	core.JobSpec
	Cancelled bool // it ends when its moment comes
}

// JobFile is a file of jobs as its submitter sees it.
type JobFile struct {
	Name string // name of the file, for diagnostics
	Text []byte // as the submitter wrote it
	Dir  string // the submitter's working folder, absolute: where jobs run that do not say, and what their folders are relative to
}

// Log names the output of one replica of a job.
type Log struct {
	Job    string // name of the job
	Rank   int    // of the replica, from 0
	Stderr bool   // standard error instead of standard output
	Follow bool   // until the job has ended
}

// Ticking is implemented by a backend whose time goes on between rounds.
type Ticking interface {
	// Present is the time in seconds of the run. It may be called from any goroutine.
	Present() float64
}
