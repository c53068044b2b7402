//go:build linux

package kube

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// others are what a test makes that is no TrainingJob.
type batch struct {
	pods, devices int32
	run, fail     time.Duration // 0 for endless, and for not at all
	edit          func(*batchv1.Job)
}

// podOf is a pod that names our scheduler, and asks for so many devices.
func podOf(devices int32, run, fail time.Duration) corev1.PodTemplateSpec {
	p := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SchedulerName: gang.Scheduler, RestartPolicy: corev1.RestartPolicyNever,
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
	created, err := r.admin.BatchV1().Jobs(r.namespace).Create(r.Context(), job, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return created
}

// forgiving has a Job not count what is taken away from it.
func forgiving(j *batchv1.Job) {
	j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
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
	job, err := r.admin.BatchV1().Jobs(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return job
}

// What Jobs and pods that name our scheduler go through.
func TestAdopt(t *testing.T) {
	c := shared(t)
	for name, do := range map[string]func(*rig){
		"a Job is bound as a gang, to its end": jobToItsEnd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do(newRig(t, c))
		})
	}
}

func jobToItsEnd(r *rig) {
	r.witness()
	s := r.schedule(nil)
	s.hears("node_added b")
	job := r.submitBatch("four", batch{pods: 4, run: 2 * time.Second})
	mirror := r.mirrorOf(job.UID)
	s.hears("job_started " + mirror)
	var where []string
	for _, p := range r.podsOf(mirror) {
		where = append(where, p.Annotations[batchv1.JobCompletionIndexAnnotation]+" "+p.Spec.NodeName+" "+p.Annotations[gang.DevicesAnnotation])
	}
	slices.Sort(where)
	a, b := r.node("a"), r.node("b")
	if want := []string{"0 " + a + " 0", "1 " + a + " 1", "2 " + b + " 0", "3 " + b + " 1"}; !slices.Equal(where, want) {
		r.Errorf("its pods are at %q, want %q", where, want)
	}
	s.hears("job_finished " + mirror)
	r.becomes(mirror, trainingjob.Completed)
	if done := r.batch("four"); finished(done) == nil || done.Status.Succeeded != 4 || done.Status.Failed != 0 {
		r.Errorf("the Job is %+v, want complete", done.Status)
	}
	r.quiet()
}
