//go:build linux

package kube

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// nobody grants nothing.
type nobody struct{ core.Allocator }

func (nobody) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	return nil, nil
}

// unled makes a rig in which a job runs that nobody leads any more.
func unled(t *testing.T, a asked) *rig {
	r := newRig(t, shared(t))
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("one", a)
	r.becomes("one", trainingjob.Running)
	_ = s.stop()
	return r
}

// succeed waits until all pods of a job have succeeded.
func (r *rig) succeed(job string) {
	r.Helper()
	r.await("its pods succeed", func() bool {
		return !slices.ContainsFunc(r.podsOf(job), func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodSucceeded })
	})
}

// A job whose pods succeed while nobody leads has ended, whatever the next leader decides first.
func TestEndedWhileNobodyLed(t *testing.T) {
	t.Parallel()
	r := unled(t, asked{replicas: 2, run: 15 * time.Second}) // long enough for a busy machine to see it run
	r.succeed("one")
	stages := backendtest.FIFO()
	stages.Allocation.Policy = nobody{stages.Allocation.Policy}
	next := r.scheduleBy(stages, nil)
	next.hears("job_finished one")
	if job := r.becomes("one", trainingjob.Completed); job.Status.Decision.Run != 1 {
		t.Errorf("it is in run %d", job.Status.Decision.Run)
	}
	for _, e := range next.messages() {
		if e == "job_started one" {
			t.Error("it was started again")
		}
	}
}

// A job whose pods succeed while nobody leads has ended, also when its owner held it back meanwhile.
func TestEndedAndSuspendedWhileNobodyLed(t *testing.T) {
	t.Parallel()
	r := unled(t, asked{replicas: 2, run: 15 * time.Second}) // long enough for a busy machine to see it run
	r.succeed("one")
	r.edit("one", `{"spec":{"suspend":true}}`)
	next := r.schedule(nil)
	next.hears("job_finished one")
	if job := r.becomes("one", trainingjob.Completed); job.Status.Decision.Run != 1 {
		t.Errorf("it is in run %d", job.Status.Decision.Run)
	}
}

// A run that was told to stop, and ended well before anybody stopped it, is not run again by the next leader.
func TestStoppedAndEndedWhileNobodyLed(t *testing.T) {
	t.Parallel()
	r := unled(t, asked{replicas: 2, run: 15 * time.Second}) // long enough for a busy machine to see it run
	job := r.job("one")
	status := job.Status.DeepCopy()
	status.State, status.Replicas = trainingjob.Waiting, 0
	status.Decision.Stop, status.Decision.Seats = true, nil
	status.Decision.Stopped = &trainingjob.Stopped{Run: 1, Pods: len(r.podsOf("one"))}
	if _, err := r.admin.jobs.ReplaceStatus(t.Context(), job, status); err != nil { // the last thing that the leader did
		t.Fatal(err)
	}
	r.succeed("one")
	next := r.schedule(nil)
	next.hears("job_finished one")
	r.becomes("one", trainingjob.Completed)
	for _, e := range next.messages() {
		if e == "job_started one" {
			t.Error("it was started again")
		}
	}
}

// A job runs on while the device plugin of its node starts anew, also when another leads meanwhile.
func TestDevicePluginStartsAnewWhileNobodyLed(t *testing.T) {
	t.Parallel()
	r := unled(t, asked{replicas: 4})
	offers := func(count string) {
		for _, name := range []string{"a", "b"} {
			change := `{"status":{"allocatable":{"` + string(gang.DefaultResource) + `":"` + count + `"}}}`
			if _, err := r.admin.Nodes().Patch(t.Context(), r.node(name), types.MergePatchType, []byte(change), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}
	}
	offers("0")
	next := r.schedule(nil)
	next.hears("job_submitted one held")
	r.submit("waits", asked{})
	next.hears("job_submitted waits")
	r.becomes("waits", trainingjob.Waiting)
	offers("2")
	r.edit("one", `{"spec":{"suspend":true}}`)
	r.becomes("waits", trainingjob.Running)
	for _, e := range next.messages() {
		if strings.HasPrefix(e, "job_interrupted") {
			t.Errorf("got %q", e)
		}
	}
	r.edit("waits", `{"spec":{"suspend":true}}`)
	r.edit("one", `{"spec":{"suspend":false}}`)
	if job := r.becomes("one", trainingjob.Running); job.Status.Decision.Run != 2 {
		t.Errorf("it is in run %d", job.Status.Decision.Run)
	}
}
