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
	"sync"
	"sync/atomic"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/grid"
	"github.com/quartet-sched/quartet/core/workload"
)

// Backend is a core.Backend over processes of this machine. All but what backend.Operated and backend.Expecting
// promise, and Present, is for one goroutine.
type Backend struct {
	config       Config
	capabilities []core.Capability
	log          *slog.Logger
	clock        Clock
	lockWait     time.Duration
	dir          string
	handedDown   []string
	mps          mps
	unlimited    bool // CPUs and memory are counted, and it was told that nothing holds jobs to theirs
	cluster      *core.Cluster
	devices      *devices
	claims       claims
	jobs         []*job // by JobID
	byName       map[string]core.JobID
	open         bool // more jobs may be submitted, so that the run has no end of its own
	store        *store
	journal      *journal.Log
	meta         *journal.Meta
	ordered      map[string]core.Health // by node name, by operators
	pools        pools
	agent        *agent.Server

	opened    time.Time   // when this scheduler began,
	openedAt  float64     // in seconds of the run
	behind    atomic.Bool // recorded rounds are still to be repeated
	now       float64     // of the last round
	coming    []*job      // not yet submitted, by moment of submission
	active    int         // submitted and not ended
	lastWork  float64     // when a job last ran, or was submitted
	found     bool        // the runs of schedulers before this one were looked for
	unsettled bool        // what runs is not what is decided
	uncounted []*job      // whose runs failed, which is yet to be recorded
	closed    bool
	health    []core.Health // by node, as last told or about to be
	events    []core.Event
	happened  chan struct{} // a keeper may have ended
	seen      *journal.Seen // what the round under way saw; nil when it is recorded
	intake    *journal.Intake
	wanted    *journal.Orders
	ended     chan struct{} // closed when no order is carried out any more
	work      sync.WaitGroup
}

var (
	_ backend.Driven  = (*Backend)(nil)
	_ backend.Ticking = (*Backend)(nil)
	_ core.Memory     = (*Backend)(nil)
	_ core.Scaling    = (*Backend)(nil)
)

// longestSocket is what the address of a unix socket has room for.
const longestSocket = 100

func open(ctx context.Context, o *Opener, c *core.Cluster, w *workload.Workload) (b *Backend, err error) {
	dir, err := filepath.Abs(o.config.Dir)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, agentSocket)
	if len(socket) > longestSocket {
		return nil, core.Diagnostics{{
			Path: "backend.config.dir", Summary: fmt.Sprintf("%q is too long a path for a socket", socket),
			Hint: fmt.Sprintf("give a folder so that it has at most %d characters", longestSocket),
		}}
	}
	if !o.fresh {
		if err := refuseOrphans(dir); err != nil {
			return nil, err
		}
	}
	store, err := openStore(dir, o.fresh, o.lockWait)
	if err != nil {
		return nil, err
	}
	b = newBackend(o, c, w)
	b.dir, b.handedDown, b.mps, b.store = dir, handedDown(o.config.Environment, os.LookupEnv), mpsOf(os.LookupEnv), store
	b.journal = journal.Open(store, o.identity, o.resolved)
	b.journal.Rest(o.files)
	if err := b.resume(ctx, o, w); err != nil {
		return nil, errors.Join(err, b.letGo())
	}
	b.removeSnapshots()
	b.checkLimits()
	if b.agent, err = agent.Listen(socket); err != nil {
		return nil, errors.Join(err, b.letGo())
	}
	names := make([]string, len(b.jobs))
	for i, j := range b.jobs {
		names[i] = j.Spec.Name
	}
	b.intake = journal.NewIntake(b.journal, b.Present, names, b.ended)
	b.work.Go(b.intake.Work)
	return b, nil
}

// newBackend knows the jobs of its workload, and has neither a store nor processes.
func newBackend(o *Opener, c *core.Cluster, w *workload.Workload) *Backend {
	b := &Backend{
		config: o.config, capabilities: o.Capabilities(), log: o.log, clock: o.clock, lockWait: o.lockWait, cluster: c, open: w.Open || w.React != nil,
		byName: make(map[string]core.JobID, len(w.Jobs)), happened: make(chan struct{}, 1), ended: make(chan struct{}),
		ordered: map[string]core.Health{}, pools: pools{seed: o.seed, id: o.id},
	}
	b.wanted = journal.NewOrders(b.ended)
	for i := range w.Jobs {
		b.know(&w.Jobs[i])
	}
	return b
}

// know takes in a job that is to be submitted when its moment comes.
func (b *Backend) know(spec *workload.Job) {
	j := &job{Job: standingIn(spec)}
	b.jobs = append(b.jobs, j)
	b.byName[spec.Spec.Name] = spec.Spec.ID
	at, _ := slices.BinarySearchFunc(b.coming, j, compareComing)
	b.coming = slices.Insert(b.coming, at, j)
}

func compareComing(a, b *job) int {
	return cmp.Or(cmp.Compare(a.Spec.SubmitSeconds, b.Spec.SubmitSeconds), cmp.Compare(a.Spec.ID, b.Spec.ID))
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

// Replaying reports whether the next round is one that a scheduler before this one recorded.
func (b *Backend) Replaying() bool { return b.behind.Load() }

// Learned is what the stages of earlier schedulers had learned.
func (b *Backend) Learned() []core.Learned { return b.journal.Learned() }

// Keep records what the stages learned.
func (b *Backend) Keep(l []core.Learned) error { return b.journal.Keep(l) }

// Begin records that a composition decides from a round on.
func (b *Backend) Begin(round int, c *core.Composition, from []core.Learned) error {
	return b.journal.Begin(round, c, from)
}

// Capabilities repeats what the opener declared.
func (b *Backend) Capabilities() []core.Capability { return b.capabilities }

// Present is what the clock says, in seconds of the run, in whole milliseconds. It may be called from any goroutine.
func (b *Backend) Present() float64 {
	return math.Floor((b.openedAt+b.clock.Now().Sub(b.opened).Seconds()*b.config.Speedup)*1000) / 1000
}

// elapsed is the present, which never goes back before the last round.
func (b *Backend) elapsed() float64 { return max(b.Present(), b.now) }

// Next repeats what schedulers before this one saw, then waits until a round is due.
func (b *Backend) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if b.journal.Replaying() {
		return b.repeat(), nil
	}
	b.wakeUp()
	due := math.Inf(1)
	if !math.IsInf(w.BySeconds, 1) {
		due = onGrid(w.BySeconds, w)
	}
	for {
		b.takeIn()
		b.obeyAll()
		if err := b.look(b.elapsed()); err != nil {
			return core.Observation{}, err
		}
		now := b.elapsed() // what was found may have happened since
		due = min(due, b.retryDue(w))
		for i := range b.events {
			due = min(due, wakes(&b.events[i], w, b.seconds(unheard)))
		}
		if due <= now {
			return b.observe(max(now, due)), nil
		}
		if b.over(now, due) && b.intake.End() {
			b.meta.Complete = b.active == 0 && !b.open
			return core.Observation{}, io.EOF
		}
		if err := b.sleep(ctx, now, due); err != nil {
			return core.Observation{}, err
		}
	}
}

func onGrid(t float64, w core.Wake) float64 {
	if w.IntervalSeconds > 0 {
		return grid.From(t, w.IntervalSeconds)
	}
	return t
}

// unheard is how long a report waits where it wakes no policy: whoever watches the run is to see it.
const unheard = 10 * time.Second

// wakes is when an event calls for a round, where a report waits for so many seconds at most.
func wakes(e *core.Event, w core.Wake, unheard float64) float64 {
	switch {
	case e.Kind == core.JobProgressed:
		return math.Inf(1) // told with whatever comes next
	case e.Kind == core.JobReported && w.OnReports:
		return onGrid(e.AtSeconds, w)
	case e.Kind == core.JobReported:
		return onGrid(e.AtSeconds+unheard, w)
	case w.OnEvents:
		return e.AtSeconds
	default:
		return onGrid(e.AtSeconds, w)
	}
}

// observe says what happened. It is recorded with what is decided: until then nothing comes of it, and a scheduler after this
// one would find out again.
func (b *Backend) observe(now float64) core.Observation {
	b.reportMetrics(now)
	b.journal.BeginRound()
	b.now = now
	told := sorted(b.events)
	b.noteSubmitted(told)
	b.noteSlots(told)
	b.seen = &journal.Seen{NowSeconds: now, Events: journal.Events(told), Said: b.unrecorded(), Sharing: b.cluster.Sharing.String()}
	b.events = nil
	return core.Observation{NowSeconds: now, Events: told}
}

// noteSubmitted notes which jobs the pipeline gets to know.
func (b *Backend) noteSubmitted(events []core.Event) {
	for i := range events {
		if e := &events[i]; e.Kind == core.JobSubmitted {
			b.jobs[e.Job].told = true
		}
	}
}

// sorted brings what is to be told into order.
func sorted(events []core.Event) []core.Event {
	slices.SortStableFunc(events, func(x, y core.Event) int {
		return cmp.Or(cmp.Compare(x.AtSeconds, y.AtSeconds), cmp.Compare(rank(x.Kind), rank(y.Kind)), cmp.Compare(x.Job, y.Job))
	})
	for i := range events {
		events[i].StepsLeft = math.NaN()
	}
	return events
}

// rank is where events of a kind stand among those of a moment. What becomes of nodes stays in order, behind what becomes of their
// jobs: a node is ready as soon as it joined, and one that is gone leaves its devices to the next.
func rank(k core.EventKind) core.EventKind {
	switch {
	case k.OfNode():
		return core.NodeRemoved
	case k == core.JobReported: // before the end of its job
		return core.JobProgressed
	}
	return k
}

// look finds out what happened up to now, and goes on with what is half done.
func (b *Backend) look(now float64) error {
	b.arrive(now)
	b.listen(now)
	for _, j := range b.jobs {
		if !j.live() {
			continue
		}
		if j.advances(now, b.seconds(b.config.StallAfter)) {
			b.lastWork = now
		}
		select {
		case j.exitedAt = <-j.gone:
			j.exited = true
		default:
		}
		switch {
		case !j.exited:
			b.lookAfter(j, now)
		case !b.saysMore(j, now):
			b.ran(j)
		}
	}
	if err := b.keepSlots(now); err != nil {
		return err
	}
	return b.settle(now)
}

// arrive submits the jobs whose moment has come.
func (b *Backend) arrive(now float64) {
	for len(b.coming) > 0 && b.coming[0].Spec.SubmitSeconds <= now {
		j := b.coming[0]
		b.coming = b.coming[1:]
		at := max(j.Spec.SubmitSeconds, b.now)
		b.events = append(b.events, core.Event{Kind: core.JobSubmitted, AtSeconds: at, Job: j.Spec.ID, Spec: j.KnownSpec(), Checkpointing: j.checkpointing()})
		b.submitted(j, now)
		if j.cancelled {
			j.cancelledAt = at
			b.finish(j, core.JobCancelled, at)
		}
	}
}

func (b *Backend) submitted(j *job, now float64) {
	j.submitted = true
	b.active++
	b.lastWork = now
}

// over reports whether nothing will ever happen again, and no job could be found a place for too long.
func (b *Backend) over(now, due float64) bool {
	news := func(e core.Event) bool { return e.Kind != core.JobProgressed }
	if b.open || len(b.coming) > 0 || slices.ContainsFunc(b.events, news) {
		return false
	}
	stalled := b.stalled(now)
	if slices.ContainsFunc(b.jobs, (*job).live) || b.active > 0 && b.opening() {
		return stalled
	}
	return b.active == 0 || math.IsInf(due, 1) || stalled
}

// stalled reports whether no job has worked for too long. A job that was thrown back is given the time to get further than before.
func (b *Backend) stalled(now float64) bool {
	after := b.seconds(b.config.StallAfter)
	grace, since := 0.0, b.lastWork
	for _, j := range b.jobs {
		since = max(since, b.waitedSeconds(j))
		if j.submitted && !j.ended {
			grace = max(grace, j.proves(after))
		}
	}
	return now-since > after+grace
}

// sleep waits until something may have happened, at the latest until a round is due.
func (b *Backend) sleep(ctx context.Context, now, due float64) error {
	if len(b.coming) > 0 {
		due = min(due, b.coming[0].Spec.SubmitSeconds)
	}
	due = min(due, b.patienceEnds(now), b.slotsChange(now))
	var alarm <-chan time.Time
	if !math.IsInf(due, 1) {
		const longest = 24 * 3600 // what a duration can hold, by far
		alarm = b.clock.After(time.Duration(min((due-now)/b.config.Speedup, longest)*1e9) + time.Millisecond)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-alarm:
	case <-b.happened:
	case <-b.intake.Arrived():
	case r := <-b.wanted.Wanted():
		b.obey(r)
	case e := <-b.agent.Events():
		b.collect(&e, b.elapsed())
	}
	return nil
}
