//go:build linux

package kube

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// A run that had ended well when it was told to stop is not run again; one that ended because it was told is.
func TestOvertaken(t *testing.T) {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	pod := func(run string, phase corev1.PodPhase, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{gang.RunLabel: run}}}
		p.Status.Phase = phase
		for _, c := range change {
			c(p)
		}
		return p
	}
	deleted := func(ended ...time.Duration) func(*corev1.Pod) { // containers that ended so long after noon, when it was deleted
		return func(p *corev1.Pod) {
			grace := int64(30)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: noon.Add(30 * time.Second)}, &grace
			for _, after := range ended {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(after))},
				}})
			}
		}
	}
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		said *members
		want bool
	}{
		"all, before anybody deleted them": {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded), pod("2", corev1.PodSucceeded)}, want: true},
		"one of two":                       {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded), pod("2", corev1.PodRunning)}},
		"one failed":                       {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded), pod("2", corev1.PodFailed)}},
		"one is gone":                      {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded)}},
		"of another run":                   {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded), pod("3", corev1.PodSucceeded)}},
		"deleted afterwards": {
			pods: []*corev1.Pod{pod("2", corev1.PodSucceeded, deleted(-time.Second)), pod("2", corev1.PodSucceeded, deleted(-time.Minute, -time.Second))}, want: true,
		},
		"deleted in that second": {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded, deleted(0)), pod("2", corev1.PodSucceeded)}},
		"one container later":    {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded, deleted(-time.Second, time.Second)), pod("2", corev1.PodSucceeded)}},
		"deleted, nothing known": {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded, deleted()), pod("2", corev1.PodSucceeded)}},
		"it spoke, and was not done": {
			pods: []*corev1.Pod{pod("2", corev1.PodSucceeded), pod("2", corev1.PodSucceeded)}, said: &members{spoke: true},
		},
		"it said that it is done": {
			pods: []*corev1.Pod{pod("2", corev1.PodSucceeded), pod("2", corev1.PodSucceeded)}, said: &members{spoke: true, done: true}, want: true,
		},
		"it said nothing": {pods: []*corev1.Pod{pod("2", corev1.PodSucceeded), pod("2", corev1.PodSucceeded)}, said: &members{}, want: true},
	} {
		b, j := &Backend{}, &job{uid: "u"}
		if tc.said != nil {
			b.door = &door{runs: map[string]*members{keyOf("u", 2): tc.said}}
		}
		for i, p := range tc.pods {
			p.UID = types.UID(strconv.Itoa(i))
		}
		if got := b.overtaken(j, &past{run: 2, pods: 2}, tc.pods); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
		one, got := past{run: 2, pods: 2}, false
		for i := range tc.pods { // each is gone before the next one ends
			got = b.overtaken(j, &one, tc.pods[i:i+1])
		}
		if got != tc.want {
			t.Errorf("%s, one after the other: %v, want %v", name, got, tc.want)
		}
		if b.overtaken(j, &past{}, nil) {
			t.Errorf("%s: a job that never ran has ended", name)
		}
	}
}
