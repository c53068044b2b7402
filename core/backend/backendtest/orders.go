package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// orderChecks test what people order. A backend that takes no orders skips them.
var orderChecks = []check{
	{"orders: jobs are submitted while it runs", submits},
	{"orders: jobs are submitted by many at once", submitsAtOnce},
	{"orders: a file is taken as a whole or not", refusesFiles},
	{"orders: jobs are cancelled", cancelsJobs},
	{"orders: a job is cancelled while it is being started", cancelsInTheMidst},
	{"orders: a node is drained", drains},
	{"orders: a node is drained while a job is placed on it", drainsInTheMidst},
	{"orders: a workload submits jobs and ends them, and the run ends when it has no more", isDriven},
	{"orders: logs are read", readsLogs},
	{"orders: a snapshot is taken", takesSnapshot},
}

// operated is a session on a backend that takes orders.
type operated struct {
	*session
	backend backend.Operated
}

func operate(t testing.TB, h *Harness) *operated {
	t.Helper()
	s := openWorld(t, h, World{Open: true})
	b := backend.AbilitiesOf(s.backend).Operated
	if b == nil || h.File == nil {
		t.Skip("this backend is not backend.Operated")
	}
	return &operated{s, b}
}

// order gives an order, and holds rounds until it was carried out, for which a backend may need one.
func (o *operated) order(do func(ctx context.Context) error) error {
	o.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	waiting, carriedOut := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		answer <- do(ctx)
		carriedOut()
	}()
	for {
		_, err := o.tryNext(waiting, onEvents)
		if err == nil {
			o.apply()
			continue
		}
		if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) { // the order may have been the last of the run
			o.Fatalf("next, while an order is given: %v", err)
		}
		return <-answer
	}
}

func (o *operated) submit(jobs ...Job) []string {
	o.Helper()
	names, err := o.submitFile(o.h.File(o, o.h.scaled(jobs)))
	if err != nil {
		o.Fatalf("submit: %v", err)
	}
	return names
}

func (o *operated) submitFile(f backend.JobFile) (names []string, err error) {
	o.Helper()
	err = o.order(func(ctx context.Context) (err error) {
		names, err = o.backend.Submit(ctx, f)
		return err
	})
	return names, err
}

func submits(t testing.TB, h *Harness) {
	o := operate(t, h)
	if got := o.submit(Job{Name: "one", Seconds: 1}); !slices.Equal(got, []string{"one"}) {
		t.Errorf("submitted %q, want the name of the job", got)
	}
	if got := o.submit(Job{Name: "two", Seconds: Endless}, Job{Name: "three", Seconds: 1}); !slices.Equal(got, []string{"two", "three"}) {
		t.Errorf("submitted %q, want the names of the file, in order", got)
	}
	o.submitted(3)
	for i, want := range []string{"one", "two", "three"} {
		if got := o.jobs[i].spec.Name; got != want {
			t.Errorf("job %d is %q, want %q", i, got, want)
		}
	}
	o.apply(start(0, firstOfA), start(2, firstOfB))
	o.end(0)
	o.end(2)
}

func isDriven(t testing.TB, h *Harness) {
	o := operate(t, h)
	b := backend.AbilitiesOf(o.backend).Driven
	if b == nil {
		t.Skip("this backend is not backend.Driven")
	}
	file := h.File(t, h.scaled([]Job{{Name: "one", Seconds: Endless}, {Name: "two", Seconds: Endless}, {Name: "three", Seconds: 1}}))
	jobs, err := workload.DecodeJobs(file.Name, file.Text)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // as somebody does who takes over
		if err := o.order(func(ctx context.Context) error { return b.SubmitJobs(ctx, jobs) }); err != nil {
			t.Fatalf("submit jobs: %v", err)
		}
		o.submitted(3)
	}
	o.apply(start(0, firstOfA), start(2, firstOfB))
	if e := o.end(2); e.Kind != core.JobFinished || e.Early != core.NoReason {
		t.Errorf("a job %v early for %v, want it finished", e.Kind, e.Early)
	}
	endEarly := func(names ...string) {
		for _, name := range names {
			if err := o.order(func(ctx context.Context) error { return b.EndEarly(ctx, name, core.Pruned) }); err != nil {
				t.Fatalf("end job %q early: %v", name, err)
			}
		}
	}
	endEarly("one", "one", "three")
	if e := o.end(0); e.Kind != core.JobFinished || e.Early != core.Pruned {
		t.Errorf("a job that was ended early %v early for %v", e.Kind, e.Early)
	}
	if err := o.order(func(ctx context.Context) error { return b.EndEarly(ctx, "nobody", core.Pruned) }); err == nil {
		t.Error("a job that was never submitted is ended")
	}
	o.apply(start(1, firstOfA)) // where the other ran
	for range 2 {
		if err := o.order(b.NoMore); err != nil {
			t.Fatalf("no more: %v", err)
		}
	}
	endEarly("two")
	o.end(1)
	o.over()
}

func submitsAtOnce(t testing.TB, h *Harness) {
	o := operate(t, h)
	const people, each = 8, 4
	files := make([]backend.JobFile, people*each)
	for i := range files {
		files[i] = h.File(t, h.scaled([]Job{{Name: fmt.Sprintf("job-%d", i), Seconds: Endless}}))
	}
	var all sync.WaitGroup
	for p := range people {
		all.Go(func() {
			for _, f := range files[p*each : (p+1)*each] {
				if _, err := o.backend.Submit(context.Background(), f); err != nil {
					t.Errorf("submit: %v", err)
				}
			}
		})
	}
	o.submitted(people * each)
	all.Wait()
	names := map[string]bool{}
	for i := range o.jobs {
		names[o.jobs[i].spec.Name] = true
	}
	if len(names) != people*each {
		t.Errorf("%d jobs have %d names", people*each, len(names))
	}
}

func refusesFiles(t testing.TB, h *Harness) {
	o := operate(t, h)
	o.submit(Job{Name: "taken", Seconds: Endless})
	o.submitted(1)
	good := h.File(t, h.scaled([]Job{{Name: "good", Seconds: 1}}))
	cases := map[string]backend.JobFile{
		"no job file":       {Name: "bad.yaml", Text: []byte("not a job file: ["), Dir: good.Dir},
		"empty":             {Name: "empty.yaml", Dir: good.Dir},
		"a name in use":     h.File(t, h.scaled([]Job{{Name: "fresh", Seconds: 1}, {Name: "taken", Seconds: 1}})),
		"a name used twice": h.File(t, h.scaled([]Job{{Name: "twin", Seconds: 1}, {Name: "twin", Seconds: 1}})),
	}
	for name, file := range cases {
		if names, err := o.submitFile(file); err == nil || len(names) > 0 {
			t.Errorf("%s: submitted %q, error %v", name, names, err)
		} else if _, ok := errors.AsType[core.Diagnostics](err); !ok {
			t.Errorf("%s: refused with %v, want diagnostics", name, err)
		}
	}
	o.news = nil
	o.wantNews("after files that were refused")
	if _, err := o.submitFile(good); err != nil {
		t.Errorf("a good file: %v", err)
	}
	o.wantNews("after a good file", "job_submitted 1")
}

func (o *operated) cancel(names ...string) {
	o.Helper()
	for _, name := range names {
		if err := o.tryCancel(name); err != nil {
			o.Errorf("cancel %q: %v", name, err)
		}
	}
}

func (o *operated) tryCancel(name string) error {
	o.Helper()
	return o.order(func(ctx context.Context) error { return o.backend.Cancel(ctx, name) })
}

func cancelsJobs(t testing.TB, h *Harness) {
	o := operate(t, h)
	o.submit(Job{Name: "waits", Seconds: 1}, Job{Name: "runs", Seconds: Endless}, Job{Name: "ends", Seconds: 1}, Job{Name: "discarded", Seconds: 1})
	o.submitted(4)
	o.apply(start(1, firstOfA), start(2, firstOfB), core.Change{Action: core.Discard, Job: 3})
	o.end(2)
	o.news = nil
	if err := o.tryCancel("nobody"); err == nil {
		t.Error("a job that was never submitted is cancelled")
	}
	o.cancel("ends", "discarded")
	o.wantNews("after jobs were cancelled that had ended")
	o.cancel("waits", "waits")
	o.wantNews("after a job was cancelled that waits", "job_cancelled 0")
	o.cancel("runs", "waits", "runs")
	o.wantNews("after a job was cancelled that runs", "job_cancelled 1")
	o.submit(Job{Name: "next", Seconds: 1})
	o.submitted(5)
	o.apply(start(4, firstOfA)) // where the cancelled one ran
	if e := o.end(4); e.Kind != core.JobFinished {
		t.Errorf("the next job %v, want it finished", e.Kind)
	}
}

// Whether the orders or the changes come first is up to chance.
func cancelsInTheMidst(t testing.TB, h *Harness) {
	o := operate(t, h)
	o.submit(Job{Name: "starts", Seconds: Endless}, Job{Name: "moves", Seconds: Endless})
	o.submitted(2)
	o.apply(start(1, firstOfA))
	o.news = nil
	var both sync.WaitGroup
	for _, name := range []string{"starts", "moves"} {
		both.Go(func() {
			if err := o.backend.Cancel(context.Background(), name); err != nil {
				t.Errorf("cancel %q: %v", name, err)
			}
		})
	}
	o.apply(start(0, firstOfB), move(1, secondOfB))
	for o.jobs[0].ended == nil || o.jobs[1].ended == nil {
		o.next(onEvents)
		o.apply()
	}
	both.Wait()
	o.pass(1)
	slices.Sort(o.news)
	if want := []string{"job_cancelled 0", "job_cancelled 1"}; !slices.Equal(o.news, want) {
		t.Errorf("reported %q, want %q", o.news, want)
	}
	o.submit(Job{Name: "next", Seconds: 1, Replicas: 2})
	o.submitted(3)
	o.apply(start(2, bothOfA))
	o.end(2)
}

func (o *operated) health(node string, h core.Health) {
	o.Helper()
	if err := o.trySetHealth(node, h); err != nil {
		o.Errorf("make node %q %v: %v", node, h, err)
	}
}

func (o *operated) trySetHealth(node string, h core.Health) error {
	o.Helper()
	return o.order(func(ctx context.Context) error { return o.backend.SetHealth(ctx, node, h) })
}

func drains(t testing.TB, h *Harness) {
	o := operate(t, h)
	o.submit(Job{Name: "runs", Seconds: Endless})
	o.submitted(1)
	o.apply(start(0, firstOfA))
	o.news = nil
	o.health("a", core.Draining)
	o.health("a", core.Draining)
	o.wantNews("after a node was drained twice", "node_changed 0 draining")
	o.health("a", core.Draining)
	o.wantNews("after a node was drained again")
	o.apply(move(0, firstOfB))
	o.health("a", core.Ready)
	o.health("b", core.Ready)
	o.wantNews("after a node was undrained", "node_changed 0 ready")
	if err := o.trySetHealth("nowhere", core.Draining); err == nil {
		t.Error("a node that there is not is drained")
	}
}

// A job that is started on a draining node runs until the next round moves it.
func drainsInTheMidst(t testing.TB, h *Harness) {
	o := operate(t, h)
	o.submit(Job{Name: "starts", Seconds: 2})
	o.submitted(1)
	drained := make(chan error, 1)
	go func() { drained <- o.backend.SetHealth(context.Background(), "a", core.Draining) }()
	o.apply(start(0, firstOfA))
	o.end(0)
	if err := <-drained; err != nil {
		t.Errorf("drain: %v", err)
	}
}

func readsLogs(t testing.TB, h *Harness) {
	o := operate(t, h)
	o.submit(Job{Name: "writes", Seconds: 1})
	o.submitted(1)
	o.apply(start(0, firstOfA))
	read := func(l backend.Log) error {
		return o.order(func(ctx context.Context) error { return o.backend.ReadLog(ctx, l, io.Discard) })
	}
	if err := read(backend.Log{Job: "nobody"}); err == nil {
		t.Error("the log of a job that was never submitted is read")
	}
	if err := read(backend.Log{Job: "writes", Follow: true}); err != nil {
		t.Errorf("follow a log to the end of its job: %v", err)
	}
	o.end(0)
	if err := read(backend.Log{Job: "writes"}); err != nil {
		t.Errorf("read the log of a job that has ended: %v", err)
	}
}

func takesSnapshot(t testing.TB, h *Harness) {
	o := operate(t, h)
	o.submit(Job{Name: "waits", Seconds: 1})
	o.submitted(1)
	var text strings.Builder
	err := o.order(func(ctx context.Context) error { return o.backend.WriteSnapshot(ctx, &text) })
	if err != nil || text.Len() == 0 {
		t.Errorf("a snapshot of %d bytes, error %v", text.Len(), err)
	}
}
