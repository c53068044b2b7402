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

// A condition is news when something about it changed: not when it comes back from the API server in another time zone.
func TestNewsOfConditions(t *testing.T) {
	at := metav1.NewTime(time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC))
	interrupted := metav1.Condition{Type: trainingjob.ConditionInterrupted, Status: metav1.ConditionTrue, Reason: "Moved", Message: "decided by x", LastTransitionTime: at}
	for name, tc := range map[string]struct {
		change func(is *metav1.Condition)
		want   bool
	}{
		"the same":              {func(*metav1.Condition) {}, false},
		"as it comes back":      {func(is *metav1.Condition) { is.LastTransitionTime = metav1.NewTime(at.In(time.FixedZone("", 3600))) }, false},
		"interrupted once more": {func(is *metav1.Condition) { is.LastTransitionTime = metav1.NewTime(at.Add(time.Second)) }, true},
		"for another reason":    {func(is *metav1.Condition) { is.Reason = "NodeDrained" }, true},
		"by somebody else":      {func(is *metav1.Condition) { is.Message = "decided by y" }, true},
		"of another, later": {func(is *metav1.Condition) {
			is.Type = trainingjob.ConditionRunning
			is.LastTransitionTime = metav1.NewTime(at.Add(time.Second))
		}, false},
		"which is over": {func(is *metav1.Condition) { is.Status = metav1.ConditionFalse }, true},
	} {
		is := interrupted
		if tc.change(&is); isNews(&interrupted, &is) != tc.want {
			t.Errorf("%s: news %v, want %v", name, !tc.want, tc.want)
		}
	}
	if !isNews(nil, &interrupted) {
		t.Error("the first one is no news")
	}
}
