package gang

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// What pods of others carry. Their owners write the first two.
const (
	GroupLabel          = "quartet.sched/group"      // pods of a namespace with the same one are a gang
	GroupSizeAnnotation = "quartet.sched/group-size" // how many they are
	AdoptedAnnotation   = "quartet.sched/adopted"    // UID of the job that gave the pod a seat
)

// Kinds of units.
const (
	JobUnit   = "Job"
	PodUnit   = "Pod"
	GroupUnit = "PodGroup" // no object: pods of the same label
)

// Unit is what is scheduled together of those pods that others made and that name our scheduler.
type Unit struct {
	Kind            string    // JobUnit, PodUnit or GroupUnit
	Namespace, Name string    // of the object, or of the label of a group
	UID             types.UID // none of a group
}

// Key is another one for each unit.
func (u Unit) Key() string { return u.Kind + "/" + u.Namespace + "/" + cmp.Or(string(u.UID), u.Name) }

// UnitOf is the unit of a pod: the batch Job that controls it, or else its group, or else itself. It is false for pods of other
// schedulers, and for those of jobs of ours.
func UnitOf(pod *corev1.Pod) (Unit, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case pod.Spec.SchedulerName != trainingjob.SchedulerName:
		return Unit{}, false
	case owner != nil && strings.HasPrefix(owner.APIVersion, "quartet.sched/"):
		return Unit{}, false
	case owner != nil && owner.Kind == JobUnit && strings.HasPrefix(owner.APIVersion, batchv1.GroupName+"/"):
		return Unit{JobUnit, pod.Namespace, owner.Name, owner.UID}, true
	case pod.Labels[GroupLabel] != "":
		return Unit{GroupUnit, pod.Namespace, pod.Labels[GroupLabel], ""}, true
	default:
		return Unit{PodUnit, pod.Namespace, pod.Name, pod.UID}, true
	}
}

// AdoptedBy is the job that gave a pod of others a seat; empty for none.
func AdoptedBy(pod *corev1.Pod) types.UID {
	if pod.Spec.SchedulerName != trainingjob.SchedulerName {
		return ""
	}
	return types.UID(pod.Annotations[AdoptedAnnotation])
}

// Adoption says that the members of a job are pods that others make. They are found instead of created, and get seats in the order
// of their indices and names. A seat is for one pod. Each pod gets its seat by a patch, and bound in the version that it has
// then: whoever decided before that it was to go elsewhere cannot bind it any more.
type Adoption struct {
	// Unit is whose pods they are.
	Unit Unit
	// Wants is how many pods the unit wants to have at present, where that may be fewer than it has seats. A run does not begin
	// without them.
	Wants int
}

// remade reports whether somebody makes another pod for one that ended, so that it gets the seat.
func (a *Adoption) remade() bool { return a != nil && a.Unit.Kind == JobUnit }

// has reports whether a pod is of a job, or may become so.
func (j *Job) has(pod *corev1.Pod) bool {
	if j.Adopts == nil {
		return isOf(pod, j.UID)
	}
	if by := AdoptedBy(pod); by != "" {
		return by == j.UID
	}
	unit, ok := UnitOf(pod)
	return ok && !bound(pod) && unit.Key() == j.Adopts.Unit.Key()
}

// Free reports whether a pod may be bound: one with gates may not, until others take them off.
func Free(pod *corev1.Pod) bool {
	return !bound(pod) && !final(pod) && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0
}

// takeIn gives seats to pods of others, and lets those go that have none.
func (p *planner) takeIn(withdrawn bool) {
	seated, free, odd := p.seatPods(withdrawn)
	want := min(len(p.job.Seats), p.job.Adopts.Wants)
	there := seated + len(free)
	enough := !withdrawn && (p.began || there >= want)
	for i := range p.job.Seats {
		if enough && p.pods[i] == nil && len(free) > 0 {
			p.step(Step{Kind: Adopt, Pod: free[0], Seat: i})
			free = free[1:]
		}
	}
	for _, pod := range append(free, odd...) {
		if AdoptedBy(pod) == p.job.UID || slices.Contains(pod.Finalizers, Finalizer) {
			p.step(Step{Kind: Release, Pod: pod})
			p.state.Leaving++
		}
	}
	if !p.began && there < want {
		p.state.Reason, p.state.Message = ReasonPodsMissing, fmt.Sprintf("%d of %d pods are there", there, want)
	}
}

// seatPods finds the pods that have their seats, and lets those go that ended or were bound without one. It returns how many have a
// seat, those that may be given one, and those that ask for another number of devices than a seat has.
func (p *planner) seatPods(withdrawn bool) (seated int, free, odd []*corev1.Pod) {
	pods := slices.DeleteFunc(slices.Clone(p.look.Pods), func(pod *corev1.Pod) bool {
		return pod.Namespace != p.job.Namespace || !p.job.has(pod)
	})
	slices.SortFunc(pods, byIndex)
	for _, pod := range pods {
		seat := -1
		if AdoptedBy(pod) == p.job.UID {
			seat = p.job.seat(pod)
		}
		p.began = p.began || seat >= 0 && bound(pod)
		switch {
		case Free(pod) && !p.fits(pod):
			odd = append(odd, pod)
		case seat >= 0 && p.pods[seat] == nil && p.keeps(seat, pod, withdrawn):
			p.pods[seat] = pod
			seated++
		case Free(pod):
			free = append(free, pod)
		default:
			p.letGo(pod)
		}
	}
	return seated, free, odd
}

// keeps reports whether a pod keeps its seat. What was begun for a decision that is withdrawn is taken back.
func (p *planner) keeps(seat int, pod *corev1.Pod, withdrawn bool) bool {
	return !p.vacates(seat, pod) && (!withdrawn || bound(pod) && p.roundOf(pod) != p.job.Round)
}

// fits reports whether a pod of others asks for as many devices as a seat has.
func (p *planner) fits(pod *corev1.Pod) bool {
	return p.o.Class != "" || Requested(pod, p.o.resource()) == p.job.perReplica()
}

// ReasonPodsMissing is that of a job that waits for others to make its pods.
const ReasonPodsMissing = "PodsMissing"

// vacates reports whether a pod leaves its seat to the one that is made for it.
func (p *planner) vacates(seat int, pod *corev1.Pod) bool {
	if !p.job.Adopts.remade() {
		return false
	}
	loss, ok := p.look.lost(p.job.Seats[seat], pod)
	return pod.Status.Phase == corev1.PodSucceeded || !ok && (loss.Reason == ReasonExited || loss.Reason == ReasonDeleted)
}

// runs reports whether a pod is on a node and nothing ended it yet.
func runs(pod *corev1.Pod) bool { return bound(pod) && !final(pod) && pod.DeletionTimestamp == nil }

// letGo lets a pod of others go that was bound, or that ended, and has no seat. Its Job is not to count that against it: it is told
// by the condition that Kubernetes has for that, and by taking off the finalizer of pods that are yet to be counted, as the Job's
// own controller does with pods that it does not want any more. Otherwise it would soon have failed too often, and wait longer
// each time before it makes another one.
func (p *planner) letGo(pod *corev1.Pod) {
	runs := runs(pod)
	freed := Freed(pod, p.look.Node)
	if !freed && bound(pod) && p.runsElse(pod) {
		p.last = pod
	}
	switch {
	case runs && p.job.Keep:
		return // its owner ended, and ends it
	case runs && condition(pod, corev1.DisruptionTarget) == nil:
		p.step(Step{Kind: Disrupt, Pod: pod})
	case runs && slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer):
		p.step(Step{Kind: Excuse, Pod: pod})
	case runs:
		p.step(Step{Kind: Delete, Pod: pod})
	case freed && !slices.Contains(pod.Finalizers, Finalizer):
		return
	case freed:
		p.step(Step{Kind: Drop, Pod: pod})
	}
	p.state.Leaving++
}

// byIndex orders pods by their completion index, where they have one, and else by name.
func byIndex(a, b *corev1.Pod) int {
	index := func(pod *corev1.Pod) int {
		if i, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
			return i
		}
		return -1
	}
	return cmp.Or(cmp.Compare(index(a), index(b)), byName(a, b))
}

// changed is a patch of what people and schedulers write about an object. A nil value takes an entry away.
type changed struct {
	UID             types.UID          `json:"uid"`
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Labels          map[string]*string `json:"labels,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
	Finalizers      []string           `json:"finalizers,omitempty"`
	Dropped         []string           `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
}

func (c changed) patch() ([]byte, error) { return json.Marshal(map[string]changed{"metadata": c}) }

// adoptPatch tells a pod that it is the member of a seat, if it is as it was seen.
func (j *Job) adoptPatch(pod *corev1.Pod, seat int) ([]byte, error) {
	labels, annotations := j.marks(seat)
	annotations[AdoptedAnnotation] = string(j.UID)
	return changed{
		UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pointers(labels), Annotations: pointers(annotations), Finalizers: []string{Finalizer},
	}.patch()
}

// releasePatch takes back what a pod was told, if it is as it was seen.
func (j *Job) releasePatch(pod *corev1.Pod) ([]byte, error) {
	c := changed{UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: map[string]*string{}, Annotations: map[string]*string{}, Dropped: []string{Finalizer}}
	for _, key := range [...]string{JobLabel, RunLabel, MemberLabel} {
		c.Labels[key] = nil
	}
	for _, key := range [...]string{NodeAnnotation, DevicesAnnotation, RanksAnnotation, RoundAnnotation, EpochAnnotation, AdoptedAnnotation} {
		c.Annotations[key] = nil
	}
	return c.patch()
}

// excusePatch has the Job of a pod not count how it ends, if it is as it was seen.
func excusePatch(pod *corev1.Pod) ([]byte, error) {
	return changed{UID: pod.UID, ResourceVersion: pod.ResourceVersion, Dropped: []string{batchv1.JobTrackingFinalizer}}.patch()
}

func pointers(of map[string]string) map[string]*string {
	to := make(map[string]*string, len(of))
	for key, value := range maps.All(of) {
		to[key] = &value
	}
	return to
}

// marks are the labels and annotations by which the member of a seat is known.
func (j *Job) marks(seat int) (labels, annotations map[string]string) {
	s := j.Seats[seat]
	first, count := j.replicas(seat)
	labels = j.Labels()
	labels[RunLabel], labels[MemberLabel] = strconv.FormatInt(j.Run, 10), strconv.Itoa(s.Member)
	return labels, map[string]string{
		NodeAnnotation: s.Node, DevicesAnnotation: trainingjob.FormatDevices(s.Devices), RanksAnnotation: ranges(first, count),
		RoundAnnotation: strconv.FormatInt(j.Round, 10), EpochAnnotation: strconv.FormatInt(j.Epoch, 10),
	}
}

// disrupted is the condition by which Kubernetes knows that a pod did not fail by itself: see podFailurePolicy of Jobs.
func (d *Driver) disrupted(pod *corev1.Pod) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": changed{UID: pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			Message: "Quartet gave its devices to others, or cannot keep its job together", LastTransitionTime: metav1.NewTime(d.Now()),
		}}},
	})
}
