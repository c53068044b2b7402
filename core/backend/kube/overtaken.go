package kube

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// past is a run that was told to stop.
type past struct {
	run   int64
	pods  int                // of its gang; 0 for no run
	ended map[types.UID]bool // those of which it was seen that they had succeeded by themselves: they may be gone before the last one has
}

// leaves notes that a decision ends the present run, if there is one, for this scheduler and for the next.
func (j *job) leaves(next *trainingjob.Decision) {
	if len(j.seats) > 0 {
		j.past = past{run: next.Run, pods: len(j.seats)}
		next.Stopped = &trainingjob.Stopped{Run: next.Run, Pods: len(j.seats)}
	}
}

// overtaken reports whether a run that was told to stop had ended well by itself: it was faster, and must not be run again. A job that
// speaks says when it is done; of one that does not, all pods have to have succeeded before they were told.
func (b *Backend) overtaken(j *job, p *past, pods []*corev1.Pod) bool {
	if spoke, done := b.door.done(keyOf(j.uid, p.run)); spoke && !done {
		return false
	}
	for _, pod := range pods {
		if pod.Labels[gang.RunLabel] == strconv.FormatInt(p.run, 10) && succeededByItself(pod) {
			if p.ended == nil {
				p.ended = make(map[types.UID]bool, p.pods)
			}
			p.ended[pod.UID] = true
		}
	}
	return p.pods > 0 && len(p.ended) == p.pods
}

// succeededByItself reports whether all containers of a pod had ended when it was deleted.
func succeededByItself(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodSucceeded {
		return false
	}
	if pod.DeletionTimestamp == nil {
		return true
	}
	deleted := pod.DeletionTimestamp.Time
	if g := pod.DeletionGracePeriodSeconds; g != nil {
		deleted = deleted.Add(-time.Duration(*g) * time.Second)
	}
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t == nil || !t.FinishedAt.Time.Before(deleted) { // in whole seconds, by two clocks
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
