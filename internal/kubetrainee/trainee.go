//go:build linux

package kubetrainee

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/internal/kubecluster"
)

// Config says where to train.
type Config struct {
	Cluster *kubecluster.Cluster // whose pods are played
	Dir     string               // of tokens, and of what was done up to the last checkpoints. It is made if it is not there
	Clock   func() time.Time     // stamps the ends of pods
	Log     *slog.Logger         // may be nil
}

// period is how often all train a bit.
const period = 100 * time.Millisecond

// trainee plays the processes. All of it belongs to the goroutine of Run, but for what is said otherwise.
type trainee struct {
	cluster *kubecluster.Cluster
	dir     string
	clock   func() time.Time
	log     *slog.Logger

	changes chan change
	ready   chan ready
	work    sync.WaitGroup

	actors    map[string]*actor // by UID of the pod
	trainings map[string]*training
	saved     store
}

// actor plays one pod.
type actor struct {
	pod    pod
	plan   plan
	ctx    context.Context // ends with the pod
	cancel context.CancelFunc
	seen   time.Time // when it was seen to run

	equipment      // from when it trains on
	trains    bool // it is a member of its training
	ending    bool
}

// equipment is what a pod trains with.
type equipment struct {
	member *member
	client *agent.Client // nil without an agent
}

// ready is a pod that can train.
type ready struct {
	actor *actor
	equipment
}

// Run trains in the pods of a cluster until the context ends. It then lets go of them: they go on when it is run again.
func Run(ctx context.Context, c Config) error {
	t := &trainee{
		cluster: c.Cluster, dir: c.Dir, clock: c.Clock, log: c.Log, changes: make(chan change), ready: make(chan ready),
		actors: make(map[string]*actor), trainings: make(map[string]*training),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(t.dir, tokensFolder), 0o700); err != nil {
		return err
	}
	var err error
	if t.saved, err = openStore(filepath.Join(t.dir, progressFile)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer t.work.Wait()
	defer cancel()
	t.work.Go(func() { t.watch(ctx) })
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			for _, a := range t.actors {
				t.keep(a)
				a.cancel()
				t.work.Go(a.client.Close)
			}
			return t.saved.write()
		case c := <-t.changes:
			t.take(ctx, c)
		case r := <-t.ready:
			t.join(r)
		case now := <-ticks.C:
			if !last.IsZero() {
				t.step(now.Sub(last).Seconds())
			}
			last = now
			t.trim()
			if err := t.saved.write(); err != nil {
				t.log.Error("keep progress", "error", err)
			}
		}
	}
}

// The files of the folder.
const (
	tokensFolder = "tokens"
	progressFile = "progress.json"
)

// take looks at what became of pods.
func (t *trainee) take(ctx context.Context, c change) {
	if c.all == nil {
		t.look(ctx, &c.pod, c.gone)
		return
	}
	there := make(map[string]bool)
	for i := range c.all {
		there[c.all[i].Metadata.UID] = true
		t.look(ctx, &c.all[i], false)
	}
	for uid, a := range t.actors {
		if !there[uid] {
			t.drop(a)
		}
	}
}

func (t *trainee) look(ctx context.Context, p *pod, gone bool) {
	a := t.actors[p.Metadata.UID]
	switch {
	case a == nil && !gone && !p.stopping() && p.Status.Phase == running:
		t.begin(ctx, p)
	case a == nil:
	case gone || p.final():
		t.drop(a)
	case p.stopping() && !a.ending:
		t.terminate(a)
	}
}

// begin makes a pod that runs ready to train, if it says what.
func (t *trainee) begin(ctx context.Context, p *pod) {
	plan, ok, err := readPlan(p.Metadata.Annotations)
	if err != nil {
		t.log.Error("a pod that makes no sense", "pod", p.Metadata.Name, "error", err)
	}
	if !ok {
		return
	}
	a := &actor{pod: *p, plan: plan, seen: t.clock()}
	a.ctx, a.cancel = context.WithCancel(ctx)
	t.actors[p.Metadata.UID] = a
	t.work.Go(func() { t.prepare(a) })
}

// trim forgets jobs of long ago of which there are no pods.
func (t *trainee) trim() {
	if !t.saved.full() {
		return
	}
	live := make(map[string]bool)
	for _, a := range t.actors {
		live[a.pod.job()] = true
	}
	t.saved.trim(live)
}

// join lets a pod train that is ready.
func (t *trainee) join(r ready) {
	a := r.actor
	if a.ending || a.ctx.Err() != nil { // it went meanwhile
		t.work.Go(r.client.Close)
		return
	}
	a.equipment = r.equipment
	run := a.pod.run()
	if t.trainings[run] == nil {
		done := 0.0
		if a.client != nil {
			done = t.saved.of(a.pod.job())
		}
		t.trainings[run] = newTraining(a.plan, done)
	}
	t.trainings[run].members[a.pod.Metadata.UID] = a.member
	a.trains = true
}

// leave takes a pod out of its training.
func (t *trainee) leave(a *actor) {
	run := a.pod.run()
	if tr := t.trainings[run]; a.trains && tr != nil {
		a.trains = false
		delete(tr.members, a.pod.Metadata.UID)
		if len(tr.members) == 0 {
			delete(t.trainings, run)
		}
	}
}

// drop forgets a pod that has ended.
func (t *trainee) drop(a *actor) {
	t.leave(a)
	a.cancel()
	delete(t.actors, a.pod.Metadata.UID)
	if !a.ending {
		t.work.Go(a.client.Close)
	}
	last := true
	for _, other := range t.actors {
		last = last && other.pod.job() != a.pod.job()
	}
	if last {
		t.saved.forget(a.pod.job(), a.plan.work)
	}
}

// terminate is what a process does that is told to end: it keeps what it did.
func (t *trainee) terminate(a *actor) {
	t.keep(a)
	if _, slow := a.pod.Metadata.Annotations[stopAnnotation]; slow {
		t.leave(a) // the node ends it
		return
	}
	t.end(a, exitTerminated, false)
}

// keep makes a checkpoint, unless another replica just did.
func (t *trainee) keep(a *actor) {
	if tr := t.trainings[a.pod.run()]; tr != nil && a.trains && tr.progress > tr.saved {
		tr.checkpoint()
		t.save(a, tr)
	}
}

func (t *trainee) save(a *actor, tr *training) {
	if a.client != nil {
		t.saved.set(a.pod.job(), tr.saved)
	}
}

// step lets all train for so many seconds, after they heard what there is to hear.
func (t *trainee) step(seconds float64) {
	runs := make(map[string][]*actor)
	for _, a := range t.actors {
		if a.trains {
			t.hear(a)
		}
		if a.trains { // still
			runs[a.pod.run()] = append(runs[a.pod.run()], a)
		}
	}
	for run, actors := range runs {
		tr := t.trainings[run]
		before, waited := tr.saved, tr.world.Replicas == 0
		done := tr.step(seconds)
		if waited && tr.world.Replicas > 0 {
			t.log.Info(Begins, "run", run, "after", t.since(actors).Seconds()-seconds)
		}
		if tr.saved != before {
			t.save(actors[0], tr)
		}
		if done {
			for _, a := range actors {
				t.end(a, 0, true)
			}
		}
	}
}

// Begins is logged when a training begins, with how many seconds after all of its pods were seen to run: they ask for tokens, and
// connect.
const Begins = "a training begins"

// since is for how long all of these are known to run.
func (t *trainee) since(actors []*actor) time.Duration {
	var last time.Time
	for _, a := range actors {
		if a.seen.After(last) {
			last = a.seen
		}
	}
	return t.clock().Sub(last)
}

// hear does what the scheduler said.
func (t *trainee) hear(a *actor) {
	told := a.client.Poll()
	tr := t.trainings[a.pod.run()]
	if told.World != nil {
		tr.send(a.member, *told.World)
	}
	if told.Tuning != nil {
		tr.told = told.Tuning
	}
	if told.Checkpoint != nil || told.Stop != nil {
		t.keep(a)
	}
	if told.Stop != nil {
		t.end(a, 0, false)
	}
}

// end ends a pod with an exit code, once its agent has said what it had to.
func (t *trainee) end(a *actor, code int, done bool) {
	t.leave(a)
	a.ending = true
	t.work.Go(func() {
		if done {
			_ = a.client.Done() // it always makes sense
		}
		a.client.Close()
		t.exit(a, code)
	})
}

// pause waits, and reports whether the pod is still there.
func (a *actor) pause() bool {
	select {
	case <-a.ctx.Done():
		return false
	case <-time.After(again):
		return true
	}
}

// missing reports whether the API server does not have what was asked for.
func missing(err error) bool {
	status, ok := errors.AsType[*kubecluster.StatusError](err)
	return ok && status.Code == http.StatusNotFound
}
