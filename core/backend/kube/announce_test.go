//go:build linux

package kube

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// What becomes of a job is told as Events, once, and not again by the next scheduler.
func TestEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	s := r.schedule(nil)
	s.hears("node_added b")
	for _, j := range []struct { // the last keeps all devices
		name string
		asked
	}{{"ends", asked{run: 200 * time.Millisecond}}, {"fails", asked{fail: 200 * time.Millisecond}}, {"stays", asked{replicas: 4}}} {
		r.submit(j.name, j.asked)
		s.hears("job_submitted " + j.name)
	}
	r.becomes("ends", trainingjob.Completed)
	r.becomes("fails", trainingjob.Failed)
	r.becomes("stays", trainingjob.Running)
	want := map[string]string{
		"ends Completed": corev1.EventTypeNormal,
		"fails Failed":   corev1.EventTypeWarning, "stays Running": corev1.EventTypeNormal,
	}
	told := func() map[string]string {
		list, err := r.admin.Events(r.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + trainingjob.Kind})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range list.Items {
			if e.InvolvedObject.UID != r.job(e.InvolvedObject.Name).UID || e.Count > 1 || e.Source.Component != "quartet" {
				t.Errorf("event %+v", e)
			}
			if e.InvolvedObject.Name != "later" && e.Reason != "WaitingForDevices" && (e.Reason != "Running" || e.InvolvedObject.Name == "stays") { // the others may be over before it is written
				got[e.InvolvedObject.Name+" "+e.Reason] = e.Type
			}
		}
		return got
	}
	for range patience {
		if maps.Equal(told(), want) {
			break
		}
		time.Sleep(look)
	}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	if err := s.stop(); err == nil {
		t.Error("the run did not end")
	}
	next := r.schedule(nil)
	next.hears("job_started stays")
	r.submit("later", asked{replicas: 9})
	next.hears("job_submitted later")
	r.becomes("later", trainingjob.Pending)
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
