package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
)

// result is what a run came to.
type result struct {
	summary     *metrics.Summary
	text        []byte // summary.json
	interrupted bool
	endSeconds  float64
	inputs      []digest
	outputs     []digest
	plugins     []plugin
	unfinished  []*core.Job
}

// execute runs a config to its end, or until the context ends, and writes the files into dir; "" only digests them. Only a
// real run may have a real backend.
func (a *app) execute(ctx context.Context, c *configs.Config, dir string, real *realRun) (r *result, err error) {
	started := time.Now()
	stopwatch := func() time.Duration { return time.Since(started) }
	log := a.logger()

	jobs, err := loadWorkload(ctx, c, log)
	if err != nil {
		return nil, err
	}
	window, err := measured(c, len(jobs.Jobs))
	if err != nil {
		return nil, err
	}
	cluster := c.BuildCluster()
	if err := checkFit(ctx, c, cluster, jobs, log); err != nil {
		return nil, err
	}
	stages, err := buildStages(c, log)
	if err != nil {
		return nil, err
	}
	opener, err := c.Backend.New(c.Seed, log)
	if err != nil {
		return nil, err
	}
	if err := real.house(opener, c, jobs, dir); err != nil {
		return nil, err
	}
	world, err := opener.Open(ctx, cluster, jobs)
	if err != nil {
		return nil, err
	}
	if closer, ok := world.(io.Closer); ok {
		defer func() { err = errors.Join(err, a.endWorld(closer, err)) }()
		if err := removeLeftovers(dir); err != nil {
			return nil, err
		}
	}

	files, err := newOutputs(dir)
	if err != nil {
		return nil, err
	}
	defer files.discard()
	collector, err := newCollector(c, files, cluster, jobs, world)
	if err != nil {
		return nil, err
	}
	collector.Measure(window)
	ending := &ending{Backend: world, window: window, left: window.Of(len(jobs.Jobs))}
	var around surroundings = &undisturbed{collector, ending}
	if real != nil {
		if around, err = a.operate(c, cluster, real, collector, ending, stopwatch); err != nil {
			return nil, err
		}
	}
	defer around.stop()
	progress := a.startProgress(jobs)
	parts := &composition{config: c, stages: stages, log: log}
	observers := append(around.observers(), progress, ending)
	memory, remembers := world.(core.Memory)
	if remembers {
		observers = append(observers, journal.Announce(log, cluster))
	}
	pipeline := core.NewPipeline(cluster, stages, c.Round.Options(), stopwatch, observers...)
	if remembers {
		pipeline.Remember(memory, parts.again)
		follower := &reloading{composition: parts, pipeline: pipeline, cluster: cluster, jobs: jobs, load: real.load, files: real.files}
		defer follower.follow(ctx)()
	}
	err = pipeline.Run(ctx, around.backend())
	progress.stop()
	interrupted := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if err != nil && !interrupted {
		return nil, err
	}
	if repeats := replayingOf(world); interrupted && repeats != nil && repeats() {
		return nil, errors.New("stopped while the rounds of an earlier scheduler were repeated: nothing was decided and no results are written; run it again to go on")
	}
	unfinished := pipeline.Unfinished()
	if jobs.Open && len(unfinished) == 0 {
		interrupted = false // it was to go on until then
	}
	if waiting, ok := world.(interface{ Awaited() []*core.Job }); ok {
		unfinished = append(unfinished, waiting.Awaited()...)
	}
	if err := parts.close(); err != nil {
		return nil, err
	}

	end := pipeline.NowSeconds()
	if real, ok := world.(backend.Ticking); ok && interrupted {
		end = max(end, real.Present())
	}
	r = &result{
		interrupted: interrupted, endSeconds: end, inputs: digestsOf(jobs.Inputs),
		unfinished: window.Among(unfinished), plugins: a.pluginsUsed(),
	}
	if r.summary, err = around.finish(unfinished, r.endSeconds); err != nil {
		return nil, err
	}
	r.summary.Name, r.summary.Seed = c.Name, c.Seed
	r.summary.Plugins = a.troubles()
	r.summary.WallSeconds = metrics.Number(stopwatch().Seconds())
	if err := r.write(c, files); err != nil {
		return nil, err
	}
	return r, nil
}

// leaving is a backend whose jobs can outlive the scheduler.
type leaving interface {
	Leave() (running int, err error)
}

// endWorld closes a backend. When the run ends by an error, that is no fault of the jobs: they run on where they can.
func (a *app) endWorld(world io.Closer, failure error) error {
	left, can := world.(leaving)
	if failure == nil || !can {
		return world.Close()
	}
	running, err := left.Leave()
	if running > 0 {
		a.note("%d jobs run on: run it again to go on with them, or with --fresh to stop them", running)
	}
	return err
}

// closeStages ends the policies that have something to end: a process, or a file to write.
func closeStages(s *core.Stages) error {
	policies := []any{s.Allocation.Policy, s.Placement.Policy, s.Elasticity.Policy, s.Scaler.Policy}
	for _, admission := range s.Admission {
		policies = append(policies, admission.Policy)
	}
	var errs []error
	for _, policy := range policies {
		if closer, ok := policy.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}

func loadWorkload(ctx context.Context, c *configs.Config, log *slog.Logger) (*workload.Workload, error) {
	source, err := c.Workload.New(c.Seed, log)
	if err != nil {
		return nil, err
	}
	return source.Load(ctx)
}

// buildStages creates the components of every slot.
func buildStages(c *configs.Config, log *slog.Logger) (core.Stages, error) {
	var s core.Stages
	errs := make([]error, 4, 4+len(c.Admission))
	for _, selected := range c.Admission {
		admission, err := build(selected, c.Seed, log)
		errs = append(errs, err)
		s.Admission = append(s.Admission, admission)
	}
	s.Allocation, errs[0] = build(c.Allocation, c.Seed, log)
	s.Placement, errs[1] = build(c.Placement, c.Seed, log)
	s.Elasticity, errs[2] = build(c.Elasticity, c.Seed, log)
	s.Scaler, errs[3] = build(c.Scaler, c.Seed, log)
	return s, errors.Join(errs...)
}

func build[S any](selected configs.Selected[S], seed uint64, log *slog.Logger) (core.Component[S], error) {
	policy, err := selected.New(seed, log)
	if err != nil {
		return core.Component[S]{}, fmt.Errorf("create %q: %w", selected.ID, err)
	}
	return core.Component[S]{ID: selected.ID, Policy: policy}, nil
}

// pausing is a backend that knows for how many seconds a job pauses when it first starts.
type pausing interface {
	StartPause(id core.JobID) float64
}

// newCollector measures the run into those files that the config asks for.
func newCollector(c *configs.Config, files *outputs, cluster *core.Cluster, jobs *workload.Workload, world core.Backend) (*metrics.Collector, error) {
	var to metrics.Outputs
	if c.Output.Writes("fairness") {
		to.Alone = workload.NewAlone(cluster, jobs.Jobs).Seconds
		if p, ok := world.(pausing); ok {
			to.StartPause = p.StartPause
		}
	}
	for i, slot := range []*io.Writer{&to.Jobs, &to.Rounds, &to.Decisions, &to.Accelerators, &to.Fairness} {
		name := repeatableFiles[i]
		if !c.Output.Writes(strings.TrimSuffix(name, filepath.Ext(name))) {
			continue
		}
		w, err := files.create(name)
		if err != nil {
			return nil, err
		}
		*slot = w
	}
	return metrics.NewCollector(componentsOf(c), to), nil
}

func componentsOf(c *configs.Config) metrics.Components {
	parts := metrics.Components{
		Workload: c.Workload.ID, Allocation: c.Allocation.ID, Placement: c.Placement.ID,
		Elasticity: c.Elasticity.ID, Scaler: c.Scaler.ID, Backend: c.Backend.ID,
	}
	for _, admission := range c.Admission {
		parts.Admission = append(parts.Admission, admission.ID)
	}
	return parts
}

// write completes the files of the run.
func (r *result) write(c *configs.Config, files *outputs) error {
	var text bytes.Buffer
	if err := render.Document(&text, r.summary); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	r.text = text.Bytes()
	r.outputs = files.digests()
	resolved, err := placeless(c).Resolved()
	if err != nil {
		return err
	}
	b := readBuild()
	var record bytes.Buffer
	if err := render.Document(&record, manifest{
		Schema: manifestSchema, Name: c.Name, Seed: c.Seed, Quartet: b.Version, Commit: b.Commit, Go: b.Go,
		Interrupted: r.interrupted, Config: string(resolved), Plugins: r.plugins, Inputs: r.inputs, Outputs: r.outputs,
	}); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := files.write(summaryFile, r.text); err != nil {
		return err
	}
	if err := files.write(manifestFile, record.Bytes()); err != nil {
		return err
	}
	return files.commit()
}

// placeless is the config with the default output folder: where results go is no part of the run.
func placeless(c *configs.Config) *configs.Config {
	copied := *c
	copied.Output.Dir = "runs"
	return &copied
}
