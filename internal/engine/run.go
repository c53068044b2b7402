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
	"github.com/quartet-sched/quartet/core/timeline"
	"github.com/quartet-sched/quartet/core/workload"
)

// Result is what a run came to.
type Result struct {
	Summary     *metrics.Summary
	Text        []byte        // Summary as in summary.json
	Jobs        []metrics.Job // every submitted job, in order of submission; nil with Composition.Brief
	Unfinished  []*core.Job   // those of the measured jobs that have not ended
	Interrupted bool          // the context ended before the run did
	EndSeconds  float64       // of the run
	Dir         string        // that holds the files; empty when none were written
	Repeats     bool          // Dir held the same run before, whose files these replace
	Files       []File        // all but summary.json and manifest.json, which depend on how long the run took or on these
	Inputs      []Digest
	Outputs     []Digest
	Plugins     []Plugin // that took part

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
	Config    *configs.Config
	Cluster   *core.Cluster
	Workload  *workload.Workload
	Backend   core.Backend // as the pipeline sees it
	World     core.Backend // as it was opened
	State     string       // folder that holds the state of a run on real machines
	Collector *metrics.Collector
	Stopwatch func() time.Duration // time since the run began
	Troubles  func() []metrics.Trouble
	Tuning    func() *metrics.Tuning // what a search for hyper-parameters has come to; nil where there is none
}

// Attachment is what someone who watches a run or gives it orders puts between the pipeline and what it works with.
type Attachment struct {
	Backend   core.Backend    // instead of that of the session; nil to keep it
	Observers []core.Observer // told of every round before others are
	// Finish is called instead of Session.Collector.Finish, and Observers see rounds instead of that collector; nil for neither.
	Finish func(unfinished []*core.Job, endSeconds float64) (*metrics.Summary, error)
	Stop   func() // called when the run has ended; nil for nothing to do
}

// execution is one run from its beginning to its end.
type execution struct {
	*Composition
	dir       string   // that holds the files
	lock      *os.File // of that folder; nil where there is none
	repeats   bool     // what is recorded there
	log       *slog.Logger
	stopwatch func() time.Duration
	jobs      *workload.Workload
	reacting  workload.Reacting // nil for a list of jobs
	driver    *driver           // of those jobs on real machines; nil on a simulator
	window    metrics.Window
	inputs    []Digest // files that the run rests on
	cluster   *core.Cluster
	files     *outputs
	collector *metrics.Collector
	recorder  *timeline.Recorder // nil when its files are not wanted
	began     bool               // rounds are held
}

// execute runs a composition to its end, or until the context ends.
func (c *Composition) execute(ctx context.Context, real bool) (r *Result, err error) {
	for _, n := range c.Notes {
		c.note(n.String())
	}
	held := false // rounds were held: nobody knows what was written
	defer func() {
		if r == nil && err != nil && !held {
			c.noteEarlier()
		}
	}()
	e := &execution{Composition: c, dir: c.Dir, log: c.logger(), stopwatch: c.stopwatch(), cluster: c.BuildCluster()}
	if e.jobs = c.Jobs; e.jobs == nil {
		if e.jobs, err = LoadWorkload(ctx, c.Config, e.log); err != nil {
			return nil, err
		}
	}
	if e.window, err = measured(c.Config, e.jobs); err != nil {
		return nil, err
	}
	if err := c.checkFit(ctx, e.cluster, e.jobs.Foreseen()); err != nil {
		return nil, err
	}
	if err := c.checkAlternatives(ctx, e.cluster, e); err != nil {
		return nil, err
	}
	c.noteShares(e.cluster, e.jobs.Foreseen())
	c.noteTrials(e.jobs)
	stages, err := BuildStages(c.Config, e.log)
	if err != nil {
		return nil, err
	}
	begun := false
	defer e.release()
	defer func() {
		if !begun {
			err = errors.Join(err, discardStages(&stages))
		}
	}()
	e.inputs = append(digestsOf(e.jobs.Inputs), filesRead(&stages)...)
	world, state, err := e.open(ctx, real, &stages)
	if err != nil {
		return nil, c.Locate(err)
	}
	if e.reacting, err = e.react(ctx, world, state); err != nil {
		return nil, errors.Join(err, closeWorld(world))
	}
	if e.reacting != nil {
		defer func() { err = errors.Join(err, e.reacting.Close()) }()
	}
	if reader, reads := world.(core.FileReader); reads {
		e.inputs = append(e.inputs, digestsOfFiles(reader.FilesRead())...)
	}
	if closer, ok := world.(io.Closer); ok {
		defer func() { err = errors.Join(err, e.endWorld(closer, r, err)) }()
		if e.dir != "" {
			if err := removeLeftovers(e.dir); err != nil { // nobody else writes into it
				return nil, err
			}
		}
		if err := e.setAside(); err != nil {
			return nil, err
		}
	}
	e.notePromises(&stages)
	e.notePairs(world)
	if real {
		e.noteRounds()
	} else if err := e.claim(ctx); err != nil {
		return nil, err
	}
	if e.files, err = newOutputs(e.dir, c.Keep); err != nil {
		return nil, err
	}
	defer e.files.Close()
	if err := e.newCollector(world); err != nil {
		return nil, err
	}
	begun = true
	r, err = e.run(ctx, world, state, &stages)
	held = e.began
	if err != nil {
		return nil, err
	}
	return r, r.failure
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
func (e *execution) notePairs(world core.Backend) {
	measured, is := world.(interface{ PairsMeasured() (byPairs, known bool) })
	packs := slices.Contains(e.Allocation.Factory.Needs(e.Allocation.Config), core.CapabilityPairRates)
	if !is || e.cluster.Sharing == core.Exclusive {
		return
	}
	byPairs, known := measured.PairsMeasured()
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

// open opens the backend. Only a run on real machines may have a backend of real machines.
func (e *execution) open(ctx context.Context, real bool, stages *core.Stages) (world core.Backend, state string, err error) {
	opener, err := e.Backend.New(e.Seed, e.log)
	if err != nil {
		return nil, "", err
	}
	if _, grows := opener.(backend.Growing); grows {
		e.cluster = &core.Cluster{MayGrow: true}
	}
	durable, ok := opener.(backend.Durable)
	switch {
	case ok && !real:
		return nil, "", problem("backend.type", fmt.Sprintf("%q runs real processes", e.Backend.ID), `use "quartet run"`)
	case !ok && real:
		return nil, "", problem("backend.type", fmt.Sprintf("%q does not run real processes", e.Backend.ID), `use "quartet simulate"`)
	case ok:
		if err := e.occupy(ctx); err != nil {
			return nil, "", err
		}
		defer func() {
			if err != nil {
				e.vacate()
			}
		}()
		if err := settle(durable, e.Config, e.jobs, e.dir, filesOf(stages), e.Fresh); err != nil {
			return nil, "", err
		}
		state = durable.Dir()
	}
	world, err = opener.Open(ctx, e.cluster, e.jobs)
	return world, state, err
}

// leaving is a backend whose jobs can outlive the scheduler.
type leaving interface {
	Leave() (running int, err error)
}

// endWorld closes a backend. When the run ends by an error, that is no fault of the jobs: they run on where they can.
func (e *execution) endWorld(world io.Closer, r *Result, failure error) error {
	left, can := world.(leaving)
	if failure == nil || !can || r != nil && r.Interrupted {
		return world.Close()
	}
	running, err := left.Leave()
	if running > 0 {
		e.note(fmt.Sprintf("%d jobs run on: run it again to go on with them, or with --fresh to stop them", running))
	}
	return err
}

// pausing is a backend that knows for how many seconds a job pauses when it first starts.
type pausing interface {
	StartPause(id core.JobID) float64
}

// newCollector measures the run into those files that the config asks for.
func (e *execution) newCollector(world core.Backend) error {
	var to metrics.Outputs
	if e.Output.Writes("fairness") {
		to.Alone = workload.NewAlone(e.cluster, e.jobsOf(world)).Seconds
		if p, ok := world.(pausing); ok {
			to.StartPause = p.StartPause
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
	return e.newRecorder(world)
}

// newRecorder records the timeline of the run into those files that the config asks for.
func (e *execution) newRecorder(world core.Backend) error {
	to := timeline.Outputs{Truth: workload.NewTrainings(e.cluster, e.jobsOf(world)).At}
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

// run holds the rounds and writes what they came to, however they end.
func (e *execution) run(ctx context.Context, world core.Backend, state string, stages *core.Stages) (*Result, error) {
	ending := &ending{Backend: world, window: e.window, left: e.window.Of(len(e.jobs.Jobs))}
	attached, err := e.attach(ending, state)
	if err != nil {
		return nil, errors.Join(err, CloseStages(stages))
	}
	defer attached.Stop()
	parts := &policies{config: e.Config, deciding: e.Config, stages: *stages, log: e.log}
	if err := e.tellBegun(parts); err != nil {
		return nil, errors.Join(err, parts.close(true))
	}
	observers := append(append(attached.Observers, e.Observers...), ending, &cuts{e.note, map[[2]string]bool{}})
	if e.recorder != nil {
		observers = append(observers, e.recorder)
	}
	if o, observes := world.(core.Observer); observes {
		observers = append(observers, o)
	}
	if o, observes := e.reacting.(core.Observer); observes {
		observers = append(observers, o)
	}
	holding := ctx
	if driven, is := world.(backend.Driven); is && e.reacting != nil {
		within, fail := context.WithCancelCause(ctx)
		defer fail(nil)
		holding, e.driver = within, newDriver(within, e.reacting, driven, fail)
		observers = append(observers, e.driver)
	}
	memory, remembers := world.(core.Memory)
	chooser, choosing := e.newSynthesizer(parts, remembers)
	if chooser != nil {
		defer chooser.Close()
	}
	observers = append(observers, choosing...)
	if remembers {
		observers = append(observers, journal.Announce(e.log, e.cluster), &telling{execution: e, memory: memory, decided: parts})
	}
	pipeline := core.NewPipeline(e.cluster, *stages, e.Round.Options(), e.stopwatch, observers...)
	pipeline.Outlast(e.outlast(world, pause))
	if chooser != nil {
		pipeline.ChooseBy(chooser)
	}
	if e.driver != nil {
		pipeline.HearReports() // a search may stop a trial by them
	}
	if scaling, may := world.(core.Scaling); may {
		pipeline.ScaleBy(scaling)
	}
	if keeping, may := world.(core.Keeping); may && keeping.KeepsDevices() {
		pipeline.KeepDevices()
	}
	if e.Watch != nil {
		pipeline.Tell(e.Watch(pipeline, world))
	}
	backed := attached.Backend
	if real, is := world.(backend.Ticking); is && real != nil {
		if f := e.foretell(ctx, pipeline, parts, e.keep(world, state)); f != nil {
			defer f.end()
			pipeline.Tell(f)
			backed = between{backed, &f.idle}
		}
	}
	if remembers {
		pipeline.Remember(memory, parts.again)
		if e.Follow != nil {
			defer e.Follow(ctx, e.takeover(parts, pipeline))()
		}
	}
	failure := e.hold(holding, pipeline, backed)
	interrupted := ctx.Err() != nil && errors.Is(failure, ctx.Err())
	if e.driver != nil {
		switch driving, telling := e.driver.end(); {
		case driving != nil && !interrupted:
			failure = driving // and with it ended the rounds
		case telling != nil && !interrupted:
			failure = errors.Join(failure, telling)
		case driving != nil || telling != nil:
			e.log.Warn("what happened before the run was stopped could not be told", "error", cmp.Or(driving, telling))
		}
	}
	if interrupted {
		failure = nil
	}
	if interrupted && remembers && memory.Replaying() {
		return nil, errors.Join(parts.close(true), errors.New("stopped while the rounds of an earlier scheduler were repeated: nothing was decided and no results are written; run it again to go on"))
	}
	unfinished := pipeline.Unfinished()
	if gaveUp, may := world.(interface{ InVain() string }); may && gaveUp.InVain() != "" {
		e.note(gaveUp.InVain())
	}
	var ended []*core.Job
	if interrupted {
		unfinished, ended = left(world, unfinished)
	}
	stopped := interrupted
	if e.jobs.Open && len(unfinished) == 0 {
		interrupted = false // it was to go on until then
	}
	failure = errors.Join(failure, parts.close(remembers && (interrupted || failure != nil)))

	end := pipeline.NowSeconds()
	if real, ok := world.(backend.Ticking); ok && (interrupted || stopped && len(e.cluster.Pools) > 0) { // pools cost until then
		end = max(end, real.Present())
	}
	r := &Result{
		Interrupted: interrupted, EndSeconds: end, Inputs: append(e.inputs, parts.inputs...), Dir: e.dir, Repeats: e.repeats,
		Unfinished: e.window.Among(unfinished), Plugins: e.pluginsUsed(), failure: failure,
	}
	if r.Summary, err = attached.Finish(append(unfinished, ended...), r.EndSeconds); err != nil {
		return nil, errors.Join(failure, err)
	}
	if e.recorder != nil {
		if err := e.recorder.Finish(append(unfinished, ended...), r.EndSeconds); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
	if err := e.tellReacting(r.Summary, append(unfinished, ended...), r.EndSeconds); err != nil {
		return nil, errors.Join(failure, err)
	}
	r.Summary.Name, r.Summary.Seed = e.Name, e.Seed
	r.Summary.Plugins = e.troubles()
	if chooser != nil {
		r.Summary.Synthesizer = chooser.Summary(r.EndSeconds)
	}
	r.Summary.WallSeconds = metrics.Number(e.stopwatch().Seconds())
	if !e.Brief {
		r.Jobs = e.collector.Jobs()
	}
	if err := r.write(parts, e.files); err != nil {
		return nil, errors.Join(failure, err)
	}
	if interrupted {
		r.failure = ctx.Err()
	}
	return r, nil
}

// left sorts what an interrupted run leaves, which its backend may know more of than the pipeline: jobs that were submitted since
// the last round, and those that ended since, each as of its moment.
func left(world core.Backend, unsettled []*core.Job) (unfinished, ended []*core.Job) {
	if waiting, ok := world.(interface{ Awaited() []*core.Job }); ok {
		unsettled = append(unsettled, waiting.Awaited()...)
	}
	ending, ok := world.(interface {
		Ended(id core.JobID) (state core.JobState, atSeconds float64, is bool)
	})
	if !ok {
		return unsettled, nil
	}
	for _, j := range unsettled {
		if state, at, is := ending.Ended(j.ID); is {
			ended = append(ended, j.EndedAt(state, at))
		} else {
			unfinished = append(unfinished, j)
		}
	}
	return unfinished, ended
}

// hold holds the rounds. A component that panics ends the run as one that fails: what was until then is not lost.
func (e *execution) hold(ctx context.Context, p *core.Pipeline, world core.Backend) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			component, round := p.Asking()
			e.log.Error("a component panicked", "component", component, "round", round, "cause", cause, "stack", string(debug.Stack()))
			if err = fmt.Errorf("round %d: component %q panicked: %v", round, component, cause); component == "" { // an observer, or the backend
				err = fmt.Errorf("after round %d: a component panicked: %v", round, cause)
			}
		}
	}()
	e.began = true
	return p.Run(ctx, world)
}

// attach asks who watches the run, and fills in what they leave to the run.
func (e *execution) attach(world *ending, state string) (a Attachment, err error) {
	if e.Attach != nil {
		a, err = e.Attach(Session{
			Config: e.Config, Cluster: e.cluster, Workload: e.jobs, Backend: world, World: world.Backend, State: state, Collector: e.collector,
			Stopwatch: e.stopwatch, Troubles: e.troubles, Tuning: tuningOf(e.reacting),
		})
		if err != nil {
			return a, err
		}
	}
	if a.Backend == nil {
		a.Backend = world
	}
	if a.Finish == nil {
		a.Finish = e.collector.Finish
		a.Observers = append([]core.Observer{e.collector}, a.Observers...)
	}
	if a.Stop == nil {
		a.Stop = func() {}
	}
	return a, nil
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
