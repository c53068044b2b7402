package gang

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is told of a pod is how the container that failed first ended.
func TestExitOf(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ended := func(name string, code int32, after time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(noon.Add(after))},
		}}
	}
	for name, tc := range map[string]struct {
		statuses []corev1.ContainerStatus
		want     string
	}{
		"none":                   {want: ""},
		"one still runs":         {[]corev1.ContainerStatus{{Name: "a"}, ended("b", 2, 0)}, "container b exited with 2 (Error)"},
		"one succeeded":          {[]corev1.ContainerStatus{ended("a", 0, 0)}, ""},
		"one before succeeded":   {[]corev1.ContainerStatus{ended("a", 0, 0), ended("b", 2, time.Second)}, "container b exited with 2 (Error)"},
		"one after it succeeded": {[]corev1.ContainerStatus{ended("a", 3, 0), ended("b", 0, -time.Second)}, "container a exited with 3 (Error)"},
		"the later one first":    {[]corev1.ContainerStatus{ended("a", 3, time.Second), ended("b", 2, 0)}, "container b exited with 2 (Error)"},
		"the later one last":     {[]corev1.ContainerStatus{ended("a", 3, 0), ended("b", 2, time.Second)}, "container a exited with 3 (Error)"},
		"at the same time":       {[]corev1.ContainerStatus{ended("a", 3, 0), ended("b", 2, 0)}, "container a exited with 3 (Error)"},
	} {
		if got := exitOf(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: tc.statuses}}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A claim has the devices of a decision when it has all of them and no other.
func TestAllocated(t *testing.T) {
	device := func(name string) Device { return Device{Driver: "d", Pool: "p", Name: name} }
	claim := &resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}}
	for _, name := range []string{"0", "1"} {
		results := &claim.Status.Allocation.Devices.Results
		*results = append(*results, resourcev1.DeviceRequestAllocationResult{Driver: "d", Pool: "p", Device: name})
	}
	for name, tc := range map[string]struct {
		devices []Device
		want    bool
	}{
		"the same":           {[]Device{device("0"), device("1")}, true},
		"in another order":   {[]Device{device("1"), device("0")}, true},
		"fewer":              {[]Device{device("0")}, false},
		"more":               {[]Device{device("0"), device("1"), device("2")}, false},
		"as many, one other": {[]Device{device("0"), device("2")}, false},
		"as many, others":    {[]Device{device("2"), device("3")}, false},
	} {
		if got := allocated(claim, tc.devices); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A pod that is to be disrupted is lost when it is deleted or over, and not before.
func TestMarkedForDisruption(t *testing.T) {
	look := &Look{Node: func(string) *corev1.Node { return &corev1.Node{} }}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   bool // it is lost
	}{
		"it runs":    {func(*corev1.Pod) {}, false},
		"is deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Time) }, true},
		"has failed": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}},
		}}
		tc.change(pod)
		if loss, ok := look.lost(Seat{Node: "n"}, pod); ok == tc.want || tc.want && loss.Reason != "EvictionByEvictionAPI" {
			t.Errorf("%s: %+v, lost %v, want %v", name, loss, !ok, tc.want)
		}
	}
}

// A name is left as it is up to the very length that it may have.
func TestFit(t *testing.T) {
	if name := strings.Repeat("x", 20); fit(name, 20) != name || fit(name+"x", 20) == name || len(fit(name+"x", 20)) > 20 {
		t.Errorf("%q and %q", fit(name, 20), fit(name+"x", 20))
	}
}
