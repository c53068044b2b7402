//go:build linux

package kube

import (
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// skewed is a clock that is off.
type skewed struct {
	realClock
	by time.Duration
}

func (c skewed) Now() time.Time { return c.realClock.Now().Add(c.by) }

// The clock of each leader is another: right, five minutes behind, five minutes ahead. Jobs run on, the time of the run does not
// go back, and what is decided is carried out.
func TestClocksThatAreOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	r.witness()
	r.submit("runs", asked{})
	at := 0.0
	for _, off := range [...]struct {
		job string
		by  time.Duration
	}{{"right", 0}, {"behind", -5 * time.Minute}, {"ahead", 5 * time.Minute}, {"again", 0}} {
		r.clock = skewed{by: off.by}
		l := &line{cut: make(chan struct{})}
		s := r.schedule(l.through)
		s.hears("job_started runs")
		r.submit(off.job, asked{replicas: 3, run: time.Second})
		s.hears("job_started " + off.job)
		s.hears("job_finished " + off.job)
		p := r.becomes(off.job, trainingjob.Completed).Status.Progress
		if p.ExecutedSeconds < 0.5 || p.ExecutedSeconds > 60 {
			t.Errorf("%s: it had devices for %v s", off.job, p.ExecutedSeconds)
		}
		// What is decided last may be its end, where it ended before somebody looked.
		if decided := *p.FirstStartSeconds; decided < at || decided > at+400 {
			t.Errorf("%s: decided at %v s, and before at %v s", off.job, decided, at)
		}
		at = *p.FirstStartSeconds
		l.sever()
		_ = s.stop()
		r.bury()
	}
	if job := r.job("runs"); job.Status.Decision.Run != 1 || job.Status.State != trainingjob.Running {
		t.Errorf("the job that ran is %s in run %d", job.Status.State, job.Status.Decision.Run)
	}
}

// forwarder is a way to the API server that can be cut.
type forwarder struct {
	to string
	l  net.Listener

	mutex sync.Mutex
	cut   bool
	open  map[net.Conn]bool
}

// forward has the schedulers of a rig reach the API server by a way of their own.
func (r *rig) forward() *forwarder {
	r.Helper()
	server, err := url.Parse(r.config.Host)
	if err != nil {
		r.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	f := &forwarder{to: server.Host, l: l, open: map[net.Conn]bool{}}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { f.carry(c) })
		}
	})
	r.Cleanup(func() {
		_ = l.Close()
		f.set(true)
		group.Wait()
	})
	r.config = rest.CopyConfig(r.config)
	r.config.Host = "https://" + l.Addr().String()
	return f
}

func (f *forwarder) carry(c net.Conn) {
	defer c.Close()
	to, err := net.Dial("tcp", f.to)
	if err != nil {
		return
	}
	defer to.Close()
	f.mutex.Lock()
	if f.cut {
		f.mutex.Unlock()
		return
	}
	f.open[c], f.open[to] = true, true
	f.mutex.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, c)
		_ = to.Close()
	}()
	_, _ = io.Copy(c, to)
	_ = c.Close()
	<-done
	f.mutex.Lock()
	delete(f.open, c)
	delete(f.open, to)
	f.mutex.Unlock()
}

// set cuts the way, or mends it.
func (f *forwarder) set(cut bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.cut = cut; cut {
		for c := range f.open {
			_ = c.Close()
		}
	}
}

// A scheduler sees nothing while pods end, jobs are deleted and submitted, and the API server restarts, which then knows nothing of
// what was before: the watches have expired (410). What happened is told afterwards, once, and what runs runs on.
func TestWatchesExpire(t *testing.T) {
	t.Parallel()
	c := own(t)
	r := newRig(t, c)
	r.settings.Lease = 6 * time.Second
	f := r.forward()
	s := r.schedule(nil)
	s.hears("node_added b")
	for _, name := range []string{"runs", "ends", "deleted"} {
		r.submit(name, asked{})
		s.hears("job_started " + name)
	}
	was, err := r.admin.Pods(r.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.news()
	f.set(true)
	for _, p := range r.podsOf("ends") {
		r.patch(&p, `{"status":{"phase":"Succeeded"}}`, "status")
	}
	if err := r.admin.jobs.Of(r.namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.submit("new", asked{replicas: 3, run: time.Second})
	if err := c.Kill("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // its port
	if err := c.Restart("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.await("the history before is gone", func() bool {
		old, err := r.admin.Pods(r.namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: was.ResourceVersion})
		if err != nil {
			return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		}
		defer old.Stop()
		e := <-old.ResultChan()
		status := apierrors.FromObject(e.Object)
		return apierrors.IsResourceExpired(status) || apierrors.IsGone(status)
	})
	f.set(false)
	s.hears("job_finished new")
	told := slices.DeleteFunc(s.news(), func(e string) bool {
		// KWOK was away for as long. And pods may be seen to be gone before their job is.
		return strings.HasPrefix(e, "node_") || e == "job_interrupted deleted killed"
	})
	slices.Sort(told) // it was all at once
	if want := []string{"job_cancelled deleted", "job_finished ends", "job_finished new", "job_submitted new"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	for name, state := range map[string]trainingjob.State{"runs": trainingjob.Running, "ends": trainingjob.Completed, "new": trainingjob.Completed} {
		if job := r.becomes(name, state); job.Status.Decision.Run != 1 {
			t.Errorf("job %s is in run %d", name, job.Status.Decision.Run)
		}
	}
}
