// Package fake is a backend in memory, for tests of whatever drives a backend: pipelines, servers, the conformance suite.
//
// Its clock is virtual and jumps to what happens next. Jobs do as their scripts say, and faults that real backends have can
// be asked for. Orders may come from any goroutine; while nothing lies ahead, Next waits for them.
package fake

import (
	"cmp"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/grid"
	"github.com/quartet-sched/quartet/core/workload"
)

// Script is what a job does besides working: its TotalWork in seconds at the requested replicas, or without end when that is
// 0. What it did it keeps when it is stopped.
type Script struct {
	Fails       bool      // when its work is done
	InterruptAt []float64 // work, increasing, at which it loses its devices
	Log         string    // what each replica puts out
}

// Options are the scripts of the jobs, and the faults.
type Options struct {
	Scripts map[string]Script // by job name; a job without one finishes
	// StopSeconds is how long Apply waits for the jobs that it stops. They work on meanwhile, and may end before.
	StopSeconds float64
	// RepeatShare is the share of the observations that repeat events. It needs Rand.
	RepeatShare float64
	Rand        *rand.Rand // source of what RepeatShare leaves to chance
	// StallSeconds is how long no job may run, start or be submitted and no node of a pool be ready first before nothing more is
	// expected; 0 for an hour.
	StallSeconds float64
	// Identity is that of the composition that decides.
	Identity string
	// Pools are how nodes of pools come and go. What is left to chance follows from Seed.
	Pools []backend.Pool
	Seed  uint64 // of what Pools leave to chance
}

// Backend is a core.Backend over nothing.
type Backend struct {
	options Options
	open    bool // jobs may be submitted for ever

	mu       sync.Mutex
	ordered  chan struct{} // an order came
	cluster  *core.Cluster // of the pipeline
	nodes    []*node       // by NodeID
	pools    pools
	byName   map[string]*job
	coming   []*job // not yet submitted, by time
	jobs     []*job // by JobID
	active   int    // submitted and not ended
	clock    float64
	lastWork float64
	events   []core.Event // not yet told
	told     []core.Event
	over     bool

	store   *journal.Memory
	journal *journal.Log
	seen    *journal.Seen // what the round under way saw; nil when it is recorded
}

var (
	_ backend.Driven = (*Backend)(nil)
	_ core.Scaling   = (*Backend)(nil)
	_ core.Memory    = (*Backend)(nil)
)

// job is a job and what became of it.
type job struct {
	spec   core.JobSpec
	script Script
	ended  chan struct{}

	seats    []core.Seat
	tuning   core.Tuning
	progress float64 // work done at asOf, growing with rate
	asOf     float64
	rate     float64
	changed  int  // round of the last change
	lost     bool // its devices, and the pipeline has not been told
}

// Open begins a run. A workload without end makes a run without end, until it is closed.
func Open(c *core.Cluster, w *workload.Workload, o Options) *Backend {
	if o.StallSeconds == 0 {
		o.StallSeconds = 3600
	}
	b := &Backend{
		options: o, open: w.Open, ordered: make(chan struct{}, 1), cluster: c,
		byName: make(map[string]*job, len(w.Jobs)), store: journal.NewMemory(),
	}
	b.journal = journal.Open(b.store, o.Identity, "")
	_ = b.journal.Reset(&journal.Meta{}) // memory does not fail
	b.openPools()
	for i := range w.Jobs {
		b.expect(*w.Jobs[i].KnownSpec())
	}
	return b
}

// expect takes in a job that is submitted when its time comes.
func (b *Backend) expect(spec core.JobSpec) {
	j := &job{spec: spec, script: b.options.Scripts[spec.Name], ended: make(chan struct{})}
	b.byName[spec.Name] = j
	after := slices.IndexFunc(b.coming, func(other *job) bool { return other.spec.SubmitSeconds > spec.SubmitSeconds })
	if after < 0 {
		after = len(b.coming)
	}
	b.coming = slices.Insert(b.coming, after, j)
}

// Restart puts another scheduler in the place of the one that drove the backend, for a composition of an identity: the world goes
// on as it is, and the rounds so far are repeated.
func (b *Backend) Restart(identity string) error { return b.RestartOn(b.cluster, identity) }

// RestartOn is Restart for a pipeline on a cluster of its own, which is as the one was that the backend was opened on.
func (b *Backend) RestartOn(c *core.Cluster, identity string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen != nil { // what was not decided about is told to the next one
		b.events = append(b.events, b.told[len(b.told)-len(b.seen.Events):]...)
		b.told, b.seen = b.told[:len(b.told)-len(b.seen.Events)], nil
		slices.SortStableFunc(b.events, func(x, y core.Event) int { return cmp.Compare(x.ID, y.ID) })
	}
	b.journal = journal.Open(b.store, identity, "")
	b.meet(c)
	_, err := b.journal.Recall(0)
	return err
}

// Replaying reports whether the next round is one that an earlier scheduler held.
func (b *Backend) Replaying() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.journal.Replaying()
}

// Learned is what was last kept.
func (b *Backend) Learned() []core.Learned { return b.journal.Learned() }

// Keep replaces what is kept.
func (b *Backend) Keep(l []core.Learned) error { return b.journal.Keep(l) }

// Begin records that a composition decides from a round on.
func (b *Backend) Begin(round int, c *core.Composition, from []core.Learned) error {
	return b.journal.Begin(round, c, from)
}

// Capabilities are that jobs do as they declare, and that pools grow and shrink.
func (b *Backend) Capabilities() []core.Capability {
	return []core.Capability{core.CapabilityRemainingWork, core.CapabilityScaleCluster}
}

// Next goes from one event to the next until a round is due, and waits when there are none.
func (b *Backend) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return core.Observation{}, err
		}
		if b.journal.Replaying() {
			seen, _ := b.journal.Repeat(func(id core.JobID) *core.JobSpec { return &b.jobs[id].spec })
			b.show(seen.Events)
			return seen, nil
		}
		at, due := b.nextEvent(), b.due(w)
		switch {
		case b.over || b.complete():
			b.over = true
			return core.Observation{}, io.EOF
		case at <= due && !math.IsInf(at, 1):
			b.happen(at)
		case !math.IsInf(due, 1) && !b.stalled(due):
			return b.observe(max(due, b.clock)), nil
		case !b.open && !b.running():
			b.over = true
			return core.Observation{}, io.EOF
		default:
			b.await(ctx)
		}
	}
}

// await waits for an order, or for the context to end.
func (b *Backend) await(ctx context.Context) {
	b.mu.Unlock()
	defer b.mu.Lock()
	select {
	case <-ctx.Done():
	case <-b.ordered:
	}
}

// due is when the next round is, as far as is known.
func (b *Backend) due(w core.Wake) float64 {
	onGrid := func(t float64) float64 {
		if w.IntervalSeconds > 0 && !math.IsInf(t, 1) {
			return grid.From(t, w.IntervalSeconds)
		}
		return t
	}
	due := onGrid(w.BySeconds)
	for i := range b.events {
		switch e := &b.events[i]; {
		case e.Kind == core.JobProgressed:
		case w.OnEvents:
			due = min(due, e.AtSeconds)
		default:
			due = min(due, onGrid(e.AtSeconds))
		}
	}
	return due
}

// nextEvent is when something happens next to a job or a node.
func (b *Backend) nextEvent() float64 { return min(b.nextOfJobs(), b.nextOfNodes()) }

// nextOfJobs is when a job is submitted or ends next.
func (b *Backend) nextOfJobs() float64 {
	at := math.Inf(1)
	if len(b.coming) > 0 {
		at = b.coming[0].spec.SubmitSeconds
	}
	for _, j := range b.jobs {
		at = min(at, j.turnsAt())
	}
	return at
}

// happen lets everything of one moment happen.
func (b *Backend) happen(at float64) {
	b.clock = max(b.clock, at)
	b.turnNodes()
	for _, j := range b.jobs {
		if j.turnsAt() <= at {
			b.turn(j)
		}
	}
	for len(b.coming) > 0 && b.coming[0].spec.SubmitSeconds <= at {
		j := b.coming[0]
		b.coming = b.coming[1:]
		j.spec.ID = core.JobID(len(b.jobs))
		b.jobs = append(b.jobs, j)
		_ = b.journal.Submit([]*workload.Job{{Spec: j.spec}}) // memory does not fail
		b.active++
		b.lastWork = at
		b.enqueue(core.Event{Kind: core.JobSubmitted, AtSeconds: at, Job: j.spec.ID, Spec: &j.spec, StepsLeft: math.NaN()})
	}
	b.removeEmpty()
}

// complete reports whether nothing is left to tell or to wait for.
func (b *Backend) complete() bool {
	return !b.open && len(b.coming) == 0 && b.active == 0 && !b.news()
}

// news reports whether something is to be told besides progress, and nodes of pools that come and go.
func (b *Backend) news() bool {
	return slices.ContainsFunc(b.events, func(e core.Event) bool {
		return e.Kind != core.JobProgressed && (!e.Kind.OfNode() || b.nodes[e.Node].Pool == "")
	})
}

// stalled reports whether no round has led to anything for too long, and nothing lies ahead.
func (b *Backend) stalled(due float64) bool {
	return math.IsInf(b.nextOfJobs(), 1) && !b.news() && !b.running() && due-b.lastWork > b.options.StallSeconds
}

func (b *Backend) running() bool {
	return slices.ContainsFunc(b.jobs, func(j *job) bool { return j.seats != nil })
}

// enqueue numbers an event, to be told with the next observation.
func (b *Backend) enqueue(e core.Event) {
	e.ID = uint64(len(b.told) + len(b.events) + 1)
	b.events = append(b.events, e)
}

func (b *Backend) observe(now float64) core.Observation {
	b.clock = now
	if b.running() {
		b.lastWork = now
	}
	for _, j := range b.jobs {
		j.lost = false
	}
	fresh := b.events
	b.events = nil
	b.show(fresh)
	b.journal.BeginRound()
	b.seen = &journal.Seen{NowSeconds: now, Events: journal.Events(fresh), Sharing: b.cluster.Sharing.String()}
	seen := core.Observation{NowSeconds: now, Events: fresh}
	if r := b.options.Rand; b.options.RepeatShare > 0 && r.Float64() < b.options.RepeatShare {
		earlier := b.told[r.IntN(len(b.told)+1):]
		seen.Events = slices.Concat(earlier[:r.IntN(len(earlier)+1)], fresh, fresh[r.IntN(len(fresh)+1):])
	}
	b.told = append(b.told, fresh...)
	return seen
}
