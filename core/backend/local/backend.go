package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/workload"
)

// Backend is a core.Backend over processes of this machine.
type Backend struct {
	config       Config
	capabilities []core.Capability
	log          *slog.Logger
	clock        Clock
	dir          string
	handedDown   []string
	cluster      *core.Cluster
	firstDevice  []int // by node: its devices are numbered from here on
	jobs         []job // by JobID
	byName       map[string]core.JobID
	store        *store
	agent        *agent.Server
	meta         *meta

	opened   time.Time // when this scheduler began,
	openedAt float64   // in seconds of the run
	history  []round   // of schedulers before this one
	rounds   int       // observed, those of the history among them
	now      float64   // of the last one
	arrived  int       // jobs[:arrived] were submitted
	active   int       // submitted and not ended
	lastWork float64   // when a job last ran, or was submitted
	found    bool      // the runs of schedulers before this one were looked for
	closed   bool
	events   []core.Event
	happened chan struct{} // a keeper may have ended
}

var _ core.Backend = (*Backend)(nil)

// longestSocket is what the address of a unix socket has room for.
const longestSocket = 100

func open(o *Opener, c *core.Cluster, w *workload.Workload) (b *Backend, err error) {
	dir, err := filepath.Abs(o.config.Dir)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "agent.sock")
	if len(socket) > longestSocket {
		return nil, core.Diagnostics{{
			Path: "backend.config.dir", Summary: fmt.Sprintf("%q is too long a path for a socket", socket),
			Hint: fmt.Sprintf("give a folder so that it has at most %d characters", longestSocket),
		}}
	}
	b = &Backend{
		config: o.config, capabilities: o.Capabilities(), log: o.log, clock: o.clock, dir: dir, handedDown: handedDown(o.config.Environment, os.LookupEnv),
		cluster: c, jobs: make([]job, len(w.Jobs)), byName: make(map[string]core.JobID, len(w.Jobs)), happened: make(chan struct{}, 1),
	}
	devices := 0
	for i := range c.Nodes {
		b.firstDevice = append(b.firstDevice, devices)
		devices += c.Nodes[i].Devices
	}
	for i := range w.Jobs {
		b.jobs[i].Job = &w.Jobs[i]
		b.byName[w.Jobs[i].Spec.Name] = core.JobID(i)
	}
	if b.store, err = openStore(dir, o.fresh); err != nil {
		return nil, err
	}
	if err := b.resume(o.identity, o.fresh); err != nil {
		return nil, errors.Join(err, b.store.close())
	}
	if b.agent, err = agent.Listen(socket); err != nil {
		return nil, errors.Join(err, b.store.close())
	}
	return b, nil
}

// handedDown is the part of the scheduler's environment that jobs see.
func handedDown(more []string, lookup func(string) (string, bool)) (list []string) {
	for _, name := range slices.Concat(usual, more) {
		if value, set := lookup(name); set {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// resume takes over from the scheduler before, or begins anew when there was none, or nothing is left of its run.
func (b *Backend) resume(run string, fresh bool) error {
	b.opened = b.clock.Now()
	m, err := b.store.meta()
	if err != nil {
		return err
	}
	if m != nil && !fresh && !m.Complete {
		return b.goOn(m, run)
	}
	jobs := filepath.Join(b.dir, "jobs")
	endStrays(jobs, nil)
	if err := os.RemoveAll(jobs); err != nil {
		return fmt.Errorf("remove the jobs of an earlier run: %w", err)
	}
	b.found = true
	b.meta = &meta{Schema: storeSchema, Identity: run, EpochUnix: b.opened.UnixNano()}
	return b.store.reset(b.meta)
}

func (b *Backend) goOn(m *meta, run string) error {
	at := core.Position{File: b.store.path}
	if m.Schema != storeSchema {
		return core.Diagnostics{{Position: at, Summary: fmt.Sprintf("holds schema %q, this program reads %q", m.Schema, storeSchema), Hint: "end the run with the program that began it, or begin anew with --fresh"}}
	}
	if m.Identity != run {
		return core.Diagnostics{{Position: at, Summary: "holds an unfinished run of another config or other jobs", Hint: "finish that one, give this one another name, or begin anew with --fresh"}}
	}
	b.meta = m
	history, err := b.store.history()
	if err != nil {
		return err
	}
	runs, err := b.store.runs()
	if err != nil {
		return err
	}
	for i := range history {
		for _, e := range history[i].Events {
			if e.Job < 0 || int(e.Job) >= len(b.jobs) {
				return core.Diagnostics{{Position: at, Summary: fmt.Sprintf("the store tells of unknown job %d", e.Job), Hint: "begin anew with --fresh"}}
			}
		}
	}
	b.history = history
	for name, r := range runs {
		if id, known := b.byName[name]; known {
			b.jobs[id].run = r
		}
	}
	b.openedAt = b.opened.Sub(time.Unix(0, m.EpochUnix)).Seconds()
	if len(history) > 0 {
		b.openedAt = max(b.openedAt, history[len(history)-1].NowSeconds) // the clock may have been set back
	}
	b.openedAt = max(b.openedAt, 0)
	endStrays(filepath.Join(b.dir, "jobs"), func(id identity) bool {
		for i := range b.jobs {
			if b.jobs[i].run.Keeper == id {
				return true
			}
		}
		return false
	})
	return nil
}

// Capabilities repeats what the opener told.
func (b *Backend) Capabilities() []core.Capability { return b.capabilities }

// ElapsedSeconds is the present, which lies after the last round.
func (b *Backend) ElapsedSeconds() float64 { return b.elapsed() }

// elapsed is the present in seconds of the run, in whole milliseconds. It never goes back.
func (b *Backend) elapsed() float64 {
	seconds := b.openedAt + b.clock.Now().Sub(b.opened).Seconds()
	return max(math.Floor(seconds*1000)/1000, b.now)
}

// Next repeats what schedulers before this one saw, then waits until a round is due.
func (b *Backend) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if b.rounds < len(b.history) {
		return b.repeat(), nil
	}
	due := math.Inf(1)
	if !math.IsInf(w.BySeconds, 1) {
		due = onGrid(w.BySeconds, w)
	}
	for {
		now := b.elapsed()
		if err := b.look(now); err != nil {
			return core.Observation{}, err
		}
		for i := range b.events {
			due = min(due, wakes(&b.events[i], w))
		}
		if due <= now {
			return b.observe(max(now, due))
		}
		if b.over(now, due) {
			b.meta.Complete = b.active == 0
			return core.Observation{}, io.EOF
		}
		if err := b.sleep(ctx, now, due); err != nil {
			return core.Observation{}, err
		}
	}
}

func onGrid(t float64, w core.Wake) float64 {
	if w.IntervalSeconds > 0 {
		return core.OnGrid(t, w.IntervalSeconds)
	}
	return t
}

// wakes is when an event calls for a round.
func wakes(e *core.Event, w core.Wake) float64 {
	switch {
	case e.Kind == core.JobProgressed:
		return math.Inf(1) // told with whatever comes next
	case w.OnEvents:
		return e.AtSeconds
	default:
		return onGrid(e.AtSeconds, w)
	}
}

// repeat tells what was seen in a recorded round.
func (b *Backend) repeat() core.Observation {
	seen := &b.history[b.rounds]
	b.rounds++
	b.now, b.events = seen.NowSeconds, b.events[:0]
	for i := range seen.Events {
		e := seen.Events[i].told(b.jobs)
		b.take(&e)
		b.events = append(b.events, e)
	}
	told := b.events
	b.events = nil
	return core.Observation{NowSeconds: b.now, Events: told}
}

// take brings what the backend knows up to an event of a recorded round.
func (b *Backend) take(e *core.Event) {
	j := &b.jobs[e.Job]
	switch e.Kind {
	case core.JobSubmitted:
		b.arrived, b.active, b.lastWork = b.arrived+1, b.active+1, e.AtSeconds
	case core.JobFinished, core.JobFailed:
		j.leave(e.AtSeconds)
		b.end(j, e.AtSeconds)
	case core.JobInterrupted:
		j.leave(e.AtSeconds)
		j.progress = e.Progress
	case core.JobProgressed:
		j.progress, j.rate, j.asOf = e.Progress, e.Rate, e.FromSeconds
	}
}

func (b *Backend) end(j *job, now float64) {
	if !j.ended {
		j.ended = true
		b.active--
		b.lastWork = now
	}
}

// observe records what happened and tells it.
func (b *Backend) observe(now float64) (core.Observation, error) {
	b.tellReports()
	slices.SortStableFunc(b.events, func(x, y core.Event) int {
		return cmp.Or(cmp.Compare(x.AtSeconds, y.AtSeconds), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Job, y.Job))
	})
	for i := range b.events {
		b.events[i].StepsLeft = math.NaN()
	}
	b.rounds, b.now = b.rounds+1, now
	if err := b.store.observe(b.rounds, &observation{NowSeconds: now, Events: recorded(b.events)}); err != nil {
		return core.Observation{}, fmt.Errorf("record what happened: %w", err)
	}
	told := b.events
	b.events = nil
	return core.Observation{NowSeconds: now, Events: told}, nil
}

// look finds out what happened up to now.
func (b *Backend) look(now float64) error {
	for b.arrived < len(b.jobs) && b.jobs[b.arrived].Spec.SubmitSeconds <= now {
		spec := &b.jobs[b.arrived].Spec
		b.events = append(b.events, core.Event{Kind: core.JobSubmitted, AtSeconds: max(spec.SubmitSeconds, b.now), Job: spec.ID, Spec: spec})
		b.arrived, b.active, b.lastWork = b.arrived+1, b.active+1, now
	}
	b.listen(now)
	var again []*job
	for i := range b.jobs[:b.arrived] {
		j := &b.jobs[i]
		if !j.live() {
			continue
		}
		b.lastWork = now
		select {
		case <-j.gone:
			if b.ran(j) {
				again = append(again, j)
			}
		default:
		}
	}
	return b.start(again, now)
}

// over reports whether nothing will ever happen again, and no job could be found a place for too long.
func (b *Backend) over(now, due float64) bool {
	news := func(e core.Event) bool { return e.Kind != core.JobProgressed }
	if b.arrived < len(b.jobs) || slices.ContainsFunc(b.events, news) {
		return false
	}
	for i := range b.jobs {
		if b.jobs[i].live() {
			return false
		}
	}
	return b.active == 0 || math.IsInf(due, 1) || now-b.lastWork > b.config.StallAfter.Seconds()
}

// sleep waits until something may have happened, at the latest until a round is due.
func (b *Backend) sleep(ctx context.Context, now, due float64) error {
	if b.arrived < len(b.jobs) {
		due = min(due, b.jobs[b.arrived].Spec.SubmitSeconds)
	}
	var alarm <-chan time.Time
	if !math.IsInf(due, 1) {
		const longest = 24 * 3600 // what a duration can hold, by far
		alarm = b.clock.After(time.Duration(min(due-now, longest)*1e9) + time.Millisecond)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-alarm:
	case <-b.happened:
	case e := <-b.agent.Events():
		b.hear(&e, b.elapsed())
	}
	return nil
}
