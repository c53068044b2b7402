//go:build linux

package kube

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
			_, err := r.admin.CoreV1().Namespaces().Get(t.Context(), r.namespace, metav1.GetOptions{})
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
