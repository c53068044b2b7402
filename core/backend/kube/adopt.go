package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// What people write at a Job or a pod that we schedule, and what we write at the TrainingJob that mirrors it.
const (
	queueLabel          = "quartet.sched/queue"     // its tenant
	pinnedAnnotation    = "quartet.sched/pinned"    // "true": no policy takes its devices away
	mirrorLabel         = "quartet.sched/adopts"    // kind of whose pods a TrainingJob has
	succeededAnnotation = "quartet.sched/succeeded" // how many pods of a Job had succeeded when it last had no devices
)

// adoptAgain is after which it is tried again to take in what the cluster does not let us.
const adoptAgain = time.Minute

// mostRemembered is of how many units it is remembered what was told.
const mostRemembered = 10_000

// foreignTemplate keeps schedulers of versions that know nothing of adoption from making pods: they refuse it.
const foreignTemplate = "pods-of-others"

// doorstep is what is told of units that are not taken in: once, until it is something else.
type doorstep struct {
	sync.Mutex
	told   map[string]string // by unit
	closed bool              // it was logged why none is
}

// mayAdopt reports whether pods of others can be taken in. Where not, it is told once.
func (b *Backend) mayAdopt(ctx context.Context) bool {
	if b.config.DeviceClass != "" {
		b.log.Info("not scheduling pods and Jobs of others: that needs an extended resource, and device_class is set")
		return false
	}
	if _, err := b.clients.Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		b.log.Warn("not scheduling pods and Jobs of others: rights are missing; apply what `quartet kube manifests` prints", "error", err)
		return false
	}
	return true
}

// longestMirrorName leaves room for the hash.
const longestMirrorName = 45 - 6

// mirrorName is the name of the TrainingJob of a unit. It holds a hash of the UID, since another one may get the same name.
func mirrorName(a *trainingjob.Adopts) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.Kind + "/" + string(a.UID)))
	sum, hash := h.Sum64(), ""
	for range 5 {
		hash += string(letters[sum%uint64(len(letters))])
		sum /= uint64(len(letters))
	}
	plain := []byte(strings.ToLower(a.Name))
	for i, c := range plain {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			plain[i] = '-'
		}
	}
	name := strings.Trim(string(plain[:min(len(plain), longestMirrorName)]), "-")
	return strings.TrimPrefix(name+"-"+hash, "-")
}

// found is a unit as it is there.
type found struct {
	unit      gang.Unit
	adopts    trainingjob.Adopts
	labels    map[string]string
	notes     map[string]string // annotations
	owners    []metav1.OwnerReference
	replicas  int // wanted when so many had succeeded as base says
	base      int32
	suspend   bool
	pod       *corev1.PodSpec
	podLabels map[string]string
	tell      *corev1.ObjectReference // whom Events are about
}

// adopt makes the TrainingJob of a unit what it has to be.
func (b *Backend) adopt(ctx context.Context, key string) error {
	mirror := b.world.mirror(key)
	f := b.findUnit(key, mirror)
	if f == nil || mirror != nil && mirror.DeletionTimestamp != nil {
		return nil // what was made goes with it
	}
	if mirror == nil && b.stampedByOthers(key) {
		return nil // those that its pods were taken in by before are let go first
	}
	spec, why := b.mirrorSpec(f)
	if why != "" {
		b.turnAway(f, why)
		b.work.units.AddAfter(key, adoptAgain) // nodes may be others then
		return nil
	}
	if err := b.fence(); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	if mirror == nil {
		return b.create(call, f, spec)
	}
	if c := mirror.Status.Condition(trainingjob.ConditionRunning); c != nil && c.Status == metav1.ConditionFalse && mirror.Status.Replicas == 0 && !mirror.Status.State.Ended() {
		b.unscheduled(call, key, c.Reason, c.Message)
	}
	return b.correct(call, f, mirror, spec)
}

func (b *Backend) create(ctx context.Context, f *found, spec *trainingjob.Spec) error {
	mirror := &trainingjob.TrainingJob{
		TypeMeta: metav1.TypeMeta{APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: mirrorName(&f.adopts), Namespace: f.unit.Namespace, OwnerReferences: f.owners,
			Labels: map[string]string{mirrorLabel: f.unit.Kind}, Annotations: map[string]string{succeededAnnotation: strconv.Itoa(int(f.base))},
		},
		Spec: *spec,
	}
	_, err := b.clients.jobs.Of(f.unit.Namespace).Create(ctx, mirror, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err): // the informer tells
		b.doorstep.Lock()
		b.doorstep.closed = false
		b.doorstep.Unlock()
		return nil
	case apierrors.IsBadRequest(err) || apierrors.IsForbidden(err):
		b.doorstep.Lock()
		told := b.doorstep.closed
		b.doorstep.closed = true
		b.doorstep.Unlock()
		if !told {
			b.log.Warn("not scheduling pods and Jobs of others: apply what `quartet kube crd` and `quartet kube manifests` print", "error", err)
		}
		b.work.units.AddAfter(f.unit.Key(), adoptAgain)
		return nil
	default:
		return b.trouble(err)
	}
}

// correct gives a mirror back what it has to say, if somebody edited it or its owner is another.
func (b *Backend) correct(ctx context.Context, f *found, mirror *trainingjob.TrainingJob, spec *trainingjob.Spec) error {
	if mirror.Status.State.Ended() {
		return nil
	}
	if edited := fixed(spec, &mirror.Spec); len(edited) > 0 {
		b.remark(f, "NotTakenOver", fmt.Sprintf("%s cannot be changed any more: delete the TrainingJob %s, and it is made anew", strings.Join(edited, ", "), mirror.Name))
	}
	base := strconv.Itoa(int(f.base))
	if sameSpec(spec, &mirror.Spec) && mirror.Annotations[succeededAnnotation] == base {
		return nil
	}
	now := mirror.DeepCopy()
	now.Spec = *spec
	if now.Annotations = maps.Clone(now.Annotations); now.Annotations == nil {
		now.Annotations = map[string]string{}
	}
	now.Annotations[succeededAnnotation] = base
	_, err := b.clients.jobs.Of(mirror.Namespace).Update(ctx, now, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return b.trouble(err) // a conflict too: the informer is behind
}

// fixed gives what a mirror is to say those fields of before that never change, and names those that would.
func fixed(to, was *trainingjob.Spec) (edited []string) {
	if to.Pinned != was.Pinned {
		edited = append(edited, "whether it is pinned")
	}
	if !slices.Equal(to.Accelerators, was.Accelerators) {
		edited = append(edited, "the types of devices it can run on")
	}
	if max(to.Replicas.DevicesPerReplica, 1) != max(was.Replicas.DevicesPerReplica, 1) {
		edited = append(edited, "how many devices a pod asks for")
	}
	to.Queue, to.Pinned, to.Accelerators, to.Work, to.Application, to.Batch = was.Queue, was.Pinned, was.Accelerators, was.Work, was.Application, was.Batch
	to.DeadlineSeconds, to.BestEffort, to.Tier, to.Experiment = was.DeadlineSeconds, was.BestEffort, was.Tier, was.Experiment
	to.Replicas.DevicesPerReplica = was.Replicas.DevicesPerReplica
	return edited
}

func sameSpec(a, b *trainingjob.Spec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	p, _ := x.PodTemplate()
	q, _ := y.PodTemplate()
	x.Template, y.Template = runtime.RawExtension{}, runtime.RawExtension{}
	return equality.Semantic.DeepEqual(x, y) && equality.Semantic.DeepEqual(p, q)
}

// findUnit is a unit as it is to be scheduled; nil for one that is not there, or has ended.
func (b *Backend) findUnit(key string, mirror *trainingjob.TrainingJob) *found {
	kind, rest, _ := strings.Cut(key, "/")
	if kind == gang.JobUnit {
		namespace, uid, _ := strings.Cut(rest, "/")
		return findJob(b.world.batch(&gang.Unit{Kind: kind, Namespace: namespace, UID: types.UID(uid)}), mirror)
	}
	var pods []*corev1.Pod
	for _, p := range b.world.podsOfUnit(key) {
		if gang.Free(p) || mirror != nil && gang.AdoptedBy(p) == mirror.UID {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, func(x, y *corev1.Pod) int {
		if c := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(x.Name, y.Name)
	})
	return b.findPods(kind, pods, mirror)
}

// findJob is a batch Job as it is to be scheduled.
func findJob(j *batchv1.Job, mirror *trainingjob.TrainingJob) *found {
	if j == nil || j.DeletionTimestamp != nil || finished(j) != nil || j.Spec.ManagedBy != nil && *j.Spec.ManagedBy != batchv1.JobControllerName {
		return nil
	}
	yes := true
	api := batchv1.SchemeGroupVersion.String()
	f := &found{
		unit: jobUnit(j), adopts: trainingjob.Adopts{APIVersion: api, Kind: gang.JobUnit, Name: j.Name, UID: j.UID},
		labels: j.Labels, notes: j.Annotations, base: j.Status.Succeeded, pod: &j.Spec.Template.Spec, podLabels: j.Spec.Template.Labels,
		owners: []metav1.OwnerReference{{APIVersion: api, Kind: gang.JobUnit, Name: j.Name, UID: j.UID, Controller: &yes}},
		tell:   &corev1.ObjectReference{APIVersion: api, Kind: gang.JobUnit, Namespace: j.Namespace, Name: j.Name, UID: j.UID},
	}
	if f.labels[queueLabel] == "" {
		f.labels = j.Spec.Template.Labels
	}
	if mirror != nil && mirror.Status.Decision != nil && !mirror.Status.Decision.Stop { // what succeeds now leaves a seat empty
		if base, err := strconv.Atoi(mirror.Annotations[succeededAnnotation]); err == nil {
			f.base = int32(base)
		}
	}
	f.replicas = wantedPods(j, f.base)
	f.suspend = f.replicas == 0 || j.Spec.Suspend != nil && *j.Spec.Suspend
	return f
}

// findPods is a pod, or a group of them, as it is to be scheduled. The pods are in the order of their creation.
func (b *Backend) findPods(kind string, pods []*corev1.Pod, mirror *trainingjob.TrainingJob) *found {
	first := pods[0]
	unit, _ := gang.UnitOf(first)
	f := &found{
		unit: unit, labels: first.Labels, notes: first.Annotations, pod: &first.Spec, podLabels: first.Labels, replicas: 1,
		adopts: trainingjob.Adopts{APIVersion: "v1", Kind: kind, Name: unit.Name, UID: first.UID},
		tell:   &corev1.ObjectReference{APIVersion: "v1", Kind: gang.PodUnit, Namespace: first.Namespace, Name: first.Name, UID: first.UID},
	}
	for _, p := range pods {
		f.owners = append(f.owners, metav1.OwnerReference{APIVersion: "v1", Kind: gang.PodUnit, Name: p.Name, UID: p.UID})
	}
	if kind == gang.PodUnit {
		yes := true
		f.owners[0].Controller = &yes
		return f
	}
	if mirror != nil {
		f.adopts = *mirror.Spec.Adopts
	}
	size, err := strconv.Atoi(first.Annotations[gang.GroupSizeAnnotation])
	switch wrong := slices.IndexFunc(pods, func(p *corev1.Pod) bool {
		return p.Annotations[gang.GroupSizeAnnotation] != first.Annotations[gang.GroupSizeAnnotation] || b.requested(&p.Spec) != b.requested(&first.Spec)
	}); {
	case err != nil || size < 1:
		b.turnAway(f, fmt.Sprintf("a pod of the group %s has to say in its annotation %s how many pods they are", unit.Name, gang.GroupSizeAnnotation))
		return nil
	case wrong >= 0:
		b.turnAway(f, fmt.Sprintf("pod %s of the group %s has to ask for as many devices as the others, and to say the same %s", pods[wrong].Name, unit.Name, gang.GroupSizeAnnotation))
		return nil
	case len(pods) < size && mirror == nil:
		b.turnAway(f, fmt.Sprintf("%d of %d pods of the group %s are there", len(pods), size, unit.Name))
		return nil
	}
	f.replicas = size
	return f
}

func (b *Backend) requested(s *corev1.PodSpec) int {
	return gang.Requested(&corev1.Pod{Spec: *s}, corev1.ResourceName(b.config.Resource))
}

// stampedByOthers reports whether pods of a unit still have seats of a TrainingJob that is gone.
func (b *Backend) stampedByOthers(key string) bool {
	return slices.ContainsFunc(b.world.podsOfUnit(key), func(p *corev1.Pod) bool {
		return gang.AdoptedBy(p) != "" && slices.Contains(p.Finalizers, gang.Finalizer)
	})
}

// mirrorSpec is what the TrainingJob of a unit says, or why it cannot be scheduled.
func (b *Backend) mirrorSpec(f *found) (spec *trainingjob.Spec, why string) {
	devices := b.requested(f.pod)
	switch {
	case devices == 0:
		return nil, fmt.Sprintf("its pods ask for no %s: Quartet schedules pods with devices only; leave schedulerName out", b.config.Resource)
	case f.unit.Kind == gang.JobUnit && f.pod.NodeName != "":
		return nil, "its template names the node " + f.pod.NodeName + " (nodeName), so that no scheduler places its pods: use a nodeSelector"
	case devices > core.MaxDevicesPerNode:
		return nil, fmt.Sprintf("a pod can have %d devices at most, and asks for %d", core.MaxDevicesPerNode, devices)
	}
	reduced := templateOf(f.podLabels, f.pod, corev1.ResourceName(b.config.Resource))
	if _, _, err := b.asksOf(f.unit.Namespace, reduced); err != nil {
		return nil, err.Error()
	}
	template, err := json.Marshal(reduced)
	if err != nil {
		return nil, err.Error()
	}
	text, given := f.notes[pinnedAnnotation]
	pinned, err := strconv.ParseBool(text)
	if given && err != nil {
		b.remark(f, "NotPinned", fmt.Sprintf("the annotation %s is %q, and only \"true\" keeps policies from taking its devices", pinnedAnnotation, text))
	}
	replicas := max(f.replicas, 1)
	return &trainingjob.Spec{
		Queue: f.labels[queueLabel], Suspend: f.suspend, Pinned: pinned, Requested: replicas, Accelerators: b.accelerators(f.pod), Adopts: &f.adopts,
		Replicas: trainingjob.Replicas{Min: replicas, Max: replicas, DevicesPerReplica: devices}, Template: runtime.RawExtension{Raw: template},
	}, ""
}

// accelerators are the types of devices that pods can run on, by the label of nodes that names them.
func (b *Backend) accelerators(s *corev1.PodSpec) (types []string) {
	for _, key := range [...]string{b.config.Accelerator, acceleratorLabel} {
		if value, selects := s.NodeSelector[key]; selects {
			types = []string{value}
		}
	}
	return types
}

// templateOf is what the scheduler has to know of pods that others make: what they ask of nodes, but for devices.
func templateOf(labels map[string]string, s *corev1.PodSpec, devices corev1.ResourceName) *corev1.PodTemplateSpec {
	short := func(list []corev1.Container) (to []corev1.Container) {
		for i := range list {
			c := corev1.Container{Name: list[i].Name, RestartPolicy: list[i].RestartPolicy, Resources: *list[i].Resources.DeepCopy(), Ports: list[i].Ports}
			delete(c.Resources.Limits, devices)
			delete(c.Resources.Requests, devices)
			to = append(to, c)
		}
		return to
	}
	var volumes []corev1.Volume
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			volumes = append(volumes, *v)
		}
	}
	return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: theirs(labels)}, Spec: corev1.PodSpec{
		SchedulerName: foreignTemplate, Containers: short(s.Containers), InitContainers: short(s.InitContainers), Volumes: volumes,
		NodeSelector: s.NodeSelector, Affinity: s.Affinity, Tolerations: s.Tolerations, TopologySpreadConstraints: s.TopologySpreadConstraints,
		HostNetwork: s.HostNetwork, PriorityClassName: s.PriorityClassName, PreemptionPolicy: s.PreemptionPolicy, Overhead: s.Overhead,
		RuntimeClassName: s.RuntimeClassName, ResourceClaims: s.ResourceClaims, Resources: s.Resources,
	}}
}

// theirs are labels but for those that say which seat of which job a pod has.
func theirs(of map[string]string) (labels map[string]string) {
	labels = maps.Clone(of)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return key == gang.JobLabel || key == gang.RunLabel || key == gang.MemberLabel || key == gang.NamesLabel
	})
	return labels
}

// turnAway says why a unit is not scheduled, once.
func (b *Backend) turnAway(f *found, why string) {
	b.remark(f, "NotScheduled", why)
	b.unscheduled(b.life, f.unit.Key(), "NotScheduled", why)
}

// unscheduled says at the pods of a unit why they wait, by the condition that Kubernetes has for that: once for each reason, since the
// rest of a message changes often.
func (b *Backend) unscheduled(ctx context.Context, key, reason, message string) {
	for _, p := range b.world.podsOfUnit(key) {
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		if !gang.Free(p) || i >= 0 && (p.Status.Conditions[i].Message == reason || strings.HasPrefix(p.Status.Conditions[i].Message, reason+": ")) {
			continue
		}
		if b.fence() != nil {
			return
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: strings.TrimSuffix(reason+": "+message, ": "), LastTransitionTime: metav1.NewTime(b.clock.Now()),
		}}}})
		if err == nil {
			_, err = b.clients.Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil && !apierrors.IsNotFound(err) {
			b.log.Debug("cannot say at a pod why it waits", "pod", p.Namespace+"/"+p.Name, "error", err)
		}
	}
}

// remark tells of a unit what somebody is to mend, once.
func (b *Backend) remark(f *found, reason, why string) {
	key := f.unit.Key()
	b.doorstep.Lock()
	told := b.doorstep.told[key] == why
	if b.doorstep.told == nil || len(b.doorstep.told) > mostRemembered {
		b.doorstep.told = map[string]string{}
	}
	b.doorstep.told[key] = why
	b.doorstep.Unlock()
	if !told && b.announcer != nil {
		b.announcer.recorder.record(f.tell, corev1.EventTypeWarning, reason, why)
	}
}

// adoptedFrom is whose pods a TrainingJob has, for Events; nil for one with pods of its own.
func adoptedFrom(t *trainingjob.TrainingJob) *corev1.ObjectReference {
	a := t.Spec.Adopts
	if a == nil {
		return nil
	}
	if a.Kind != gang.GroupUnit {
		return &corev1.ObjectReference{APIVersion: a.APIVersion, Kind: a.Kind, Namespace: t.Namespace, Name: a.Name, UID: a.UID}
	}
	for _, o := range t.OwnerReferences {
		if o.UID == a.UID {
			return &corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: t.Namespace, Name: o.Name, UID: o.UID}
		}
	}
	return nil
}
