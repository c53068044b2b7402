//go:build linux

package kube

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// While the API server restarts and while its store hangs, jobs run on, and nothing is told of them. What they were to do they do
// afterwards.
func TestOutage(t *testing.T) {
	c := own(t)
	r := newRig(t, c)
	r.settings.Lease = 6 * time.Second
	r.witness()
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("runs", asked{})
	s.hears("job_started runs")
	r.submit("ends", asked{run: 4 * time.Second})
	s.hears("job_started ends")
	for name, harm := range map[string]struct{ begin, end func() error }{
		"the API server is killed": {func() error { return c.Kill("kube-apiserver") }, func() error { return c.Restart("kube-apiserver") }},
		"etcd hangs":               {func() error { return c.Pause("etcd") }, func() error { return c.Resume("etcd") }},
	} {
		if err := harm.begin(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		time.Sleep(8 * time.Second) // that is the fault, and longer than a term
		if err := harm.end(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.await("jobs can be submitted", func() bool {
			_, err := c.Do(t.Context(), "GET", "/api/v1/namespaces/"+r.namespace, nil)
			return err == nil
		})
		s.news()
		job := "after-" + map[bool]string{true: "server", false: "store"}[name != "etcd hangs"]
		r.submit(job, asked{replicas: 2, run: time.Second})
		s.hears("job_finished " + job)
	}
	r.becomes("ends", trainingjob.Completed)
	if job := r.becomes("runs", trainingjob.Running); job.Status.Decision.Run != 1 {
		t.Errorf("the job that ran is in run %d", job.Status.Decision.Run)
	}
}

// refusing has the first requests for a path refused, as by an API server that is not up yet.
type refusing struct {
	http.RoundTripper
	path  string
	times atomic.Int64
}

func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, f.path) && f.times.Add(-1) >= 0 {
		return nil, errors.New("connection refused")
	}
	return f.RoundTripper.RoundTrip(r)
}

// An API server that restarts in the very second of a takeover ends no run.
func TestOutageAtATakeover(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	f := &refusing{path: "/configmaps/" + stateName}
	f.times.Store(2)
	s := r.schedule(func(rt http.RoundTripper) http.RoundTripper {
		f.RoundTripper = rt
		return f
	})
	r.submit("ends", asked{run: 100 * time.Millisecond})
	s.hears("job_finished ends")
	if left := f.times.Load(); left >= 0 {
		t.Errorf("%d refusals are left: nobody asked", left)
	}
}
