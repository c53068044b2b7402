package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
)

// Look is what is seen of a job. Objects are not changed. It may be old, as that of an informer is, but no part of it may be
// missing: nodes that are not there yet are taken for gone.
type Look struct {
	Version string        // resource version of the list of pods, or of the last event on it
	Pods    []*corev1.Pod // of the namespace and the labels of the job at least; those of others are left out
	Service bool          // the headless service [Names] is there

	ClaimsVersion string                      // resource version of the list of claims, or of the last event on it
	Claims        []*resourcev1.ResourceClaim // of the job; none without claims

	Node    func(name string) *corev1.Node // nil when there is none
	Down    func(name string) bool         // whether jobs are started again elsewhere that are on it: it was silent for long; may be nil
	Devices func(node string) []Device     // for claims: what the ResourceSlices say, by index; nil without claims

	Config []resourcev1.DeviceAllocationConfiguration // what the DeviceClass gives a claim with its devices

	bound map[types.UID]time.Duration // for how long members have been seen bound
}

func (l *Look) claim(pod *corev1.Pod) *resourcev1.ResourceClaim {
	i := slices.IndexFunc(l.Claims, func(c *resourcev1.ResourceClaim) bool { return c.Name == pod.Name && c.Namespace == pod.Namespace })
	if i < 0 {
		return nil
	}
	return l.Claims[i]
}

// OutOfService reports whether somebody says of a node that it is off: nothing runs there any more.
func OutOfService(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// useless says why nothing runs on a node for certain; empty when something may.
func useless(n *corev1.Node) string {
	switch {
	case n == nil:
		return "gone"
	case OutOfService(n):
		return "out of service"
	default:
		return ""
	}
}

func final(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func bound(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// Freed reports whether a pod has no devices any more, and gets none: it ended, its node is gone or out of service, or it was
// deleted before it was bound. That the object of a pod was deleted does not mean that its processes ended.
func Freed(pod *corev1.Pod, node func(name string) *corev1.Node) bool {
	switch {
	case final(pod):
		return true
	case !bound(pod):
		return pod.DeletionTimestamp != nil
	default:
		return useless(node(pod.Spec.NodeName)) != ""
	}
}

// Loss is a member that a job had and has no more, or that never began.
type Loss struct {
	Member  int        // number of its seat
	Node    string     // on which it was
	Cause   core.Cause // of the loss
	Reason  string     // a word of Kubernetes or of ours, such as EvictionByEvictionAPI or OutOfcpu
	Message string     // one sentence for people
}

// String words the loss: which member, on which node, and why.
func (l Loss) String() string {
	return fmt.Sprintf("member %d on %s: %s: %s", l.Member, l.Node, l.Reason, l.Message)
}

// Reasons of ours.
const (
	ReasonNodeGone       = "NodeGone"
	ReasonDeleted        = "Deleted"
	ReasonGone           = "Gone"
	ReasonBoundElsewhere = "BoundElsewhere"
	ReasonDeviceGone     = "DeviceGone"
	ReasonClaim          = "ClaimOfOtherDevices"
	ReasonStartTimeout   = "StartTimeout"
	ReasonLastRun        = "LastRun" // it waits for a pod of its own of an earlier run
	ReasonExited         = "Exited"
	ReasonKubelet        = "RefusedByKubelet"
	ReasonVanished       = "ContainerStatusUnknown" // as the kubelet says
)

// causes are those of the condition DisruptionTarget.
var causes = map[string]core.Cause{
	corev1.PodReasonPreemptionByScheduler: core.CausePreempted,
	"DeletionByTaintManager":              core.CauseNodeFailed,
	"DeletionByDeviceTaintManager":        core.CauseDeviceLost,
	"DeletionByPodGC":                     core.CauseNodeFailed,
	"EvictionByEvictionAPI":               core.CauseNodeDrained,
	corev1.PodReasonTerminationByKubelet:  core.CauseKilled, // its node ran short of something, or shuts down
}

// lost says what became of the member of a seat when it is no more; ok when nothing did.
func (l *Look) lost(s Seat, pod *corev1.Pod) (loss Loss, ok bool) {
	is := func(cause core.Cause, reason, message string) (Loss, bool) {
		return Loss{Member: s.Member, Node: s.Node, Cause: cause, Reason: reason, Message: message}, false
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return Loss{}, true
	}
	if byItself(pod) {
		return is(failure(pod)) // whatever came after that
	}
	if target := condition(pod, corev1.DisruptionTarget); target != nil && target.Status == corev1.ConditionTrue &&
		(final(pod) || pod.DeletionTimestamp != nil) {
		cause, known := causes[target.Reason]
		if !known {
			cause = core.CauseKilled
		}
		return is(cause, target.Reason, target.Message)
	}
	if bound(pod) && pod.Spec.NodeName != s.Node {
		return is(core.CauseNeverBegan, ReasonBoundElsewhere, "another scheduler bound it to "+pod.Spec.NodeName)
	}
	if why := useless(l.Node(s.Node)); why != "" && !final(pod) {
		return is(core.CauseNodeFailed, ReasonNodeGone, "the node is "+why)
	}
	if pod.DeletionTimestamp != nil {
		return is(core.CauseKilled, ReasonDeleted, "the pod was deleted")
	}
	if pod.Status.Phase != corev1.PodFailed {
		return Loss{}, true
	}
	return is(failure(pod))
}

// failure is why a pod failed that nobody deleted, in a word and in a sentence.
func failure(pod *corev1.Pod) (cause core.Cause, reason, message string) {
	if exit := exitOf(pod); exit != "" && pod.Status.Reason != "Evicted" {
		if pod.Status.Reason == "NodeShutdown" || pod.Status.Reason == "Terminated" {
			return core.CauseNodeFailed, pod.Status.Reason, pod.Status.Message
		}
		return core.CauseExited, ReasonExited, exit
	}
	if cause = core.CauseKilled; vanished(pod) {
		return core.CauseNodeFailed, ReasonVanished, "its containers ended with their node, or nobody knows how"
	}
	if !began(pod) {
		cause = core.CauseNeverBegan // OutOfcpu, UnexpectedAdmissionError, NodeAffinity, …
	}
	return cause, cmp.Or(pod.Status.Reason, ReasonKubelet), pod.Status.Message
}

func condition(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// statuses are those of all containers of a pod.
func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// began reports whether a process of a pod ever ran, as far as is known.
func began(pod *corev1.Pod) bool {
	return slices.ContainsFunc(statuses(pod), func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	})
}

// exitOf says how the container that failed first ended; empty when none did.
func exitOf(pod *corev1.Pod) string {
	var first *corev1.ContainerStateTerminated
	text := ""
	for _, s := range statuses(pod) {
		t := s.State.Terminated
		if t == nil || t.ExitCode == 0 || unknown(t) || first != nil && !t.FinishedAt.Before(&first.FinishedAt) {
			continue
		}
		first = t
		text = strings.TrimSuffix(fmt.Sprintf("container %s exited with %d (%s)", s.Name, t.ExitCode, t.Reason), " ()")
	}
	return text
}

// unknown reports whether nobody saw how a container ended, as after its node was started anew: by the words of the kubelet and of
// containerd.
func unknown(t *corev1.ContainerStateTerminated) bool {
	return t.Reason == ReasonVanished || t.Reason == "Unknown" && t.ExitCode == 255
}

// vanished reports whether a container of a pod ended and nobody saw how.
func vanished(pod *corev1.Pod) bool {
	return slices.ContainsFunc(statuses(pod), func(s corev1.ContainerStatus) bool { return s.State.Terminated != nil && unknown(s.State.Terminated) })
}

// waits says what a bound pod waits for that does not run yet.
func waits(pod *corev1.Pod) (reason, message string) {
	for _, s := range statuses(pod) {
		if w := s.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
			return w.Reason, strings.TrimSuffix(fmt.Sprintf("container %s, image %s: %s", s.Name, s.Image, w.Message), ": ")
		}
	}
	return "ContainerCreating", "the kubelet has yet to start it"
}

// isOf reports whether a pod is one of a job.
func isOf(pod metav1.Object, job types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.UID == job
}
