//go:build linux

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// line is a connection that is cut at a write about a job or its pods, before or after it took effect. From then on nothing is
// sent any more.
type line struct {
	http.RoundTripper
	writes int // left until it is cut; 0 for never
	after  bool

	mutex sync.Mutex
	dead  bool
	cut   chan struct{}
}

var errCut = errors.New("the line is cut")

func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && (strings.Contains(r.URL.Path, "/pods") || strings.Contains(r.URL.Path, "/trainingjobs") || strings.Contains(r.URL.Path, "/services") ||
		strings.Contains(r.URL.Path, "/resourceclaims"))
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mutex.Lock()
	last := false
	if isWrite(r) && l.writes > 0 && !l.dead {
		l.writes--
		if last = l.writes == 0; last {
			l.dead = true
			close(l.cut)
		}
	}
	dead := l.dead
	l.mutex.Unlock()
	if dead && !(last && l.after) {
		return nil, errCut
	}
	answer, err := l.RoundTripper.RoundTrip(r)
	if last && err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		return nil, errCut
	}
	return answer, err
}

// through returns what opens a backend by way of the line.
func (l *line) through(rt http.RoundTripper) http.RoundTripper {
	l.RoundTripper = rt
	return l
}

// sever cuts the line now.
func (l *line) sever() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.dead = true
}

// bury ends the term of a scheduler that is dead, as time does.
func (r *rig) bury() {
	r.Helper()
	patch := []byte(`{"spec":{"holderIdentity":""}}`)
	if _, err := r.admin.Leases(r.namespace).Patch(context.Background(), leaseName, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// killed has eight schedulers in a row be killed at one of their writes, before it took effect or after that, and one go on.
func (r *rig) killed(writes int, after bool, wrap func(http.RoundTripper) http.RoundTripper) {
	r.Helper()
	for range 8 {
		l := &line{writes: writes, after: after, cut: make(chan struct{})}
		s := r.schedule(func(rt http.RoundTripper) http.RoundTripper { return l.through(wrap(rt)) })
		select {
		case <-l.cut:
		case err := <-s.ended:
			r.Fatalf("the run ended: %v", err)
		case <-time.After(time.Second): // all is done, or nearly so
		}
		l.sever()
		_ = s.stop()
		r.bury()
	}
	r.schedule(nil)
}

// A scheduler is killed at each write, before it took effect or after that, and so is the one that takes over from it, again and
// again. No job is lost, none runs twice, no device is held twice, and nothing is left.
func TestKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	c := shared(t)
	for i := range 15 {
		writes, after, claims := 2+i/3*3, i%2 == 1, i%3 == 2
		t.Run(fmt.Sprintf("write %d, after %v, claims %v", writes, after, claims), func(t *testing.T) {
			t.Parallel()
			r := newRigOf(t, c, claims)
			r.witness()
			wrap := func(rt http.RoundTripper) http.RoundTripper { return rt }
			if claims {
				wrap = (&notary{rig: r}).through
			}
			r.submit("one", asked{replicas: 3, run: 300 * time.Millisecond})
			r.submit("two", asked{replicas: 2, run: 300 * time.Millisecond})
			r.submit("bad", asked{replicas: 1, fail: 300 * time.Millisecond})
			r.submit("all", asked{replicas: 4, run: 300 * time.Millisecond})
			r.killed(writes, after, wrap)
			for name, want := range map[string]trainingjob.State{
				"one": trainingjob.Completed, "two": trainingjob.Completed, "bad": trainingjob.Failed, "all": trainingjob.Completed,
			} {
				job := r.becomes(name, want)
				if !job.Status.Decision.Stop || job.Status.Replicas != 0 {
					t.Errorf("job %s has ended, and holds %+v", name, job.Status.Decision)
				}
				succeeded := map[string]int{}
				for _, p := range r.podsOf(name) {
					if p.Status.Phase == corev1.PodSucceeded {
						succeeded[p.Labels["quartet.sched/run"]]++
					}
				}
				if len(succeeded) > 1 && want == trainingjob.Completed {
					t.Errorf("job %s succeeded in runs %v", name, succeeded)
				}
			}
			r.quiet()
		})
	}
}

// A scheduler that takes over finds jobs that run, that ended meanwhile, that were deleted, and that wait, and leaves pods that run
// alone. It starts again what it loses later.
func TestTakeover(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	r.witness()
	l := &line{cut: make(chan struct{})}
	first := r.schedule(l.through)
	r.submit("runs", asked{})
	first.hears("job_started runs")
	r.submit("ends", asked{})
	first.hears("job_started ends")
	r.submit("deleted", asked{replicas: 2})
	first.hears("job_started deleted")
	r.submit("waits", asked{replicas: 2})
	r.becomes("waits", trainingjob.Waiting)
	uids := map[string]bool{}
	for _, p := range r.pods() {
		uids[string(p.UID)] = true
	}
	l.sever()
	_ = first.stop()
	if err := r.admin.jobs.Of(r.namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.podsOf("ends") {
		r.patch(&p, `{"status":{"phase":"Succeeded"}}`, "status")
	}
	r.submit("new", asked{run: time.Second})
	r.bury()

	second := r.schedule(nil)
	second.hears("job_finished ends")
	second.hears("job_started waits")
	second.hears("job_finished new")
	for _, event := range []string{"job_submitted runs held", "job_submitted ends held", "job_submitted waits", "job_submitted new", "job_started runs"} {
		if count := len(slices.DeleteFunc(second.messages(), func(e string) bool { return e != event })); count != 1 {
			t.Errorf("got %q %d times, want once: %q", event, count, second.messages())
		}
	}
	for _, p := range r.podsOf("runs") {
		if !uids[string(p.UID)] {
			t.Errorf("the job that ran has a new pod, %s", p.Name)
		}
	}
	if job := r.job("runs"); job.Status.Decision.Run != 1 {
		t.Errorf("the job that ran is in run %d", job.Status.Decision.Run)
	}
	second.news()
	for _, p := range r.podsOf("runs") {
		if err := r.admin.Pods(r.namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	second.hears("job_interrupted runs killed")
	second.hears("job_started runs")
	if job := r.becomes("runs", trainingjob.Running); job.Status.Decision.Run != 2 || job.Status.Progress.Restarts != 1 {
		t.Errorf("the job is in run %d after %d restarts, want run 2 after 1", job.Status.Decision.Run, job.Status.Progress.Restarts)
	}
}

// A leader that is cut off, and does not know that another one leads, binds nothing, and ends when it hears of it.
func TestPausedLeader(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	r.settings.Lease = 6 * time.Second
	r.witness()
	g := &gate{open: make(chan struct{})}
	close(g.open)
	first := r.schedule(g.through)
	first.hears("node_added a")
	g.shut()
	r.submit("one", asked{replicas: 4, run: time.Second})
	second := r.schedule(nil) // once the lease is over
	g.unlock()
	if err := <-first.ended; !errors.Is(err, core.ErrFenced) {
		t.Errorf("the first leader ended with %v, want that another one took over", err)
	} else {
		first.ended <- err
	}
	second.hears("job_finished one")
	if job := r.becomes("one", trainingjob.Completed); job.Status.Decision.Epoch != second.backend.term.Epoch || job.Status.Decision.Run != 1 {
		t.Errorf("the decision is %+v, want that of the second leader, in run 1", job.Status.Decision)
	}
}

// gate holds back what is sent while it is shut.
type gate struct {
	http.RoundTripper
	mutex sync.Mutex
	open  chan struct{}
}

func (g *gate) through(rt http.RoundTripper) http.RoundTripper {
	g.RoundTripper = rt
	return g
}

func (g *gate) shut() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) unlock() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	close(g.open)
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mutex.Lock()
	open := g.open
	g.mutex.Unlock()
	select {
	case <-open:
		return g.RoundTripper.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// holdBack holds back what is written about the status of one job, from when it is told to.
type holdBack struct {
	*line
	path string
	on   atomic.Bool
	held chan struct{} // gets an item for each
}

func (h *holdBack) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, h.path) && h.on.Load() {
		select {
		case h.held <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return h.line.RoundTrip(r)
}

// A job gets the devices of one that has ended. The scheduler is killed before it could write that end: whoever takes over finds no
// device with both, and starts nothing again.
func TestTakeoverBetweenTwoDecisions(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	r.witness()
	h := &holdBack{line: &line{cut: make(chan struct{})}, path: "/trainingjobs/first/status", held: make(chan struct{}, 1)}
	s := r.schedule(func(rt http.RoundTripper) http.RoundTripper {
		h.line.RoundTripper = rt
		return h
	})
	s.hears("node_added b")
	r.submit("first", asked{replicas: 4})
	s.hears("job_started first")
	r.becomes("first", trainingjob.Running)
	r.submit("second", asked{replicas: 4})
	r.becomes("second", trainingjob.Waiting)
	h.on.Store(true)
	for _, p := range r.podsOf("first") {
		r.patch(&p, `{"status":{"phase":"Succeeded"}}`, "status")
	}
	<-h.held
	for range 50 { // long enough to decide, and to write what does not wait
		if job := r.job("second"); job.Status.Decision != nil {
			break
		}
		time.Sleep(look)
	}
	h.sever()
	_ = s.stop()
	r.bury()
	next := r.schedule(nil)
	next.hears("job_finished first")
	next.hears("job_started second")
	for name, state := range map[string]trainingjob.State{"first": trainingjob.Completed, "second": trainingjob.Running} {
		if job := r.becomes(name, state); job.Status.Decision.Run != 1 {
			t.Errorf("job %s is in run %d: %+v, told %q", name, job.Status.Decision.Run, job.Status.Decision, append(s.messages(), next.messages()...))
		}
	}
}
