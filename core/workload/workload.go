// Package workload is where jobs come from: trace readers, a generator, and the models that say how a job progresses.
package workload

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// Source yields a workload: a reader of a trace format, or a generator.
type Source interface {
	// Load reads everything. A problem in an input is a core.Diagnostics error; no row is skipped silently.
	Load(ctx context.Context) (*Workload, error)
}

// Workload is a list of jobs in submission order: by time, then by the trailing number of their names, then by name,
// so that permuting the rows of a trace changes nothing; those of a job file keep its order. Jobs[i].Spec.ID is i.
type Workload struct {
	// Jobs: jobs in order of submission.
	Jobs []Job
	// Inputs: files that the jobs were read from.
	Inputs []Input
	Open   bool // more jobs are submitted while the run goes on, which has no end of its own

	// React makes what submits the jobs of one run, in the course of it; nil for a workload that is a list of jobs. Jobs then has none. The record is the file in which it
	// keeps what it needs to answer alike when the run is gone on with; empty where nobody goes on with it.
	React func(ctx context.Context, record string) (Reacting, error)
	// Identity is that of a workload that reacts: the same for those that answer alike.
	Identity string
	// Kinds are jobs such as it submits, for what is checked before a run.
	Kinds []Job
}

// Job is a job of a workload together with the model that the simulator runs it by, and how real machines run it.
type Job struct {
	// Spec: what the job asks for.
	Spec core.JobSpec
	// Model: how the job progresses in a simulation.
	Model   Model
	Process Process       // what a real backend needs besides
	At      core.Position // where the trace declares it

	// What a trace says about the job's length besides the truth, in seconds on the replicas it asks for; 0 for nothing.
	LimitSeconds    float64 // at which it would have been ended
	EstimateSeconds float64 // expected of it

	told *knownWork // what policies are told in the place of Spec; nil for Spec

	Observed Observed // how it went where it was recorded; no policy sees it
}

// Observed is how a job of a trace went where it was recorded; zero where the trace does not say.
type Observed struct {
	// Started: whether it ever ran.
	Started bool
	// SubmitSeconds and StartSeconds are on the clock of the trace, that of a window of it may be another.
	SubmitSeconds, StartSeconds float64
	// Outcome: how it ended, such as completed or failed; empty where the trace does not say.
	Outcome string
}

// WaitSeconds is how long the job waited.
func (o *Observed) WaitSeconds() float64 { return o.StartSeconds - o.SubmitSeconds }

// StartOn is when the job started on a clock on which it was submitted at the given moment.
func (o *Observed) StartOn(submit float64) float64 {
	if submit == o.SubmitSeconds { // exactly as it was read
		return o.StartSeconds
	}
	return submit + o.WaitSeconds()
}

// CountsSeconds reports whether the job's work is counted in seconds at the replicas it asks for.
func (j *Job) CountsSeconds() bool {
	_, seconds := j.Model.(*durationModel)
	return seconds
}

// Input is a file that was read, for the manifest.
type Input struct {
	// Path: path of the file.
	Path   string
	SHA256 string // of the bytes on disk, hex
}

// Model says how a job progresses. Its work is divided into phases (the epochs of a training job) within which the
// rate depends on nothing but where and how the job runs.
type Model interface {
	// Phases is the number of phases.
	Phases() int
	// PhaseEnd is the cumulative work at the end of a phase, increasing; that of the last phase is the total.
	PhaseEnd(phase int) float64
	// Rate is the work per second in a phase; 0 when the job cannot run so.
	Rate(phase int, c Running) float64
	// StepsLeft is the number of optimizer steps left at the requested batch when a phase begins; NaN when unknown.
	StepsLeft(phase int) float64
}

// Running is where and how a job runs.
type Running struct {
	Shape        []int    // replicas on each node, in seat order
	Accelerators []string // type of each of these nodes
	Replicas     int      // sum of Shape
	// Tuning: batch settings that the job runs with.
	Tuning core.Tuning
}

// Accelerator is the type that all replicas run on, empty when it is unknown; false when they run on several.
func (c *Running) Accelerator() (accelerator string, one bool) {
	for i, other := range c.Accelerators {
		if i > 0 && other != accelerator {
			return "", false
		}
		accelerator = other
	}
	return accelerator, true
}

// Profiled is implemented by a model that goes as a profile says.
type Profiled interface {
	// Profile is the profile that the model goes by.
	Profile() *goodput.Profile
}

// Reporter is implemented by a model whose jobs report metrics, such as their loss.
type Reporter interface {
	// Reports is what a job reports at the end of a phase, the same for every job of the model. It is not to be changed.
	Reports(phase int) []Reported
}

// Reported is a value of a metric.
type Reported struct {
	// Metric: name of the metric.
	Metric      string
	Step, Value float64 // as in core.Point
}

// Restarter is implemented by a model whose jobs may lose what they did when their replicas end: by a stop, a move or an interruption.
type Restarter interface {
	// BeginsAnew reports whether a job begins anew after its replicas ended, rather than from a checkpoint.
	BeginsAnew() bool
}

// Measurer is implemented by a model whose jobs report what they measure while they run.
type Measurer interface {
	// Measure is what a job running so in a phase reports. It is false when it runs on what was never measured.
	Measure(phase int, c Running) (core.Measurement, core.Gradients, bool)
}
