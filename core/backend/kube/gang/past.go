package gang

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quartet-sched/quartet/core"
)

// Past is a run that was asked to stop: it may have ended by itself before its pods were. Those of its pods that did stay, for
// their logs and for whoever looks later.
type Past struct {
	Run  int64 // number of the run
	Pods int   // of its gang; 0 for no run
	// Unfinished is of a run that says itself that it is not done: how its pods ended says nothing.
	Unfinished bool
}

// End is how a run ended by itself, Completed or Failed; the zero value for one that did not.
type End struct {
	Phase   Phase  // Completed or Failed
	Message string // one sentence for people
}

// end says how the past run of a job ended, if all of its pods are still there to say so. It completed if all of them had succeeded
// before they were deleted. It failed if one of them exited badly before anything befell another.
func (p *planner) end() (end End) {
	past := &p.job.Past
	if past.Pods == 0 || past.Unfinished || p.job.Adopts != nil {
		return End{}
	}
	var pods, failed []*corev1.Pod
	succeeded := 0
	for _, pod := range p.look.Pods {
		if !isOf(pod, p.job.UID) || !past.has(pod) {
			continue
		}
		switch pods = append(pods, pod); {
		case !byItself(pod):
		case pod.Status.Phase == corev1.PodSucceeded:
			succeeded++
		default:
			failed = append(failed, pod)
		}
	}
	slices.SortFunc(failed, byName)
	switch {
	case len(pods) != past.Pods:
	case succeeded == len(pods):
		return End{Completed, "all pods had succeeded when they were to stop"}
	default:
		for _, pod := range failed {
			if !slices.ContainsFunc(pods, func(other *corev1.Pod) bool { return p.befell(other, pod) }) {
				return End{Failed, "pod " + pod.Name + " had failed when it was to stop: " + exitOf(pod)}
			}
		}
	}
	return End{}
}

func (p *Past) has(pod *corev1.Pod) bool {
	return p.Pods > 0 && pod.Labels[RunLabel] == strconv.FormatInt(p.Run, 10)
}

// befell reports whether something happened to a pod that may be why another one of its gang exited.
func (p *planner) befell(other, exited *corev1.Pod) bool {
	if other == exited || byItself(other) {
		return false
	}
	_, ok := p.look.lost(Seat{Node: other.Spec.NodeName}, other)
	return !ok
}

// byItself reports whether all containers of a pod had ended before it was deleted, evicted or the like, and nothing of its node ended
// them. Those that a signal ended were not faster, whatever the clocks of two machines say.
func byItself(pod *corev1.Pod) bool {
	switch at, is := disturbed(pod); pod.Status.Phase {
	case corev1.PodSucceeded:
		return pod.DeletionTimestamp == nil || overBefore(pod, at)
	case corev1.PodFailed:
		cause, _, _ := failure(pod)
		return cause == core.CauseExited && (!is || overBefore(pod, at) && !slices.ContainsFunc(statuses(pod), signalled))
	default:
		return false
	}
}

// disturbed is when a pod was first asked to end, if it was: by its deletion, or by what comes before that.
func disturbed(pod *corev1.Pod) (at time.Time, is bool) {
	if t := pod.DeletionTimestamp; t != nil {
		at, is = t.Time, true
		if g := pod.DeletionGracePeriodSeconds; g != nil {
			at = at.Add(-time.Duration(*g) * time.Second)
		}
	}
	if c := condition(pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue && (!is || c.LastTransitionTime.Time.Before(at)) {
		at, is = c.LastTransitionTime.Time, true
	}
	return at, is
}

// signalled reports whether a container ended by SIGTERM or SIGKILL, as those do that are asked to.
func signalled(s corev1.ContainerStatus) bool {
	t := s.State.Terminated
	return t != nil && (t.ExitCode == 128+15 || t.ExitCode == 128+9)
}

// overBefore reports whether all containers of a pod had ended before a moment, in whole seconds, by two clocks.
func overBefore(pod *corev1.Pod, moment time.Time) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t == nil || !t.FinishedAt.Time.Before(moment) {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
