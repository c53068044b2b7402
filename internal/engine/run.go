package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
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
	Config    *configs.Config          // of the run
	Cluster   *core.Cluster            // as the run begins
	Workload  *workload.Workload       // jobs of the run, as far as they are known
	Backend   core.Backend             // as the pipeline sees it
	World     core.Backend             // as it was opened
	State     string                   // folder that holds the state of a run on real machines
	Collector *metrics.Collector       // measures the run
	Stopwatch func() time.Duration     // time since the run began
	Troubles  func() []metrics.Trouble // lists the plugins that failed so far
	Tuning    func() *metrics.Tuning   // what a search for hyper-parameters has come to; nil where there is none
}

// Attachment is what someone who watches a run or gives it orders puts between the pipeline and what it works with.
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

// open loads the workload, makes the policies, opens the backend, and claims the folder for the files of the run.
func (e *execution) open(ctx context.Context) error {
	for _, n := range e.Notes {
		e.note(n.String())
	}
	if err := e.load(ctx); err != nil {
		return err
	}
	if err := e.checkFits(ctx); err != nil {
		return err
	}
	var err error
	if e.stages, err = BuildStages(e.Config, e.log); err != nil {
		return err
	}
	e.atEnd(func(*Result, error) error { e.release(); return nil })
	e.atEnd(func(*Result, error) error {
		if e.opened {
			return nil // they were closed by what they came to
		}
		return discardStages(&e.stages)
	})
	e.inputs = append(digestsOf(e.jobs.Inputs), filesRead(&e.stages)...)
	if err := e.openBackend(ctx); err != nil {
		return err
	}
	e.notePromises(&e.stages)
	e.notePairs()
	if err := e.openFiles(ctx); err != nil {
		return err
	}
	e.opened = true
	return nil
}

// load loads the workload and finds the jobs that are measured.
func (e *execution) load(ctx context.Context) (err error) {
	if e.jobs = e.Jobs; e.jobs == nil {
		if e.jobs, err = LoadWorkload(ctx, e.Config, e.log); err != nil {
			return err
		}
	}
	e.window, err = measured(e.Config, e.jobs)
	return err
}

// checkFits refuses a workload of which no job fits, and notes what comes of its jobs that nobody may expect.
func (e *execution) checkFits(ctx context.Context) error {
	known := e.jobs.Foreseen()
	if err := e.checkFit(ctx, e.cluster, known); err != nil {
		return err
	}
	if err := e.checkAlternatives(ctx, e.cluster, e); err != nil {
		return err
	}
	e.noteShares(e.cluster, known)
	e.noteTrials(e.jobs)
	return nil
}

// openBackend opens the backend and the reactive workload, and readies the folder of a backend that writes into it.
func (e *execution) openBackend(ctx context.Context) (err error) {
	if e.backend, err = e.callOpener(ctx); err != nil {
		return e.Locate(err)
	}
	e.can = backend.AbilitiesOf(e.backend)
	if e.reactive, err = e.react(ctx); err != nil {
		return errors.Join(err, closeUnused(e.can))
	}
	if e.reactive != nil {
		e.atEnd(func(*Result, error) error { return e.reactive.Close() })
	}
	if e.can.Files != nil {
		e.inputs = append(e.inputs, digestsOfFiles(e.can.Files.FilesRead())...)
	}
	if e.can.Closer == nil {
		return nil
	}
	e.atEnd(e.closeBackend)
	if e.dir != "" {
		if err := removeLeftovers(e.dir); err != nil { // nobody else writes into it
			return err
		}
	}
	return e.setAside()
}

// openFiles claims the folder of the run and begins its files.
func (e *execution) openFiles(ctx context.Context) (err error) {
	if e.live {
		e.noteRounds()
	} else if err := e.claim(ctx); err != nil {
		return err
	}
	if e.files, err = newOutputs(e.dir, e.Keep); err != nil {
		return err
	}
	e.atEnd(func(*Result, error) error { e.files.Close(); return nil })
	return e.newCollector()
}

// longRound is an interval that people wait for.
const longRound = 10 * time.Second

// noteRounds says that rounds are rare, for a job that ends sooner holds its devices until the next.
func (e *execution) noteRounds() {
	if o := e.Round; !o.OnEvents && o.Interval > longRound {
		e.note(fmt.Sprintf("rounds are held every %v only: a job starts, and one that has ended gives its devices up, at the next one; with --set round.on_events=true at once", o.Interval))
	}
}

// notePromises says that promises may break: without an interval plans change between events, and nobody is asked then; and they are of devices, where
// more is counted.
func (e *execution) notePromises(stages *core.Stages) {
	for i := range stages.Admission {
		p, speaks := stages.Admission[i].Policy.(core.Promiser)
		if !speaks || !p.Promises() {
			continue
		}
		who := stages.Admission[i].ID + " promises deadlines, and may break them: "
		if e.Round.Interval == 0 {
			e.note(who + "rounds have no interval, at which plans change; with --set round.interval=60s")
		}
		switch {
		case e.cluster.Sharing != core.Exclusive:
			e.note(who + "it counts whole devices, and the cluster shares them; for the same reason it may decline jobs that would fit beside others")
		case e.cluster.CountsResources:
			e.note(who + "it counts devices, and the cluster CPUs and memory as well; with --set cluster.count_resources=false")
		}
	}
}

// notePairs says that no two of the jobs were measured together, where somebody goes by that.
func (e *execution) notePairs() {
	packs := slices.Contains(e.Allocation.Factory.Needs(e.Allocation.Config), core.CapabilityPairRates)
	if e.can.Pairs == nil || e.cluster.Sharing == core.Exclusive {
		return
	}
	byPairs, known := e.can.Pairs.PairsMeasured()
	if known {
		return
	}
	const give = "give a file of pairs with backend.config.co_location.model: table and co_location.table, or take a workload that brings one"
	if packs {
		e.note(fmt.Sprintf("no two jobs share devices: %q goes by pairs that were measured, and no table knows two of these jobs; %s", e.Allocation.ID, give))
	} else if byPairs {
		e.note("backend.config.co_location.model: table knows no two of these jobs, and co_location.unknown says how fast all are that share devices; " + give)
	}
}

// callOpener opens the backend. Only a live run may have a backend of real machines.
func (e *execution) callOpener(ctx context.Context) (opened core.Backend, err error) {
	opener, err := e.Backend.New(e.Seed, e.log)
	if err != nil {
		return nil, err
	}
	can := backend.OpenerAbilitiesOf(opener)
	if can.Growing != nil {
		e.cluster = &core.Cluster{MayGrow: true}
	}
	switch {
	case can.Durable != nil && !e.live:
		return nil, problem("backend.type", fmt.Sprintf("%q runs real processes", e.Backend.ID), `use "quartet run"`)
	case can.Durable == nil && e.live:
		return nil, problem("backend.type", fmt.Sprintf("%q does not run real processes", e.Backend.ID), `use "quartet simulate"`)
	case e.live:
		if err := e.occupy(ctx); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				e.vacate()
			}
		}()
		if err := settle(can.Durable, e.Config, e.jobs, e.dir, filesOf(&e.stages), e.Fresh); err != nil {
			return nil, err
		}
		e.state = can.Durable.Dir()
	}
	return opener.Open(ctx, e.cluster, e.jobs)
}

// closeBackend closes the backend. When the run ends by an error, that is no fault of the jobs: they run on where they can.
func (e *execution) closeBackend(r *Result, failure error) error {
	if failure == nil || e.can.Leaving == nil || r != nil && r.Interrupted {
		return e.can.Closer.Close()
	}
	running, err := e.can.Leaving.Leave()
	if running > 0 {
		e.note(fmt.Sprintf("%d jobs run on: run it again to go on with them, or with --fresh to stop them", running))
	}
	return err
}

// newCollector measures the run into those files that the config asks for.
func (e *execution) newCollector() error {
	var to metrics.Outputs
	if e.Output.Writes("fairness") {
		to.Alone = workload.NewAlone(e.cluster, e.jobsOf()).Seconds
		if e.can.StartPauses != nil {
			to.StartPause = e.can.StartPauses.StartPause
		}
	}
	if !e.Estimate.True() {
		to.True = e.jobs.True
	}
	for i, slot := range []*io.Writer{&to.Jobs, &to.Rounds, &to.Decisions, &to.Accelerators, &to.Fairness, &to.Tenants} {
		name := repeatableFiles[i]
		if !e.Output.Writes(strings.TrimSuffix(name, filepath.Ext(name))) {
			continue
		}
		w, err := e.files.create(name)
		if err != nil {
			return err
		}
		*slot = w
	}
	e.collector = metrics.NewCollector(componentsOf(e.Config), to)
	e.collector.Measure(e.window)
	e.collector.Expect(len(e.jobs.Jobs))
	e.collector.Bill(e.cluster)
	return e.newRecorder()
}

// newRecorder records the timeline of the run into those files that the config asks for.
func (e *execution) newRecorder() error {
	to := timeline.Outputs{Truth: workload.NewTrainings(e.cluster, e.jobsOf()).At}
	wanted := false
	for _, slot := range [...]struct {
		file, output string
		to           *io.Writer
	}{
		{"timeline.csv", "timeline", &to.Timeline},
		{"nodes.csv", "timeline", &to.Nodes},
		{"usage.csv", "usage", &to.Usage},
		{"training.csv", "training", &to.Training},
		{"efficiency.csv", "efficiency", &to.Efficiency},
		{"reports.csv", "reports", &to.Reports},
	} {
		if !e.Output.Writes(slot.output) {
			continue
		}
		w, err := e.files.create(slot.file)
		if err != nil {
			return err
		}
		*slot.to, wanted = w, true
	}
	if wanted {
		e.recorder = timeline.NewRecorder(e.cluster, to)
		e.recorder.Expect(len(e.jobs.Jobs))
	}
	return nil
}

// assemble puts together what holds the rounds: who watches them, the workload that reacts to them, and the pipeline.
func (e *execution) assemble(ctx context.Context) error {
	if err := e.attach(); err != nil {
		return errors.Join(err, CloseStages(&e.stages))
	}
	e.atEnd(func(*Result, error) error { e.attached.Stop(); return nil })
	e.policies = &policies{config: e.Config, deciding: e.Config, stages: e.stages, log: e.log}
	if err := e.beginManifest(); err != nil {
		return errors.Join(err, e.policies.close(true))
	}
	e.driveWorkload(ctx)
	observers := e.observers()
	o := core.PipelineOptions{
		Rounds: e.Round.Options(), Stopwatch: e.stopwatch, Observers: observers, Watchers: e.watchers(ctx), Scaling: e.can.Scaling,
		KeepDevices: e.can.KeepsDevices, WakeOnReports: e.driver != nil /* a search may stop a trial by them */, RetryBackend: e.retryBackend(pause),
	}
	if e.chooser != nil {
		o.Chooser = e.chooser
	}
	if e.can.Memory != nil {
		o.Memory, o.NewStages = e.can.Memory, e.policies.again
	}
	e.pipeline = core.NewPipeline(e.cluster, e.stages, o)
	if e.can.Memory != nil && e.Follow != nil {
		stop := e.Follow(ctx, e.takeover(e.policies, e.pipeline))
		e.atEnd(func(*Result, error) error { stop(); return nil })
	}
	return nil
}

// driveWorkload begins to drive a live run by its reactive workload, if it has one.
func (e *execution) driveWorkload(ctx context.Context) {
	e.holding = ctx
	if e.can.Driven == nil || e.reactive == nil {
		return
	}
	within, fail := context.WithCancelCause(ctx)
	e.atEnd(func(*Result, error) error { fail(nil); return nil })
	e.holding, e.driver = within, newWorkloadDriver(within, e.reactive, e.can.Driven, fail)
}

// observers are those of the rounds, in the order in which they see them. They end with those that go by what others wrote.
func (e *execution) observers() []core.Observer {
	list := append(append(e.attached.Observers, e.Observers...), e.counted, &scalingLimits{e.note, map[[2]string]bool{}})
	if e.recorder != nil {
		list = append(list, e.recorder)
	}
	if e.can.Observer != nil {
		list = append(list, e.can.Observer)
	}
	if o, observes := e.reactive.(core.Observer); observes {
		list = append(list, o)
	}
	if e.driver != nil {
		list = append(list, e.driver)
	}
	chooser, choosing := e.newSynthesizer(e.policies, e.can.Memory != nil)
	if e.chooser = chooser; chooser != nil {
		e.atEnd(func(*Result, error) error { chooser.Close(); return nil })
	}
	list = append(list, choosing...)
	if e.can.Memory != nil {
		list = append(list, journal.Announce(e.log, e.cluster), &liveFiles{execution: e})
	}
	return list
}

// watchers make the observers that also look at the pipeline.
func (e *execution) watchers(ctx context.Context) (list []func(*core.Pipeline) core.Observer) {
	if e.Watch != nil {
		list = append(list, func(p *core.Pipeline) core.Observer { return e.Watch(p, e.backend) })
	}
	e.asked = e.attached.Backend
	if e.can.Clock != nil && e.OnForecast != nil && e.Stopwatch != nil {
		list = append(list, func(p *core.Pipeline) core.Observer {
			f := e.forecastLive(ctx, p)
			e.atEnd(func(*Result, error) error { f.end(); return nil })
			e.asked = between{e.asked, &f.idle}
			return f
		})
	}
	return list
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

// conclude ends the policies and writes what the rounds came to, however they ended.
func (e *execution) conclude(ctx context.Context, interrupted bool, failure error) (*Result, error) {
	if interrupted && e.can.Memory != nil && e.can.Memory.Replaying() {
		return nil, errors.Join(e.policies.close(true), errors.New("stopped while the rounds of an earlier scheduler were repeated: nothing was decided and no results are written; run it again to go on"))
	}
	if e.can.GivesUp != nil && e.can.GivesUp.GaveUpReason() != "" {
		e.note(e.can.GivesUp.GaveUpReason())
	}
	unfinished, ended := e.pipeline.Unfinished(), []*core.Job(nil)
	if interrupted {
		unfinished, ended = e.unreported(unfinished)
	}
	stopped := interrupted
	if e.jobs.Open && len(unfinished) == 0 {
		interrupted = false // it was to go on until then
	}
	failure = errors.Join(failure, e.policies.close(e.can.Memory != nil && (interrupted || failure != nil)))
	r := &Result{
		Interrupted: interrupted, EndSeconds: e.endSeconds(interrupted, stopped), Inputs: append(e.inputs, e.policies.inputs...), Dir: e.dir, ReplacedRun: e.replaced,
		Unfinished: e.window.Among(unfinished), Plugins: e.pluginsUsed(), failure: failure,
	}
	if err := e.summarize(r, append(unfinished, ended...)); err != nil {
		return nil, errors.Join(failure, err)
	}
	if err := r.write(e.policies, e.files); err != nil {
		return nil, errors.Join(failure, err)
	}
	if interrupted {
		r.failure = ctx.Err()
	}
	return r, r.failure
}

// endSeconds is when the run ended. A live one that was interrupted goes on until now, and so does what pools cost.
func (e *execution) endSeconds(interrupted, stopped bool) float64 {
	end := e.pipeline.NowSeconds()
	if e.can.Clock != nil && (interrupted || stopped && len(e.cluster.Pools) > 0) {
		end = max(end, e.can.Clock.Present())
	}
	return end
}

// summarize completes the result, and the files that list what came of jobs, with those that have not ended or whose end the pipeline does
// not know.
func (e *execution) summarize(r *Result, left []*core.Job) (err error) {
	if r.Summary, err = e.attached.Finish(left, r.EndSeconds); err != nil {
		return err
	}
	if e.recorder != nil {
		if err := e.recorder.Finish(left, r.EndSeconds); err != nil {
			return err
		}
	}
	if err := e.summarizeReactive(r.Summary, left, r.EndSeconds); err != nil {
		return err
	}
	r.Summary.Name, r.Summary.Seed = e.Name, e.Seed
	r.Summary.Plugins = e.troubles()
	if e.chooser != nil {
		r.Summary.Synthesizer = e.chooser.Summary(r.EndSeconds)
	}
	r.Summary.WallSeconds = metrics.Number(e.stopwatch().Seconds())
	if !e.Brief {
		r.Jobs = e.collector.Jobs()
	}
	return nil
}

// unreported sorts what an interrupted run leaves, which its backend may know more of than the pipeline: jobs that were submitted since
// the last round, and those that ended since, each as of its moment.
func (e *execution) unreported(unsettled []*core.Job) (unfinished, ended []*core.Job) {
	if e.can.Pending != nil {
		unsettled = append(unsettled, e.can.Pending.PendingSubmissions()...)
	}
	if e.can.Ends == nil {
		return unsettled, nil
	}
	for _, j := range unsettled {
		if state, at, is := e.can.Ends.Ended(j.ID); is {
			ended = append(ended, j.EndedAt(state, at))
		} else {
			unfinished = append(unfinished, j)
		}
	}
	return unfinished, ended
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

// attach asks who watches the run, and fills in what they leave to the run.
func (e *execution) attach() (err error) {
	e.counted = &measuredJobs{Backend: e.backend, window: e.window, left: e.window.Of(len(e.jobs.Jobs))}
	a := &e.attached
	if e.Attach != nil {
		*a, err = e.Attach(Session{
			Config: e.Config, Cluster: e.cluster, Workload: e.jobs, Backend: e.counted, World: e.backend, State: e.state, Collector: e.collector,
			Stopwatch: e.stopwatch, Troubles: e.troubles, Tuning: tuningOf(e.reactive),
		})
		if err != nil {
			return err
		}
	}
	if a.Backend == nil {
		a.Backend = e.counted
	}
	if a.Finish == nil {
		a.Finish = e.collector.Finish
		a.Observers = append([]core.Observer{e.collector}, a.Observers...)
	}
	if a.Stop == nil {
		a.Stop = func() {}
	}
	return nil
}

// write completes the files of the run.
func (r *Result) write(decided *policies, files *outputs) (err error) {
	c := decided.config
	if r.Text, err = document(r.Summary); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	r.Outputs, r.Files = files.digests(), files.contents()
	resolved, err := placeless(c).Resolved()
	if err != nil {
		return err
	}
	m := manifestOf(c, resolved)
	m.Interrupted, m.Earlier, m.Plugins, m.Inputs, m.Outputs = r.Interrupted, decided.earlier, r.Plugins, r.Inputs, r.Outputs
	if r.failure != nil {
		m.Failed = r.failure.Error()
	}
	record, err := document(m)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := files.write(SummaryFile, r.Text); err != nil {
		return err
	}
	if err := files.write(ManifestFile, record); err != nil {
		return err
	}
	return files.commit()
}

// document is a value as JSON for files.
func document(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	return b.Bytes(), err
}

// placeless is the config with the default output folder: where results go is no part of the run.
func placeless(c *configs.Config) *configs.Config {
	copied := *c
	copied.Output.Dir = "runs"
	return &copied
}
