package gang

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A run that had ended by itself when it was asked to stop is not run again, well or not; one that ended because it was asked is.
func TestPast(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	yes := true
	pod := func(run string, phase corev1.PodPhase, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Labels: map[string]string{RunLabel: run}, OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: &yes}},
		}}
		p.Spec.NodeName, p.Status.Phase = "a", phase
		for _, c := range change {
			c(p)
		}
		return p
	}
	ended := func(code int32, reason string, after ...time.Duration) func(*corev1.Pod) { // containers that ended so long after noon
		return func(p *corev1.Pod) {
			for _, at := range after {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(noon.Add(at))},
				}})
			}
		}
	}
	deleted := func(p *corev1.Pod) { // at noon
		grace := int64(30)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: noon.Add(30 * time.Second)}, &grace
	}
	evicted := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon),
		})
	}
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeName = "gone" }
	const run, done, bad = corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed
	for name, tc := range map[string]struct {
		pods       []*corev1.Pod
		unfinished bool
		want       Phase
	}{
		"all, before anybody deleted them":  {pods: []*corev1.Pod{pod("2", done), pod("2", done)}, want: Completed},
		"one of two":                        {pods: []*corev1.Pod{pod("2", done), pod("2", run)}},
		"one failed":                        {pods: []*corev1.Pod{pod("2", done), pod("2", bad, ended(1, "Error", 0))}, want: Failed},
		"one failed, the other runs":        {pods: []*corev1.Pod{pod("2", run), pod("2", bad, ended(1, "Error", 0))}, want: Failed},
		"one failed, nobody knows how":      {pods: []*corev1.Pod{pod("2", done), pod("2", bad)}},
		"one ended with its node":           {pods: []*corev1.Pod{pod("2", run), pod("2", bad, ended(255, "Unknown", 0))}},
		"one is gone":                       {pods: []*corev1.Pod{pod("2", done)}},
		"one failed, one is gone":           {pods: []*corev1.Pod{pod("2", bad, ended(1, "Error", 0))}},
		"of another run":                    {pods: []*corev1.Pod{pod("2", done), pod("3", done)}},
		"deleted afterwards":                {pods: []*corev1.Pod{pod("2", done, deleted, ended(0, "", -time.Second)), pod("2", done, deleted, ended(0, "", -time.Minute, -time.Second))}, want: Completed},
		"deleted in that second":            {pods: []*corev1.Pod{pod("2", done, deleted, ended(0, "", 0)), pod("2", done)}},
		"one container later":               {pods: []*corev1.Pod{pod("2", done, deleted, ended(0, "", -time.Second, time.Second)), pod("2", done)}},
		"deleted, nothing known":            {pods: []*corev1.Pod{pod("2", done, deleted), pod("2", done)}},
		"failed, deleted afterwards":        {pods: []*corev1.Pod{pod("2", bad, deleted, ended(1, "Error", -time.Second)), pod("2", run)}, want: Failed},
		"failed, evicted afterwards":        {pods: []*corev1.Pod{pod("2", bad, evicted, ended(1, "Error", -time.Second)), pod("2", run)}, want: Failed},
		"failed and deleted in that second": {pods: []*corev1.Pod{pod("2", bad, deleted, ended(1, "Error", 0)), pod("2", run)}},
		"ended by a signal":                 {pods: []*corev1.Pod{pod("2", bad, deleted, ended(143, "Error", -time.Second)), pod("2", run)}},
		"failed, the other is to end":       {pods: []*corev1.Pod{pod("2", bad, ended(1, "Error", -time.Second)), pod("2", run, deleted)}},
		"failed beside one that is evicted": {pods: []*corev1.Pod{pod("2", bad, ended(1, "Error", 0)), pod("2", bad, evicted)}},
		"failed beside a lost node":         {pods: []*corev1.Pod{pod("2", bad, ended(1, "Error", 0)), pod("2", run, elsewhere)}},
		"evicted":                           {pods: []*corev1.Pod{pod("2", bad, evicted, ended(1, "Error", 0)), pod("2", done)}},
		"it says that it is not done":       {pods: []*corev1.Pod{pod("2", done), pod("2", done)}, unfinished: true},
	} {
		for i, p := range tc.pods {
			p.Name, p.UID = fmt.Sprint("p", i), types.UID(fmt.Sprint(i))
		}
		job := &Job{Namespace: "team", Name: "j", UID: "u", Run: 3, Past: Past{Run: 2, Pods: 2, Unfinished: tc.unfinished}, Seats: []Seat{{Node: "b", Devices: 1}}}
		look := Look{Pods: tc.pods, Node: func(name string) *corev1.Node {
			if name == "gone" {
				return nil
			}
			return new(corev1.Node)
		}}
		plan := Next(job, look, NewBook(Options{}), Options{})
		if got := plan.State.Past.Phase; got != tc.want {
			t.Errorf("%s: ended as %q, want %q", name, got, tc.want)
		}
		for _, s := range plan.Steps {
			if began := s.Kind == CreatePod || s.Kind == Bind; began && tc.want != "" {
				t.Errorf("%s: it ended, and %s is due", name, s.Kind)
			}
			if s.Kind == Delete && s.Pod.Labels[RunLabel] == "2" && byItself(s.Pod) {
				t.Errorf("%s: pod %s ended by itself, and is to be deleted", name, s.Pod.Name)
			}
		}
		job.Past = Past{}
		if got := Next(job, look, NewBook(Options{}), Options{}).State.Past; got != (End{}) {
			t.Errorf("%s: a job that never ran has ended: %v", name, got)
		}
	}
}
