package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/synthesizer"
	"github.com/quartet-sched/quartet/core/timeline"
	"github.com/quartet-sched/quartet/core/workload"
)

// Result is what a run came to.
type Result struct {
	Summary     *metrics.Summary // figures of the run
	Text        []byte           // Summary as in summary.json
	Jobs        []metrics.Job    // every submitted job, in order of submission; nil with Composition.Brief
	Unfinished  []*core.Job      // those of the measured jobs that have not ended
	Interrupted bool             // the context ended before the run did
	EndSeconds  float64          // of the run
	Dir         string           // that holds the files; empty when none were written
	ReplacedRun bool             // Dir held the same run before, whose files these replace
	Files       []File           // all but summary.json and manifest.json, which depend on how long the run took or on these
	Inputs      []Digest         // files that the run read
	Outputs     []Digest         // digests of Files
	Plugins     []Plugin         // that took part

	failure error
}

// Simulate runs the composition on its simulator until all jobs have ended, nothing can happen any more, or the context
// ends. When the context ends or a component fails there is a result besides the error: that up to then. Without a result,
// the run did not begin and nothing was written.
func (c *Composition) Simulate(ctx context.Context) (*Result, error) {
	return c.execute(ctx, false)
}

// Run runs the composition on real machines, as Simulate does on the simulator. The state of the run is kept in a folder
// "live" of Dir, unless the config of the backend names another: a run that was killed goes on when it is run again.
func (c *Composition) Run(ctx context.Context) (*Result, error) {
	return c.execute(ctx, true)
}

// Session is a run that is about to begin.
type Session struct {
	Config        *configs.Config          // of the run
	Cluster       *core.Cluster            // as the run begins
	Workload      *workload.Workload       // jobs of the run, as far as they are known
	Backend       core.Backend             // as the pipeline sees it
	OpenedBackend core.Backend             // as it was opened
	State         string                   // folder that holds the state of a run on real machines
	Collector     *metrics.Collector       // measures the run
	Stopwatch     func() time.Duration     // time since the run began
	Troubles      func() []metrics.Trouble // lists the plugins that failed so far
	Tuning        func() *metrics.Tuning   // what a search for hyper-parameters has come to; nil where there is none
}

// Attachment is what stands between the pipeline and what it works with, for watching a run and giving it orders. The zero value leaves the run alone.
type Attachment struct {
	Backend   core.Backend    // instead of that of the session; nil to keep it
	Observers []core.Observer // see every round before the others do
	// Finish is called instead of Session.Collector.Finish, and Observers see rounds instead of that collector; nil for neither.
	Finish func(unfinished []*core.Job, endSeconds float64) (*metrics.Summary, error)
	Stop   func() // called when the run has ended; nil for nothing to do
}

// execution is one run from its beginning to its end.
type execution struct {
	*Composition
	live      bool // on real machines
	log       *slog.Logger
	stopwatch func() time.Duration
	ends      []func(r *Result, failure error) error // what the end of the run has to undo, the last one first

	// What open finds and makes.
	dir       string   // that holds the files
	lock      *os.File // of that folder; nil where there is none
	replaced  bool     // what is recorded there
	jobs      *workload.Workload
	window    metrics.Window
	inputs    []Digest // files that the run rests on
	cluster   *core.Cluster
	stages    core.Stages
	backend   core.Backend // as it was opened
	can       backend.Abilities
	state     string            // folder that holds the state of a live run; empty for a simulation
	reactive  workload.Reacting // nil for a list of jobs
	files     *outputs
	collector *metrics.Collector
	recorder  *timeline.Recorder // nil when its files are not wanted
	opened    bool               // the stages are closed like those of a run, not discarded

	// What assemble puts together.
	counted  *measuredJobs
	attached Attachment
	policies *policies
	driver   *workloadDriver          // of a live run with a reactive workload; nil otherwise
	chooser  *synthesizer.Synthesizer // nil for a config of one composition
	pipeline *core.Pipeline
	asked    core.Backend // what the pipeline is given
	holding  context.Context
	began    bool // rounds are held: nobody knows what was written
}

// execute carries a run from its config to its results, or up to where the context ends it.
func (c *Composition) execute(ctx context.Context, live bool) (r *Result, err error) {
	e := &execution{Composition: c, live: live, dir: c.Dir, log: c.logger(), stopwatch: c.stopwatch(), cluster: c.BuildCluster()}
	defer func() { err = e.end(r, err) }()
	if err := e.open(ctx); err != nil {
		return nil, err
	}
	if err := e.assemble(ctx); err != nil {
		return nil, err
	}
	interrupted, failure := e.holdRounds(ctx)
	return e.conclude(ctx, interrupted, failure)
}

// atEnd has something undone when the run ends, before what was to be undone so far. It is given what the run came to.
func (e *execution) atEnd(undo func(r *Result, failure error) error) { e.ends = append(e.ends, undo) }

// end undoes what the run has done, and returns the error that it ends with.
func (e *execution) end(r *Result, failure error) error {
	for _, undo := range slices.Backward(e.ends) {
		if err := undo(r, failure); err != nil {
			failure = errors.Join(failure, err)
		}
	}
	if r == nil && failure != nil && !e.began {
		e.noteEarlier()
	}
	return failure
}

// holdRounds holds the rounds until the run has ended, and returns why where that was no end of its own.
func (e *execution) holdRounds(ctx context.Context) (interrupted bool, failure error) {
	failure = e.hold(e.holding, e.pipeline, e.asked)
	interrupted = ctx.Err() != nil && errors.Is(failure, ctx.Err())
	if e.driver != nil {
		switch driving, reporting := e.driver.end(); {
		case driving != nil && !interrupted:
			failure = driving // and with it ended the rounds
		case reporting != nil && !interrupted:
			failure = errors.Join(failure, reporting)
		case driving != nil || reporting != nil:
			e.log.Warn("what happened before the run was stopped could not be reported to the workload", "error", cmp.Or(driving, reporting))
		}
	}
	if interrupted {
		failure = nil
	}
	return interrupted, failure
}

// hold holds the rounds. A component that panics ends the run as one that fails: what was until then is not lost.
func (e *execution) hold(ctx context.Context, p *core.Pipeline, asked core.Backend) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			component, round := p.CurrentComponent()
			e.log.Error("a component panicked", "component", component, "round", round, "cause", cause, "stack", string(debug.Stack()))
			if err = fmt.Errorf("round %d: component %q panicked: %v", round, component, cause); component == "" { // an observer, or the backend
				err = fmt.Errorf("after round %d: a component panicked: %v", round, cause)
			}
		}
	}()
	e.began = true
	return p.Run(ctx, asked)
}
