package kube

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
)

// labour is what is to be done about jobs: their pods driven, their statuses written.
type labour struct {
	drives, writes workqueue.TypedRateLimitingInterface[types.UID]
	units          workqueue.TypedRateLimitingInterface[string] // pods of others that may be scheduled together
}

// Failures are tried again after 20 ms, and after twice as long each time, up to 10 s.
const (
	soonest = 20 * time.Millisecond
	latest  = 10 * time.Second
)

// renewal is how long work waits that may not be done while the lease is not renewed. It did not fail.
const renewal = 200 * time.Millisecond

// For so long it may stay untold why a job waits, and what a start waits for: most reasons pass before anybody could read them.
const (
	soon  = time.Second
	later = 10 * time.Second
)

func newLabour() *labour {
	return &labour{newQueue[types.UID](), newQueue[types.UID](), newQueue[string]()}
}

func newQueue[T comparable]() workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[T](soonest, latest))
}

func (l *labour) add(uid types.UID)   { l.drives.Add(uid) }
func (l *labour) write(uid types.UID) { l.writes.Add(uid) }

func (l *labour) end() {
	l.drives.ShutDown()
	l.writes.ShutDown()
	l.units.ShutDown()
}

// labour begins what goes on beside the rounds, until the context ends.
func (b *Backend) labour(ctx context.Context, group *sync.WaitGroup) {
	for range b.config.Workers {
		group.Go(func() {
			serve(b.work.drives, func(uid types.UID) error { return b.drive(ctx, uid) }, b.stuck)
		})
	}
	for range max(b.config.Workers/2, 1) {
		group.Go(func() {
			serve(b.work.writes, func(uid types.UID) error {
				if j := b.find(uid); j != nil {
					return b.write(ctx, j)
				}
				return nil
			}, func(uid types.UID, times int, err error) {
				b.failed("cannot write the status of a job", uid, times, err)
			})
		})
	}
	group.Go(func() { b.stir(ctx) })
	if b.world.adopted != nil {
		group.Go(func() {
			serve(b.work.units, func(key string) error { return b.adopt(ctx, key) }, func(key string, times int, err error) {
				if reportsFailure(times) {
					b.log.Warn("cannot adopt the pods of a Job, pod or group", "pods", key, "failures", times, "error", err)
				}
			})
		})
	}
}

// serve does the work of a queue until that is shut down. What fails is told, with how many times in a row, and done again later,
// unless it is not to be done any more. What waits for the lease is no failure.
func serve[T comparable](queue workqueue.TypedRateLimitingInterface[T], do func(T) error, failed func(item T, times int, err error)) {
	for {
		item, ended := queue.Get()
		if ended {
			return
		}
		switch err := do(item); {
		case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, core.ErrFenced):
			queue.Forget(item)
		case errors.Is(err, lead.ErrNotRenewed): // which is told once, of the lease
			queue.Forget(item)
			queue.AddAfter(item, renewal)
		default:
			queue.AddRateLimited(item)
			failed(item, queue.NumRequeues(item), err)
		}
		queue.Done(item)
	}
}

// Between two looks at all pods what happens is gathered: for this long, or for so many times as long as the last look took, so
// that a large cluster does not keep a processor busy.
const (
	breather = 20 * time.Millisecond
	idleTime = 20 // times
)

// stir has the pods driven of those jobs about whose pods something changed, and of those that wait for devices.
func (b *Backend) stir(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.world.stirred:
		}
		w := b.world
		w.mutex.Lock()
		changed, freed := keys(w.podsChanged), w.freed
		clear(w.podsChanged)
		w.freed = false
		w.mutex.Unlock()
		began := b.clock.Now()
		b.book.See(w.all())
		took := b.clock.Now().Sub(began)
		for _, uid := range changed {
			b.work.add(uid)
		}
		if freed {
			b.mutex.Lock()
			b.freed++
			for uid := range b.queued {
				b.work.add(uid)
			}
			b.mutex.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-b.clock.After(max(breather, idleTime*took)):
		}
	}
}

// find is a job by its UID, for workers.
func (b *Backend) find(uid types.UID) *job {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.known[uid]
}

// drive brings the pods of a job to what is decided.
func (b *Backend) drive(ctx context.Context, uid types.UID) error {
	j := b.find(uid)
	if j == nil {
		return b.sweep(ctx, uid)
	}
	j.mutex.Lock()
	decided, id, decidedAt := b.gangOf(j), j.decisionID(), j.decision().AtSeconds
	ready := j.written() || j.deleted
	tuning := tuningFrom(j.decision().Tuning)
	j.mutex.Unlock()
	if !ready {
		return nil // it is driven once what is decided outlives us
	}
	b.mutex.Lock()
	freed := b.freed
	b.mutex.Unlock()
	seen := b.lookAt(&decided)
	if a := decided.Adopts; a != nil {
		a.Wants = b.world.wants(&a.Unit, a.Wants)
	} else if err := b.door.follow(&decided, tuning, seen.Pods); err != nil {
		b.log.Warn("cannot send the decision to the agents of a job", "job", decided.Namespace+"/"+decided.Name, "error", err)
	}
	state, err := b.driver.Drive(ctx, decided, seen)
	j.mutex.Lock()
	changed, over := j.keepState(id, &state)
	j.mutex.Unlock()
	b.enqueue(uid, state.Phase == gang.Queued, freed)
	if over && err == nil {
		b.forget(uid)
	}
	left := decided.StartTimeout - b.since(decidedAt)
	if changed || state.Reason == gang.ReasonPodsMissing || starts(&state) && decided.StartTimeout > 0 && left < 0 {
		b.world.drove(uid)
	}
	if err == nil {
		b.clearFailure(j)
	}
	b.driveLater(uid, decided.StartTimeout, left, &state)
	return err
}

// keepState keeps what was found of the pods of a job, and reports whether that changed, and whether the job is deleted and its pods
// are gone. The lock is held.
func (j *job) keepState(id decisionID, state *gang.State) (changed, over bool) {
	overtook := j.overtook.Phase == "" && state.Past.Phase != ""
	if overtook {
		j.overtook = state.Past
	}
	changed = overtook || state.Phase != "" && (!j.seen || j.stateOf != id || !alike(&j.state, state))
	if state.Phase != "" { // or nothing is known but that something went wrong
		j.state, j.stateOf, j.seen, j.driven = *state, id, true, id.run
	}
	return changed, state.Phase == gang.Gone && j.deleted
}

// enqueue notes whether a job waits for devices that others have. Freed is how often devices had become free before its pods were driven.
func (b *Backend) enqueue(uid types.UID, waits bool, freed int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !waits {
		delete(b.queued, uid)
		return
	}
	if b.queued[uid] = true; b.freed != freed {
		b.work.add(uid) // what it waits for may have become free before it stood in the queue
	}
}

// forget forgets a job that is over.
func (b *Backend) forget(uid types.UID) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.known, uid)
	b.driver.Forget(uid)
	b.door.forget(uid)
}

// driveLater has the pods of a job driven again when its start will have taken too long. Left is the time until then.
func (b *Backend) driveLater(uid types.UID, timeout, left time.Duration, state *gang.State) {
	switch {
	case timeout <= 0:
	case starts(state): // the pipeline finds that it waited too long
		if left < 0 {
			left = timeout / 4 // it was found, or the members that it has go on
		}
		b.work.drives.AddAfter(uid, left+breather)
	case state.LateIn > 0:
		b.work.drives.AddAfter(uid, state.LateIn)
	}
}

// since is how long ago a moment of the run was.
func (b *Backend) since(at float64) time.Duration {
	return time.Duration((b.Present() - at) * float64(time.Second))
}

// alike reports whether two states tell the same.
func alike(a, b *gang.State) bool {
	return a.Phase == b.Phase && a.Reason == b.Reason && a.Message == b.Message && len(a.Lost) == len(b.Lost) && a.Leaving == b.Leaving
}

// gangOf is a job as its pods are driven. A run that began when each job had a service of its own keeps it.
func (b *Backend) gangOf(j *job) gang.Job {
	g := j.gang(b.config.StartTimeout)
	g.Past = b.pastOf(j)
	for _, p := range b.world.podsOf(j.uid) {
		if p.Labels[gang.RunLabel] == strconv.FormatInt(g.Run, 10) && p.Spec.Subdomain != gang.Names {
			g.Subdomain = p.Spec.Subdomain
		}
	}
	return g
}

func (b *Backend) isDown(node string) bool {
	down := b.down.Load()
	return down != nil && (*down)[node]
}

// lookAt is what is seen of a job.
func (b *Backend) lookAt(job *gang.Job) gang.Look {
	w := b.world
	w.mutex.Lock()
	version, claimed := w.version, w.claimed // no newer than the pods and claims that follow
	w.mutex.Unlock()
	l := gang.Look{Version: version, Pods: w.podsFor(job), Service: w.hasNames(job.Namespace), Node: w.node, Down: b.isDown}
	if w.devices != nil {
		l.ClaimsVersion, l.Claims, l.Devices, l.Config = claimed, w.claimsOf(job), w.devices.devices, w.devices.config()
	}
	return l
}

// sweep lets pods go whose job is not there any more.
func (b *Backend) sweep(ctx context.Context, uid types.UID) error {
	pods := b.world.podsOf(uid)
	if len(pods) == 0 {
		b.driver.Forget(uid)
		return nil
	}
	if b.world.job(uid) != nil {
		return nil // it is yet to be met
	}
	call, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	name := cmp.Or(pods[0].Labels[gang.JobLabel], "none") // somebody may have taken the label off
	unit, adopted := gang.UnitOf(pods[0])
	if !adopted {
		name = metav1.GetControllerOfNoCopy(pods[0]).Name
	}
	switch now, err := b.clients.jobs.Of(pods[0].Namespace).Get(call, name, metav1.GetOptions{}); {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err == nil && now.UID == uid:
		return nil // the informer is behind
	}
	lost := gang.Job{Namespace: pods[0].Namespace, Name: pods[0].Labels[gang.JobLabel], UID: uid, Epoch: b.term.Epoch}
	if adopted {
		lost.Adopts = &gang.Adoption{Unit: unit}
	}
	_, err := b.driver.Drive(ctx, lost, b.lookAt(&lost))
	return err
}
