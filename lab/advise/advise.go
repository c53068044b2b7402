package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/lab/study"
)

// Options say what advice is asked for.
type Options struct {
	Files []string        // configs of the site: cluster, round, backend
	Set   []study.Setting // over them
	Trace study.Item      // sets the workload; empty for that of the config
	Goal  Goal            // metric to lower
	// Limits are to hold in every window.
	Limits []Limit
	// Candidates are compared, simplest first; nil for Grid and the composition of the config.
	Candidates []study.Item
	// Named picks candidates of the default ones by name; nil for all.
	Named []string

	Windows  int    // to choose on, and as many to judge on
	Jobs     int    // of a window
	FirstJob int    // of the first window
	Seed     uint64 // seed of the workload, of estimates and of every run
	// Estimate sets what policies know about the work of a job; nil for what the trace says.
	Estimate any

	Study study.Options // how runs are carried out and stored
	Name  string        // of the study, and of the config
}

// adviser works on one advice.
type adviser struct {
	*Options
	advice *Advice
	study  *study.Study

	site    *configs.Config // with a pipeline that is as good as any
	source  *workload.Workload
	cluster *core.Cluster
	race    *Race
	judged  []int        // candidates run on held-out windows
	cells   map[Cell]int // row of the study; windows of choosing are before held-out ones

	capacity core.Capacity
	unfit    [][]core.JobID // jobs of each window that are too large, in the order of cells
}

// Advise chooses a composition. What was run is kept in the folder of the study, also when the context ends: the same advice goes on.
func Advise(ctx context.Context, o Options) (*Advice, error) {
	a := &adviser{Options: &o, advice: &Advice{
		Goal: o.Goal, NoDifference: []string{}, Limits: []LimitResult{}, Finalists: []Finalist{}, Left: []Left{}, Invalid: []Dropped{}, Notes: []string{},
	}}
	for _, step := range []func(context.Context) error{a.look, a.estimate, a.choices, a.windows} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	result, err := study.Explore(ctx, a.study, o.Study, a.next)
	if err != nil {
		return nil, err
	}
	a.advice.Reused, a.advice.Runs = result.Reused, len(result.Rows)
	return a.advice, a.conclude()
}

// plainPipeline stands for any pipeline while the site is looked at.
var plainPipeline = []study.Setting{
	{Path: "pipeline.admission", Value: []any{settings{"type": "accept_all"}}},
	{Path: "pipeline.allocation", Value: settings{"type": "fifo"}},
	{Path: "pipeline.placement", Value: settings{"type": "consolidated"}},
	{Path: "pipeline.elasticity.job", Value: settings{"type": "fixed"}},
}

// load reads the config of the site with files and settings over it.
func (a *adviser) load(files []string, set []study.Setting) (*configs.Config, error) {
	o := a.Study.Config
	o.Files = slices.Concat(a.Files, a.Trace.Files, files)
	o.Flags = study.Flags(slices.Concat(a.Set, a.Trace.Set, set))
	return configs.Load(a.Study.Catalog, o)
}

// look reads the site and its jobs.
func (a *adviser) look(ctx context.Context) (err error) {
	if a.site, err = a.load(nil, plainPipeline); err != nil {
		return err
	}
	source, err := a.site.Workload.New(a.Seed, nil)
	if err != nil {
		return err
	}
	if a.source, err = source.Load(ctx); err != nil {
		return a.site.Locate(err)
	}
	a.cluster = a.site.BuildCluster()
	a.capacity.Count(a.cluster)
	if a.source.Open || a.source.React != nil {
		return a.problem("workload", "has no jobs of its own: there is nothing to compare compositions on", "give a trace of jobs that the cluster ran, with --trace")
	}
	tooLarge := 0
	for i := range a.source.Jobs {
		job := &a.source.Jobs[i]
		if math.IsInf(job.Model.PhaseEnd(job.Model.Phases()-1), 1) {
			return a.problem("workload", fmt.Sprintf("job %q does not say how long it runs, so that it cannot be simulated", job.Spec.Name), "a trace has durations")
		}
		if a.tooLarge(&job.Spec) {
			tooLarge++
		}
	}
	if tooLarge == len(a.source.Jobs) {
		return a.problem("workload", "every job needs more devices than the cluster has for it", "give the cluster that the trace is of")
	}
	if tooLarge > 0 {
		a.note("%d of %d jobs need more devices than the cluster has: they are rejected under every composition, and no figure covers them", tooLarge, len(a.source.Jobs))
	}
	return nil
}

// tooLarge reports whether a job needs more devices than the cluster has for it, under any composition.
func (a *adviser) tooLarge(job *core.JobSpec) bool {
	most, _ := a.capacity.For(a.cluster, job)
	return job.MinReplicas > most
}

func (a *adviser) problem(path, summary, hint string) error {
	return a.site.Locate(core.Diagnostics{{Path: path, Summary: summary, Hint: hint}})
}

func (a *adviser) note(format string, args ...any) {
	a.advice.Notes = append(a.advice.Notes, fmt.Sprintf(format, args...))
}

// estimate decides what policies are told of the work of a job: what was asked for, or what the config says, or what the trace tells.
// The truth is told only when it is asked for: no site knows how long a job will run.
func (a *adviser) estimate(context.Context) error {
	told := &a.advice.Declared
	switch {
	case a.Estimate != nil:
		a.Set = append(a.Set, study.Setting{Path: "estimate", Value: a.Estimate, At: core.Position{File: "--estimate"}})
		var err error
		if a.site, err = a.load(nil, plainPipeline); err != nil {
			return err
		}
		told.Source, told.Why = a.site.Estimate.Source, "as asked for"
	case a.site.Estimate != workload.DefaultEstimate():
		told.Source, told.Why = a.site.Estimate.Source, "as the config says"
	default:
		told.Source, told.Why = told.of(a.source.Jobs)
		a.Set = append(a.Set, study.Setting{Path: "estimate", Value: settings{"source": told.Source}})
		a.site.Estimate = workload.Estimate{Source: told.Source}
	}
	told.Sigma = a.site.Estimate.Sigma
	_, err := a.site.Estimate.Apply(a.source, a.Seed)
	return a.site.Locate(err)
}

// DeclaredWork says where the declared work of jobs comes from.
type DeclaredWork struct {
	Source string  `json:"source"`          // source of declared work, as in the config's estimate
	Sigma  float64 `json:"sigma,omitempty"` // standard deviation of the logarithm of the error, for source noisy
	Why    string  `json:"why"`             // why this source was taken, as a sentence
}

// of is what a trace tells of its jobs besides the truth.
func (*DeclaredWork) of(jobs []workload.Job) (source, why string) {
	limits, estimates := 0, 0
	for i := range jobs {
		if jobs[i].LimitSeconds > 0 {
			limits++
		}
		if jobs[i].EstimateSeconds > 0 {
			estimates++
		}
	}
	switch {
	case estimates == len(jobs):
		return workload.EstimateColumn, "every job of the trace has an estimate"
	case limits == len(jobs):
		return workload.EstimateLimit, "every job of the trace has a limit"
	case limits+estimates > 0:
		return workload.EstimateNone, fmt.Sprintf("only %d of %d jobs have a limit and %d an estimate", limits, len(jobs), estimates)
	}
	return workload.EstimateNone, "the trace has no limits and no estimates, and no site knows how long a job will run"
}

// choices lists the candidates that can be run.
func (a *adviser) choices(context.Context) error {
	facts := factsOf(a.source, a.cluster, a.site.Estimate.WorkKnown())
	items := a.Candidates
	if items == nil {
		items = append([]study.Item{{Name: Configured, At: core.Position{File: Configured}}}, Grid(facts)...)
		if !facts.Seated {
			a.note("how fast a job of this trace runs does not depend on where its replicas are: placement is not varied")
		}
		if !facts.Elastic && !facts.Adaptive {
			a.note("the jobs of this trace run on the replicas they ask for: elasticity is not varied")
		}
	}
	if a.Named != nil {
		var names []string
		for _, item := range items {
			names = append(names, item.Name)
		}
		var wrong core.Diagnostics
		for _, name := range a.Named {
			if !slices.Contains(names, name) {
				wrong = append(wrong, core.Diagnostic{Position: core.Position{File: "--candidates"}, Summary: fmt.Sprintf("there is no candidate %q for this cluster and trace", name), Hint: core.SuggestHint(name, "candidates", names)})
			}
		}
		if err := wrong.Err(); err != nil {
			return err
		}
		items = slices.DeleteFunc(items, func(item study.Item) bool { return !slices.Contains(a.Named, item.Name) })
	}
	kept, out, first := a.checked(items)
	if a.Candidates == nil { // a config of a site need not have a pipeline
		out = slices.DeleteFunc(out, func(d Dropped) bool { return d.Name == Configured && strings.Contains(d.Reason, "required") })
	}
	a.advice.Invalid = out
	if len(kept) == 0 {
		return first
	}
	a.Candidates = kept
	for _, item := range kept {
		a.advice.Candidates = append(a.advice.Candidates, item.Name)
	}
	return nil
}

// windows divides the trace: windows for choosing and held-out windows take turns.
func (a *adviser) windows(context.Context) error {
	jobs := len(a.source.Jobs) - a.FirstJob
	count, length := a.Windows, a.Jobs
	if jobs < 2 {
		return a.problem("workload", fmt.Sprintf("has %d jobs from job %d on: there is nothing to divide into windows", max(jobs, 0), a.FirstJob), "at least one job to choose on and one to judge on")
	}
	if room := jobs / (2 * length); room < count {
		count, length = shorter(jobs, count, length)
		a.note("the trace has %d jobs from job %d on: %d windows of %d jobs for choosing and as many held out, instead of %d of %d", jobs, a.FirstJob, count, length, a.Windows, a.Jobs)
	}
	stride := jobs / (2 * count)
	a.advice.Windows, a.advice.Jobs = count, length
	windows := func(name string, first int) study.Item {
		return study.Item{Name: name, Windows: &study.Windows{Jobs: length, Count: count, FirstJob: first, Stride: 2 * stride}, At: core.Position{File: "--windows"}}
	}
	a.study = &study.Study{
		Name: a.Name, Base: a.Files, Set: slices.Concat(a.Set, a.Trace.Set),
		Axes: []study.Axis{
			{Name: "scheduler", Items: a.Candidates},
			{Name: "workload", Items: []study.Item{windows(Choosing, a.FirstJob), windows(HeldOut, a.FirstJob+stride)}},
		},
		Seeds: study.Seeds{First: a.Seed, Count: 1}, Baseline: -1, Metrics: a.metrics(),
	}
	rungs := PlanRungs(len(a.Candidates), count, count)
	a.race = NewRace(len(a.Candidates), a.busiest(count, length, stride), rungs, a.Limits)
	a.advice.Grid = len(a.Candidates) * 2 * count
	a.advice.Rungs = rungs
	return nil
}

// shorter is how many windows of how many jobs to take of a trace that is too short for those asked for: fewer and, when those were
// too few for intervals, shorter ones.
func shorter(jobs, count, length int) (int, int) {
	fewest := min(count, stats.MinSample)
	if room := jobs / (2 * length); room >= fewest {
		return room, length
	}
	length = min(length, max(jobs/(2*fewest), shortWindow))
	if room := jobs / (2 * length); room > 0 {
		return room, length
	}
	return 1, jobs / 2
}

// shortWindow is how many jobs a window has at least, when it is made shorter to have more of them.
const shortWindow = 30

// The items of the axis workload of the study.
const (
	Choosing = "choosing"
	HeldOut  = "held-out"
)

// metrics are those of the goal and the limits, and then the usual ones.
func (a *adviser) metrics() []string {
	list := []string{a.Goal.Metric}
	for _, l := range a.Limits {
		list = append(list, l.Metric)
	}
	for _, g := range Goals {
		list = append(list, g.Metric)
	}
	var once []string
	for _, m := range list {
		if !slices.Contains(once, m) {
			once = append(once, m)
		}
	}
	return once
}

// busiest orders the windows of choosing by the load that they offer, and lists the jobs of all windows that are too large.
func (a *adviser) busiest(count, length, stride int) []int {
	loads := make([]float64, count)
	order := make([]int, count)
	a.unfit = make([][]core.JobID, 2*count)
	for k := range a.unfit {
		sample := a.site.Sample
		sample.Window = workload.Window{FirstJob: a.FirstJob + stride*(2*(k%count)+k/count), Jobs: length}
		w, err := sample.Apply(a.source, a.Seed)
		if err != nil {
			continue // the runs tell
		}
		for i := range w.Jobs {
			if a.tooLarge(&w.Jobs[i].Spec) {
				a.unfit[k] = append(a.unfit[k], core.JobID(i))
			}
		}
		if k < count {
			loads[k] = workload.DeviceSeconds(w, a.cluster) / max(span(w), 1)
		}
	}
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(loads[y], loads[x]) })
	return order
}

func span(w *workload.Workload) float64 {
	if len(w.Jobs) == 0 {
		return 0
	}
	return w.Jobs[len(w.Jobs)-1].Spec.SubmitSeconds - w.Jobs[0].Spec.SubmitSeconds
}

// next is the callback of study.Explore.
func (a *adviser) next(rows []study.Row) ([]int, error) {
	if a.cells == nil {
		a.cells = map[Cell]int{}
		for i := range rows {
			r := &rows[i]
			a.cells[Cell{r.Items[0], r.Items[1]*a.advice.Windows + r.Replicate - 1}] = i
		}
	} else if a.judged == nil {
		a.race.Report(func(c Cell) Outcome { return a.outcome(rows, c) })
	}
	if a.judged == nil {
		if cells := a.race.Ask(); len(cells) > 0 {
			return a.rowsOf(cells), nil
		}
		if a.judged = a.race.Ranked(); len(a.judged) == 0 {
			return nil, a.allFailed()
		}
		a.choose()
		var cells []Cell
		for _, c := range a.judged {
			for w := range a.advice.Windows {
				cells = append(cells, Cell{c, a.advice.Windows + w})
			}
		}
		return a.rowsOf(cells), nil
	}
	a.judge(rows)
	a.study.Baseline = a.chosen()
	if len(a.Candidates) == 1 {
		a.study.Baseline = -1
	}
	return nil, nil
}

func (a *adviser) rowsOf(cells []Cell) []int {
	list := make([]int, len(cells))
	for i, c := range cells {
		list[i] = a.cells[c]
	}
	return list
}

// outcome is that of a candidate on a window.
func (a *adviser) outcome(rows []study.Row, c Cell) Outcome {
	row := &rows[a.cells[c]]
	o := Outcome{Value: row.Value(a.Goal.Metric), Second: row.Value(a.Goal.second())}
	for _, l := range a.Limits {
		o.Limits = append(o.Limits, row.Value(l.Metric))
	}
	switch {
	case row.Record == nil:
		o.Failed = "it was not run"
	case row.Summary == nil:
		o.Failed = row.Error
	default:
		n, measured := row.Summary.Jobs, metrics.AllJobs
		if row.Summary.Measured != nil {
			measured = *row.Summary.Measured
		}
		o.Lost = n.Submitted - n.Completed
		for _, id := range a.unfit[c.Window] {
			if measured.Holds(id) && o.Lost > 0 {
				o.Lost--
			}
		}
	}
	return o
}

// allFailed says why no candidate is left.
func (a *adviser) allFailed() error {
	var errs []error
	for _, out := range a.race.Out {
		if out.Failed != "" && len(errs) < 3 {
			errs = append(errs, fmt.Errorf("%s: %s", a.advice.Candidates[out.Candidate], out.Failed))
		}
	}
	return fmt.Errorf("the runs of every candidate failed: %w", errors.Join(errs...))
}
