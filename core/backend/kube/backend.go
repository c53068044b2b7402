package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/core/grid"
)

// The names of what the scheduler keeps of itself.
const (
	leaseName = "quartet"
	stateName = "quartet-state"
)

// Backend is a core.Backend over a Kubernetes cluster. All but what backend.Operated promises, and Present, is for one goroutine.
type Backend struct {
	config  Config
	log     *slog.Logger
	clock   lead.Clock
	clients *clients
	term    *lead.Term
	state   atomic.Pointer[run] // nil until it leads
	world   *world

	life      context.Context // of what goes on beside the rounds
	identity  string
	driver    *gang.Driver
	door      *door // nil without a channel for agents
	announcer *announcer
	doorstep  doorstep
	fits      constraints
	resizes   room // whether the definition of TrainingJobs in the cluster has what a resize needs
	book      *gang.Book
	work      *labour
	cancel    context.CancelFunc // ends what goes on beside the rounds,
	retire    context.CancelFunc // and the term
	group     sync.WaitGroup

	now      float64 // of the last round
	lastLook float64
	// firstLook is when this scheduler first looked, in seconds of the run; +Inf before.
	firstLook float64
	retryAt   float64
	recount   bool // the devices of others are to be counted again
	events    []core.Event
	nodes     *nodes
	held      map[core.NodeID]core.DeviceSet
	holds     map[types.UID][]core.Seat
	released  map[types.UID]*job // jobs that hold nothing any more, which may not be written yet
	behind    map[types.UID]*job // jobs whose decision is not written while the rounds go on
	jobs      map[types.UID]*job
	byID      []*job
	heldBack  []*job
	hung      map[types.UID]hung // pods that do not let go of their devices
	nextID    core.JobID

	down   atomic.Pointer[map[string]bool] // nodes that are taken for down
	denied atomic.Pointer[time.Time]       // since when the API server says that rights lack; nil when it does not

	forecasting sync.Mutex // one at a time writes forecasts
	outlookAt   time.Time  // when the next write for that alone may be

	mutex  sync.Mutex
	known  map[types.UID]*job // those of jobs, for workers
	queued map[types.UID]bool // jobs that wait for devices that others have
	freed  int                // how often devices became free
}

var (
	_ backend.Operated           = (*Backend)(nil)
	_ backend.Ticking            = (*Backend)(nil)
	_ core.Memory                = (*Backend)(nil)
	_ core.Observer              = (*Backend)(nil)
	_ core.DeviceKeeper          = (*Backend)(nil)
	_ backend.SubmittedElsewhere = (*Backend)(nil)
)

// open is a scheduler that is about to lead.
func open(ctx context.Context, o *Opener, config *rest.Config, identity string) (_ *Backend, err error) {
	all, err := newClients(config, o.config.Workers)
	if err != nil {
		return nil, err
	}
	if err := served(ctx, all, o.config.Watch); err != nil {
		return nil, err
	}
	b := newBackend(o, all)
	if b.world, err = newWorld(&b.config, all, o.log, b.mayAdopt(ctx)); err != nil {
		return nil, err
	}
	if b.nodes.devices = b.world.devices; b.nodes.devices != nil {
		if err := b.nodes.devices.choose(ctx, all, b.config.DeviceClass); err != nil {
			return nil, err
		}
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.life, b.cancel, b.retire, b.identity = life, cancel, func() {}, identity
	return b, nil
}

// newBackend is a scheduler that knows nothing of the cluster.
func newBackend(o *Opener, all *clients) *Backend {
	b := &Backend{
		config: o.config, log: o.log, clock: o.clock, clients: all, work: newLabour(), held: map[core.NodeID]core.DeviceSet{},
		holds: map[types.UID][]core.Seat{}, released: map[types.UID]*job{}, behind: map[types.UID]*job{}, jobs: map[types.UID]*job{},
		known: map[types.UID]*job{}, queued: map[types.UID]bool{}, hung: map[types.UID]hung{}, retryAt: inf, firstLook: inf,
		fits: newConstraints(),
	}
	b.book = gang.NewBook(b.options())
	b.nodes = newNodes(&b.config, func(id core.NodeID) core.DeviceSet { return b.held[id] })
	b.nodes.tolerates = b.tolerates
	b.nodes.kept = func(node string) core.DeviceSet { return hungOn(b.hung, node) }
	return b
}

// lead waits until this scheduler leads, and gets to know the cluster.
func (b *Backend) lead(ctx context.Context) error {
	b.log.Info("waiting to lead", "lease", b.config.Namespace+"/"+leaseName)
	office, retire := context.WithCancel(context.WithoutCancel(ctx)) // the term goes on when ctx ends, until Close
	withdraw := context.AfterFunc(ctx, retire)                       // while it waits
	term, err := lead.Run(office, lead.Options{
		Client: b.clients.Client, Namespace: b.config.Namespace, Name: leaseName, State: stateName, Identity: b.identity, Lease: b.config.Lease,
		Renew: b.config.Lease * 2 / 3, Retry: b.config.Lease / 6, Clock: b.clock, ReleaseOnCancel: true,
		Problem: func(err error) { b.log.Warn("cannot read or renew the lease", "error", err) },
	})
	withdraw()
	if err != nil {
		retire()
		return errors.Join(err, context.Cause(ctx))
	}
	b.term, b.retire = term, retire
	b.log.Info("leading", "epoch", term.Epoch)
	store, err := b.openStore(ctx)
	if err != nil {
		return err
	}
	b.driver = &gang.Driver{Client: b.clients.Client, Ledger: b.book, Options: b.options(), Fence: b.fence, Now: b.clock.Now}
	if err := b.world.run(ctx, b.life, &b.group); err != nil {
		return err
	}
	state := newRun(store.Kept().Began, b.clock.Now(), b.world.decided())
	state.store = store
	b.state.Store(state)
	b.book.See(b.world.all())
	if b.door, err = b.openDoor(); err != nil {
		return err
	}
	if b.door != nil {
		if err := b.label(ctx); err != nil {
			b.log.Warn("cannot label this pod as the leader: agents may not find it", "error", err)
		}
	}
	b.announcer = &announcer{newRecorder(apiEvents{b.clients}, b.clock, b.log, trainingjob.SchedulerName)}
	b.group.Go(func() { b.announcer.recorder.run(b.life) })
	b.world.adoptBy(b.work.units.Add)
	b.labour(b.life, &b.group)
	return nil
}

func (b *Backend) options() gang.Options {
	return gang.Options{Resource: corev1.ResourceName(b.config.Resource), Class: b.config.DeviceClass, Tolerate: b.config.Tolerate}
}

// served says so when the cluster does not know TrainingJobs.
func served(ctx context.Context, all *clients, watch string) error {
	if _, err := all.jobs.Of(watch).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return fmt.Errorf("list %s: %w; `quartet kube manifests` prints what to install", trainingjob.Resource, err)
	}
	return nil
}

// openStore reads what the schedulers of this cluster keep. An API server that restarts just now is asked again, for as long as
// this scheduler leads.
func (b *Backend) openStore(ctx context.Context) (*lead.State, error) {
	for {
		store, err := lead.Open(ctx, b.clients.Client, b.term, b.config.Namespace, stateName, b.clock.Now())
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return store, err
		}
		if _, passes := errors.AsType[*core.Unavailable](b.trouble(err)); !passes || errors.Is(err, lead.ErrFenced) || errors.Is(b.fence(), core.ErrFenced) {
			return nil, err
		}
		b.log.Warn("the API server does not answer", "error", err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-b.clock.After(time.Second):
		}
	}
}

// patience is how long a call may take: no longer than this scheduler leads for certain.
func (b *Backend) patience() time.Duration {
	return min(max(b.term.Left(), time.Millisecond), 5*time.Second)
}

// KeepsDevices is true: pods whose devices a job keeps stay.
func (b *Backend) KeepsDevices() bool { return true }

// Capabilities are none.
func (b *Backend) Capabilities() []core.Capability { return nil }

// Present is the time in seconds since the first scheduler of this cluster began, in whole milliseconds.
func (b *Backend) Present() float64 {
	if r := b.state.Load(); r != nil {
		return r.seconds(b.clock.Now())
	}
	return 0 // it does not lead yet
}

// Next waits until a round is due, and until this scheduler leads before that. One that waits to lead is ready to.
func (b *Backend) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if b.term == nil {
		if err := b.lead(ctx); err != nil {
			return core.Observation{}, err
		}
	}
	due := inf
	if !math.IsInf(w.BySeconds, 1) {
		due = onGrid(w.BySeconds, w)
	}
	for {
		if err := b.fence(); err != nil {
			return core.Observation{}, err
		}
		if err := b.reach(ctx); err != nil {
			return core.Observation{}, err
		}
		now := max(b.Present(), b.now)
		b.look(now)
		for i := range b.events {
			due = min(due, wakes(&b.events[i], w))
		}
		if due <= now {
			return b.observe(now), nil
		}
		if err := b.sleep(ctx, now, min(due, b.retryAt, b.nodes.wake(now))); err != nil {
			return core.Observation{}, err
		}
	}
}

// reach reports that the API server cannot be reached, when a watch says so and asking does, too.
func (b *Backend) reach(ctx context.Context) error {
	why := b.world.troubled()
	if why == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	_, err := b.clients.ConfigMaps(b.config.Namespace).Get(call, stateName, metav1.GetOptions{})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !apierrors.IsNotFound(err): // what somebody deleted is written again
		return b.trouble(errors.Join(why, err))
	}
	b.world.recovered() // the watch is set up anew by itself
	return b.trouble(nil)
}

func (b *Backend) sleep(ctx context.Context, now, until float64) error {
	var alarm <-chan time.Time
	if !math.IsInf(until, 1) {
		alarm = b.clock.After(time.Duration((until - now) * float64(time.Second)))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.term.Done:
	case <-alarm:
	case <-b.world.happened:
	}
	return nil
}

func onGrid(t float64, w core.Wake) float64 {
	if w.IntervalSeconds > 0 {
		return grid.From(t, w.IntervalSeconds)
	}
	return t
}

// gather is for how many seconds starts are gathered where rounds are held on events alone: that pods run changes no decision.
const gather = 1

// unheard is for how many seconds a report waits where it wakes no policy: whoever watches the run is to see it.
const unheard = 10

// wakes is when an event calls for a round.
func wakes(e *core.Event, w core.Wake) float64 {
	switch {
	case e.Kind == core.JobProgressed:
		return inf // told with whatever comes next
	case e.Kind == core.JobReported && w.OnReports:
		return onGrid(e.AtSeconds, w)
	case e.Kind == core.JobReported:
		return onGrid(e.AtSeconds+unheard, w)
	case (e.Kind == core.JobStarting || e.Kind == core.JobStarted) && w.IntervalSeconds == 0:
		return e.AtSeconds + gather
	case w.OnEvents && e.Kind != core.JobStarting && e.Kind != core.JobStarted:
		return e.AtSeconds
	default:
		return onGrid(e.AtSeconds, w)
	}
}

// observe says what happened.
func (b *Backend) observe(now float64) core.Observation {
	b.now = now
	if b.door != nil {
		b.reportMeasurements(now)
	}
	told := b.events
	b.events = nil
	slices.SortStableFunc(told, func(x, y core.Event) int {
		return order(x.Kind) - order(y.Kind)
	})
	for i := range told {
		if k := told[i].Kind; k == core.JobInterrupted || k == core.JobShrunk {
			j := b.byID[told[i].Job]
			if j == nil {
				continue
			}
			j.losing = false
			b.world.drove(j.uid) // it may have ended meanwhile
		}
	}
	for i := range told {
		switch told[i].Kind {
		case core.JobFinished, core.JobFailed, core.JobCancelled:
			b.byID[told[i].Job] = nil // nothing is decided about it any more
		}
	}
	return core.Observation{NowSeconds: now, Events: told}
}

// job is a job that was submitted; nil for none.
func (b *Backend) job(id core.JobID) *job {
	if id < 0 || int(id) >= len(b.byID) {
		return nil
	}
	return b.byID[id]
}

// order brings nodes before the jobs that run on them.
func order(k core.EventKind) int {
	if k.OfNode() {
		return 0
	}
	return 1
}

// ObserveRound writes why jobs wait.
func (b *Backend) ObserveRound(r *core.Report) error {
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		j := b.job(v.Job)
		if j == nil || j.ended || j.losing || v.Code != core.Defer {
			continue
		}
		if v.Reason == core.Suspended && (j.heldUntil > 0 || (j.absent || j.unfit != "") && !j.heldByOwner()) {
			continue // it is we who hold it back, and its status says why
		}
		state := trainingjob.Waiting
		if job := r.View.Job(v.Job); job != nil && job.State == core.Pending {
			state = trainingjob.Pending
			if v.Reason == core.Suspended {
				state = trainingjob.Suspended
			}
		}
		b.note(j, state, metav1.ConditionFalse, camel(v.Reason.String()), v.Explain())
	}
	b.explainRefusals()
	return nil
}

// Close stops to lead, and leaves the jobs alone.
func (b *Backend) Close() error {
	b.work.end()
	b.cancel()
	b.door.close()
	b.group.Wait() // nobody writes any more when the next one may lead
	b.retire()
	if b.term != nil {
		<-b.term.Done
	}
	return nil
}

// Leave is Close: jobs always outlive the scheduler.
func (b *Backend) Leave() (running int, err error) { return len(b.holds), b.Close() }

// Replaying is never: a scheduler goes on from what there is.
func (b *Backend) Replaying() bool { return false }

// errNoOrders is the answer to orders that are Kubernetes' own.
func errNoOrders(instead string) error {
	return core.Diagnostics{{Summary: "not possible here: Kubernetes does this itself", Hint: instead}}
}

// SubmitCommand creates jobs where they are kept: in the cluster.
func (b *Backend) SubmitCommand() string {
	return "quartet submit --context NAME FILE, or kubectl create -f FILE"
}

// Submit refuses: jobs are created by whoever may.
func (b *Backend) Submit(context.Context, backend.JobFile) ([]string, error) {
	return nil, errNoOrders("create a TrainingJob: quartet submit --context, or kubectl create")
}

// Cancel refuses: jobs are deleted by whoever may.
func (b *Backend) Cancel(context.Context, string) error {
	return errNoOrders("delete the TrainingJob: quartet cancel --context, or kubectl delete trainingjob")
}

// SetHealth refuses: nodes are cordoned by whoever may.
func (b *Backend) SetHealth(context.Context, string, core.Health) error {
	return errNoOrders("quartet drain --context, or kubectl cordon")
}

// ReadLog refuses: logs are read by whoever may.
func (b *Backend) ReadLog(context.Context, backend.Log, io.Writer) error {
	return errNoOrders("quartet logs --context, or kubectl logs")
}

// WriteSnapshot refuses.
func (b *Backend) WriteSnapshot(context.Context, io.Writer) error {
	return errNoOrders("quartet plan --context reads the cluster itself")
}
