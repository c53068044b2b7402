//go:build linux

package kube

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// batch is how a test wants a Job.
type batch struct {
	pods, devices int32
	run, fail     time.Duration // 0 for endless, and for not at all
	edit          func(*batchv1.Job)
}

// podOf is a pod that names our scheduler, and asks for so many devices.
func podOf(devices int32, run, fail time.Duration) corev1.PodTemplateSpec {
	p := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SchedulerName: trainingjob.SchedulerName, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{gang.DefaultResource: *resource.NewQuantity(int64(devices), resource.DecimalSI)},
		}}},
	}}
	p.Annotations = map[string]string{}
	if run > 0 {
		p.Annotations["quartet.sched/run"] = run.String()
	}
	if fail > 0 {
		p.Annotations["quartet.sched/fail"] = fail.String()
	}
	return p
}

// submitBatch creates an indexed Job.
func (r *rig) submitBatch(name string, b batch) *batchv1.Job {
	r.Helper()
	indexed, pods := batchv1.IndexedCompletion, max(b.pods, 1)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods, CompletionMode: &indexed, Template: podOf(max(b.devices, 1), b.run, b.fail),
		},
	}
	if b.edit != nil {
		b.edit(job)
	}
	created, err := r.admin.Jobs(r.namespace).Create(r.Context(), job, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return created
}

// mirrorOf waits for the TrainingJob of an object, and returns its name.
func (r *rig) mirrorOf(uid types.UID) (name string) {
	r.Helper()
	r.await("a TrainingJob mirrors it", func() bool {
		list, err := r.admin.jobs.Of(r.namespace).List(r.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		i := slices.IndexFunc(list.Items, func(t trainingjob.TrainingJob) bool { return t.Spec.Adopts != nil && t.Spec.Adopts.UID == uid })
		if i >= 0 {
			name = list.Items[i].Name
		}
		return i >= 0
	})
	return name
}

func (r *rig) batch(name string) *batchv1.Job {
	r.Helper()
	job, err := r.admin.Jobs(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return job
}

// submitPods creates pods that name our scheduler, each of one device.
func (r *rig) submitPods(run time.Duration, edit func(*corev1.Pod), names ...string) (pods []*corev1.Pod) {
	r.Helper()
	for _, name := range names {
		template := podOf(1, run, 0)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace, Annotations: template.Annotations}, Spec: template.Spec}
		if edit != nil {
			edit(pod)
		}
		created, err := r.admin.Pods(r.namespace).Create(r.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		pods = append(pods, created)
	}
	return pods
}

// podsOfBatch are the pods of a Job that have not ended.
func (r *rig) podsOfBatch(name string) []corev1.Pod {
	r.Helper()
	return slices.DeleteFunc(r.pods(), func(p corev1.Pod) bool {
		return p.Labels[batchv1.JobNameLabel] != name || p.DeletionTimestamp != nil || final(&p)
	})
}

// bound counts the pods of a Job that are on a node.
func (r *rig) bound(name string) (count int) {
	r.Helper()
	for _, p := range r.podsOfBatch(name) {
		if p.Spec.NodeName != "" {
			count++
		}
	}
	return count
}

// editBatch changes a Job.
func (r *rig) editBatch(name, change string) {
	r.Helper()
	if _, err := r.admin.Jobs(r.namespace).Patch(r.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// hearsOf waits until an Event of an object has a reason, and returns what it says.
func (r *rig) hearsOf(uid types.UID, reason string) (message string) {
	r.Helper()
	r.await("an Event "+reason, func() bool {
		list, err := r.admin.Events(r.namespace).List(r.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		i := slices.IndexFunc(list.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID == uid && e.Reason == reason })
		if i >= 0 {
			message = list.Items[i].Message
		}
		return i >= 0
	})
	return message
}
