package gang_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// A state says when the first member is late, so that it is looked at then: a moment earlier it is not, and a moment later it is.
func TestLateIn(t *testing.T) {
	r := newRig(t, 3, 4, gang.Options{})
	r.stuck = func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "node-1" }
	job := newJob("a")
	job.StartTimeout = 2 * time.Minute
	decide(job, true, seat(0, 0), seat(1, 0))
	first := r.settle(t, job)[0]
	if first.Phase != gang.Pulling || first.LateIn <= 0 || first.LateIn > job.StartTimeout+time.Second {
		t.Fatalf("it is %s, and late in %v, want in %v", first.Phase, first.LateIn, job.StartTimeout)
	}
	r.now = r.now.Add(first.LateIn - 2*time.Millisecond)
	if s := r.settle(t, job)[0]; len(s.Lost) > 0 || s.LateIn != 2*time.Millisecond {
		t.Errorf("a moment before: lost %v, late in %v", s.Lost, s.LateIn)
	}
	r.now = r.now.Add(2 * time.Millisecond)
	if s := r.settle(t, job)[0]; len(s.Lost) != 1 || s.Lost[0].Reason != gang.ReasonStartTimeout {
		t.Errorf("when it is late: lost %v", s.Lost)
	}
	job.StartTimeout = 0
	if s := r.settle(t, job)[0]; s.LateIn != 0 {
		t.Errorf("without a limit it is late in %v", s.LateIn)
	}
}
