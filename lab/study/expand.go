package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

var nan = math.NaN()

// Run is one run of a study: a cell and a replicate.
type Run struct {
	Items     []int  // of each axis
	Replicate int    // number of the replicate, from 1
	Seed      uint64 // seed of the simulation
	Hash      string // of everything that the run depends on but for its input files

	files   []string
	flags   []configs.Flag
	jobs    string // what decides which jobs there are: runs that share it share a workload
	source  string // what decides which jobs there are to choose from
	outside bool   // some policy is in a process of its own
	given   given
}

// ID names the run in the tables.
func (r *Run) ID() string { return r.Hash[:12] }

// recordSchema names the form of what is kept of a run. It takes part in the hash.
const recordSchema = "quartet.study.run/v1"

// expansion makes runs of a study.
type expansion struct {
	*Study
	options *Options
	found   core.Diagnostics
	told    map[string]bool
	sources map[string]*sourceFacts
}

// sourceFacts are what is known of where jobs come from.
type sourceFacts struct {
	jobs        int
	lastSeconds float64 // submission of the last
	random      bool    // by the seed
}

// expand lists the runs of every cell with up to so many seeds, in the order of the tables. An error is a core.Diagnostics with
// every problem of every cell.
func (e *expansion) expand(ctx context.Context, seeds int) ([]*Run, error) {
	var runs []*Run
	err := e.cells(func(items []int) error {
		list, err := e.cell(ctx, items, seeds)
		runs = append(runs, list...)
		return err
	})
	if err == nil {
		e.refuseOtherJobs(ctx, runs)
		if err = ctx.Err(); err == nil {
			err = e.found.Err()
		}
	}
	return runs, err
}

// cells visits every combination of items that goes together, that of the last axis changing first.
func (s *Study) cells(visit func(items []int) error) error {
	items := make([]int, len(s.Axes))
	for {
		if s.together(items) {
			if err := visit(slices.Clone(items)); err != nil {
				return err
			}
		}
		k := len(items) - 1
		for ; k >= 0; k-- {
			if items[k]++; items[k] < len(s.Axes[k].Items) {
				break
			}
			items[k] = 0
		}
		if k < 0 {
			return nil
		}
	}
}

// cell lists the replicates of one cell. What is wrong with it is noted.
func (e *expansion) cell(ctx context.Context, items []int, seeds int) ([]*Run, error) {
	files, settings := slices.Clone(e.Base), slices.Clone(e.Set)
	var windows *Windows
	var windowsAt core.Position
	for a, k := range items {
		item := &e.Axes[a].Items[k]
		files = append(files, item.Files...)
		settings = append(settings, item.Set...)
		if item.Windows != nil {
			windows, windowsAt = item.Windows, item.At
		}
	}
	if len(files) == 0 {
		files = []string{"default.yaml"}
	}
	flags := Flags(settings)
	count := seeds
	if windows != nil {
		count = windows.Count
	}
	var runs []*Run
	var facts *sourceFacts // those of its replicates are the same
	for replicate := 1; replicate <= count; replicate++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := &Run{Items: items, Replicate: replicate, Seed: e.Seeds.First, files: files}
		if windows == nil {
			r.Seed += uint64(replicate - 1)
		}
		r.flags = append(slices.Clone(flags), configs.Flag{Name: "study", Set: "name=" + e.Name})
		if !e.Seeds.Config {
			r.flags = append(r.flags, configs.Flag{Name: "study", Set: "seed=" + strconv.FormatUint(r.Seed, 10)})
		}
		if replicate == 1 && windows != nil {
			c, ok := e.check(ctx, r)
			if ok {
				facts, ok = e.facts(ctx, c)
			}
			if !ok {
				return nil, ctx.Err()
			}
		}
		if windows != nil {
			window, problem := windows.at(replicate-1, facts)
			if problem != nil {
				problem.Position = windowsAt
				e.note(core.Diagnostics{*problem}, windowsAt)
				return nil, nil
			}
			r.flags = append(r.flags, window)
		}
		c, ok := e.check(ctx, r)
		if !ok {
			return nil, nil
		}
		if replicate == 1 && windows == nil && (count > 1 || e.options.runs) {
			if facts, ok = e.facts(ctx, c); !ok {
				return nil, ctx.Err()
			}
		}
		if replicate == 1 && count > 1 && windows == nil && !facts.random && !sampleDraws(c) {
			e.note(core.Diagnostics{{
				Position: c.Workload.At,
				Summary:  fmt.Sprintf("%d seeds: the workload %q is the same for every seed, so that its runs would be no replicates", count, c.Workload.Factory.Type),
				Hint:     "give the item windows: {jobs: 300, count: 10}, or resample it with " + blocksHint(c, facts),
			}}, core.Position{})
			return nil, nil
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// blocksHint is the setting that resamples a workload, with a length to begin with where one is known.
func blocksHint(c *configs.Config, facts *sourceFacts) string {
	const path = "sample.blocks.length"
	window := c.Sample.Window
	span := facts.lastSeconds - window.From.Seconds()
	if window.Span > 0 {
		span = min(span, window.Span.Seconds())
	}
	length := workload.BlockLength(max(span, 0))
	if length == 0 || window.Jobs > 0 || window.FirstJob > 0 {
		return path
	}
	switch {
	case length%time.Hour == 0:
		return fmt.Sprintf("%s: %dh", path, length/time.Hour)
	case length%time.Minute == 0:
		return fmt.Sprintf("%s: %dm", path, length/time.Minute)
	}
	return fmt.Sprintf("%s: %ds", path, length/time.Second)
}

// check loads the config of a run and completes what is known of the run by it.
func (e *expansion) check(ctx context.Context, r *Run) (*configs.Config, bool) {
	env := e.options.environment(ctx)
	c, err := e.options.load(r, env)
	err = errors.Join(err, env.close())
	if err == nil {
		r.Seed = c.Seed
		err = r.identify(c, e.options.Build)
	}
	if err != nil {
		e.note(err, core.Position{})
		return nil, false
	}
	return c, true
}

// note keeps a problem, once.
func (e *expansion) note(err error, at core.Position) {
	ds, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		ds = core.Diagnostics{{Position: at, Summary: err.Error()}}
	}
	for _, d := range ds {
		if d.Position == (core.Position{}) {
			d.Position = e.at
		}
		if text := d.String(); !e.told[text] {
			e.told[text] = true
			e.found = append(e.found, d)
		}
	}
}

// facts looks at the jobs that a config chooses from. What is wrong with them is noted.
func (e *expansion) facts(ctx context.Context, c *configs.Config) (facts *sourceFacts, ok bool) {
	key, err := sourceKey(c, false)
	if err == nil {
		if known := e.sources[key]; known != nil {
			return known, known != unreadable
		}
	}
	var w *workload.Workload
	if err == nil {
		w, err = loadSource(ctx, c)
	}
	if ctx.Err() != nil {
		return nil, false
	}
	if err != nil {
		e.sources[key] = unreadable // nor is it read for other cells
		e.note(err, core.Position{})
		return nil, false
	}
	facts = &sourceFacts{jobs: len(w.Jobs), random: slices.Contains(c.SeedUsers(), c.Workload.ID)}
	if len(w.Jobs) > 0 {
		facts.lastSeconds = w.Jobs[len(w.Jobs)-1].Spec.SubmitSeconds
	}
	e.sources[key] = facts
	return facts, true
}

// unreadable stands for the facts of a source that cannot be read.
var unreadable = &sourceFacts{}

// at is the i-th window of a trace as a setting.
func (w *Windows) at(i int, trace *sourceFacts) (configs.Flag, *core.Diagnostic) {
	if w.Span > 0 {
		whole := int(trace.lastSeconds / w.Span.Seconds())
		if w.Count > max(whole, 1) {
			return configs.Flag{}, &core.Diagnostic{
				Summary: fmt.Sprintf("%d windows of %v overlap: the trace has room for %d", w.Count, w.Span, whole), Hint: "take fewer or shorter ones",
			}
		}
		from := time.Duration(trace.lastSeconds / float64(w.Count) * float64(i) * float64(time.Second)).Truncate(time.Second)
		return configs.Flag{Name: "study", Set: fmt.Sprintf("sample.window={from: %s, span: %s}", core.FormatDuration(from), core.FormatDuration(w.Span))}, nil
	}
	room := (trace.jobs - w.FirstJob) / w.Jobs
	if w.Count > room {
		return configs.Flag{}, &core.Diagnostic{
			Summary: fmt.Sprintf("%d windows of %d jobs overlap: the trace has room for %d", w.Count, w.Jobs, max(room, 0)), Hint: "take fewer or shorter ones",
		}
	}
	stride := w.Stride
	if stride == 0 {
		stride = (trace.jobs - w.FirstJob) / w.Count
	}
	first := w.FirstJob + stride*i
	if first+w.Jobs > trace.jobs {
		return configs.Flag{}, &core.Diagnostic{
			Summary: fmt.Sprintf("window %d ends with job %d, and the trace with job %d", i+1, first+w.Jobs-1, trace.jobs-1), Hint: "take fewer windows, or a smaller stride",
		}
	}
	return configs.Flag{Name: "study", Set: fmt.Sprintf("sample.window={first_job: %d, jobs: %d}", first, w.Jobs)}, nil
}

// load loads the config of a run. Of the files only those are written that a study keeps or that the summary needs.
func (o *Options) load(r *Run, env Environment) (*configs.Config, error) {
	options := o.Config
	options.Files, options.Flags, options.Outside = r.files, r.flags, env.Outside
	c, err := configs.Load(o.Catalog, options)
	if err != nil {
		return nil, err
	}
	kept := []string{"jobs"}
	for _, file := range o.write {
		if !slices.Contains(kept, file) {
			kept = append(kept, file)
		}
	}
	if c.Output.Writes("fairness") && !slices.Contains(kept, "fairness") {
		kept = append(kept, "fairness")
	}
	c.Output = configs.Output{Dir: "runs", Write: kept}
	return c, nil
}

// identify completes what a run is known by.
func (r *Run) identify(c *configs.Config, build string) error {
	named := *c
	named.Name = "run" // the name of a study changes nothing
	resolved, err := named.Resolved()
	if err != nil {
		return err
	}
	sum := sha256.New()
	for _, part := range []string{recordSchema, build, string(resolved)} {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	r.Hash = hex.EncodeToString(sum.Sum(nil))
	r.outside = c.Allocation.Remote != nil || c.Placement.Remote != nil || c.Elasticity.Remote != nil || c.Scaler.Remote != nil ||
		slices.ContainsFunc(c.Admission, func(s configs.Selected[core.Admitter]) bool { return s.Remote != nil })
	if r.source, err = sourceKey(c, true); err != nil {
		return err
	}
	if r.given, err = givenBy(c); err != nil {
		return err
	}
	r.jobs, err = sampleKey(c, r.source)
	return err
}

// sourceKey identifies the jobs that a config chooses from.
func sourceKey(c *configs.Config, seeded bool) (string, error) {
	settings, err := json.Marshal(core.Encode(c.Workload.Config))
	seed := uint64(0)
	if seeded {
		seed = c.Seed
	}
	return fmt.Sprintf("%s %d %s", c.Workload.ID, seed, settings), err
}

// loadSource loads the jobs that a config chooses from.
func loadSource(ctx context.Context, c *configs.Config) (*workload.Workload, error) {
	source, err := c.Workload.New(c.Seed, nil)
	if err != nil {
		return nil, err
	}
	return source.Load(ctx)
}
