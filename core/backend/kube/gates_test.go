//go:build linux

package kube

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Pods with scheduling gates get no devices before somebody takes the gates off, and hold up nobody.
func TestGates(t *testing.T) {
	t.Parallel()
	r := newRig(t, shared(t))
	s := r.schedule(nil)
	s.hears("node_added b")
	job := r.submitBatch("gated", batch{pods: 2, devices: 2, run: time.Second, edit: func(j *batchv1.Job) {
		j.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	}})
	mirror := r.mirrorOf(job.UID)
	r.await("its pods are there", func() bool { return len(r.podsOfBatch("gated")) == 2 })
	r.await("it is told what it waits for", func() bool {
		c := r.job(mirror).Status.Condition(trainingjob.ConditionRunning)
		return c != nil && c.Reason == gang.ReasonPodsMissing && c.Message == "0 of 2 pods are there"
	})
	r.submit("next", asked{replicas: 4, run: time.Second})
	s.hears("job_finished next")
	for i, p := range r.podsOfBatch("gated") {
		if i == 0 {
			r.patch(&p, `{"spec":{"schedulingGates":null}}`)
			r.await("one of them may go", func() bool {
				c := r.job(mirror).Status.Condition(trainingjob.ConditionRunning)
				return c != nil && c.Message == "1 of 2 pods are there"
			})
			continue
		}
		r.patch(&p, `{"spec":{"schedulingGates":null}}`)
	}
	s.hears("job_finished " + mirror)
	r.await("the Job is complete", func() bool {
		j, err := r.admin.Jobs(r.namespace).Get(t.Context(), "gated", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 2
	})
}
