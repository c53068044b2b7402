//go:build linux

package kube

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/core/coretest"
)

// What Jobs and pods that name our scheduler go through.
func TestAdopt(t *testing.T) {
	c := shared(t)
	for name, do := range map[string]func(*rig){
		"a Job is bound as a gang, to its end":             jobToItsEnd,
		"two Jobs that do not fit together":                twoJobs,
		"a policy takes devices away from a Job":           preemptedJob,
		"another leads":                                    adoptedByAnother,
		"a Job is deleted while it runs":                   deletedJob,
		"a Job of no pods, then of two":                    noPods,
		"a Job is suspended and resumed":                   suspendedJob,
		"a Job fails by its limit":                         failingJob,
		"a pod of a Job fails, and is made again":          failedPod,
		"a Job of more completions than pods":              manyCompletions,
		"a Job gets more pods, and fewer":                  otherParallelism,
		"a pod of a Job is evicted":                        evictedPod,
		"a Job leaves its pods behind":                     orphans,
		"the page's example":                               pageExample,
		"a node of a Job is deleted":                       nodeOfJob,
		"a pod":                                            lonePod,
		"a pod is taken off its node":                      lonePodDrained,
		"a group of pods":                                  groupOfPods,
		"pods that are left alone":                         leftAlone,
		"a TrainingJob of others is edited and is deleted": meddledMirror,
		"somebody writes a TrainingJob like ours":          forgedMirror,
		"devices that cannot be split":                     unsplittable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c)
			r.witness()
			do(r)
		})
	}
}

// begin runs a scheduler that knows both nodes.
func begin(r *rig) *scheduler {
	r.Helper()
	s := r.schedule(nil)
	s.hears("node_added b")
	return s
}

// wantStory is wantNews, but for whether the scheduler saw a job before all of its pods.
func wantStory(s *scheduler, want ...string) {
	s.rig.Helper()
	got := slices.DeleteFunc(s.news(), func(e string) bool { return strings.HasPrefix(e, "job_changed ") })
	if !slices.Equal(got, want) {
		s.rig.Errorf("got %q, want %q", got, want)
	}
}

func jobToItsEnd(r *rig) {
	s := begin(r)
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
	r.hearsOf(job.UID, "Running")
	wantStory(s, "job_submitted "+mirror, "job_finished "+mirror)
	r.quiet()
}

func twoJobs(r *rig) {
	s := begin(r)
	first := r.mirrorOf(r.submitBatch("first", batch{pods: 3}).UID)
	s.hears("job_started " + first)
	job := r.submitBatch("second", batch{pods: 2, run: time.Second})
	second := r.mirrorOf(job.UID)
	waits := r.becomes(second, trainingjob.Waiting)
	r.condition(waits, trainingjob.ConditionRunning, metav1.ConditionFalse, "WaitingForDevices")
	if count := r.bound("second"); count > 0 || r.bound("first") != 3 {
		r.Errorf("%d pods of the second Job are bound, and %d of the first", count, r.bound("first"))
	}
	r.hearsOf(job.UID, "WaitingForDevices")
	if err := r.admin.Jobs(r.namespace).Delete(r.Context(), "first", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_finished " + second)
}

var background = metav1.DeletePropagationBackground

func preemptedJob(r *rig) {
	const quantum = 40 // device-seconds, after which others go first: more than the short one gets
	log := slog.New(slog.DiscardHandler)
	stages := composed("las", log)
	stages.Allocation.Policy = coretest.Component(allocation.NewLAS(), map[string]any{"quantum_seconds": float64(quantum)}, log)
	s := r.scheduleBy(stages, nil)
	s.hears("node_added b")
	long := r.submitBatch("long", batch{pods: 4})
	mirror := r.mirrorOf(long.UID)
	s.hears("job_started " + mirror)
	began := r.job(mirror).Status.Decision.AtSeconds
	r.await("it has had its share", func() bool { return 4*(s.backend.Present()-began) > quantum+1 })
	before := r.podsOfBatch("long")
	short := r.mirrorOf(r.submitBatch("short", batch{pods: 4, run: time.Second}).UID)
	s.hears("job_finished " + short)
	r.await("the long one runs again", func() bool {
		j := r.job(mirror)
		return j.Status.State == trainingjob.Running && j.Status.Decision.Run == 2
	})
	if p := r.job(mirror).Status.Progress; p.Preemptions != 1 || p.Restarts != 1 {
		r.Errorf("its account is %+v, want one preemption", p)
	}
	for _, p := range r.podsOfBatch("long") {
		if slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == p.UID }) {
			r.Errorf("pod %s was there before", p.Name)
		}
	}
	if status := r.batch("long").Status; status.Failed > 0 {
		r.Errorf("the Job counts %d failures", status.Failed)
	}
}

func adoptedByAnother(r *rig) {
	l := &line{cut: make(chan struct{})}
	first := r.schedule(l.through)
	runs := r.submitBatch("runs", batch{pods: 2})
	mirror := r.mirrorOf(runs.UID)
	first.hears("job_started " + mirror)
	before := r.podsOfBatch("runs")
	ends := r.submitBatch("ends", batch{pods: 1})
	first.hears("job_started " + r.mirrorOf(ends.UID))
	l.sever()
	_ = first.stop()
	for _, p := range r.podsOfBatch("ends") {
		r.patch(&p, `{"status":{"phase":"Succeeded"}}`, "status")
	}
	late := r.submitBatch("late", batch{pods: 2, run: time.Second})
	r.bury()
	second := r.schedule(nil)
	second.hears("job_submitted " + mirror + " held")
	second.hears("job_finished " + r.mirrorOf(ends.UID))
	second.hears("job_finished " + r.mirrorOf(late.UID))
	for _, p := range r.podsOfBatch("runs") {
		if !slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == p.UID }) {
			r.Errorf("pod %s was not there before", p.Name)
		}
	}
	if j := r.job(mirror); j.Status.Decision.Run != 1 {
		r.Errorf("it is in run %d", j.Status.Decision.Run)
	}
}

func deletedJob(r *rig) {
	s := begin(r)
	mirror := r.mirrorOf(r.submitBatch("all", batch{pods: 4}).UID)
	s.hears("job_started " + mirror)
	if err := r.admin.Jobs(r.namespace).Delete(r.Context(), "all", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_cancelled " + mirror)
	next := r.mirrorOf(r.submitBatch("all", batch{pods: 4, run: time.Second}).UID)
	s.hears("job_finished " + next)
	r.quiet()
}

func noPods(r *rig) {
	s := begin(r)
	none := int32(0)
	mirror := r.mirrorOf(r.submitBatch("none", batch{pods: 2, run: time.Second, edit: func(j *batchv1.Job) { j.Spec.Parallelism = &none }}).UID)
	s.hears("job_submitted " + mirror)
	r.becomes(mirror, trainingjob.Suspended)
	r.editBatch("none", `{"spec":{"parallelism":2}}`)
	s.hears("job_finished " + mirror)
}

func suspendedJob(r *rig) {
	s := begin(r)
	yes := true
	mirror := r.mirrorOf(r.submitBatch("held", batch{pods: 2, edit: func(j *batchv1.Job) { j.Spec.Suspend = &yes }}).UID)
	r.becomes(mirror, trainingjob.Suspended)
	r.editBatch("held", `{"spec":{"suspend":false}}`)
	s.hears("job_started " + mirror)
	r.editBatch("held", `{"spec":{"suspend":true}}`)
	r.becomes(mirror, trainingjob.Suspended)
	r.quiet()
	r.editBatch("held", `{"spec":{"suspend":false}}`)
	r.await("it runs again", func() bool {
		j := r.job(mirror)
		return j.Status.State == trainingjob.Running && j.Status.Decision.Run == 2
	})
	if status := r.batch("held").Status; status.Failed > 0 {
		r.Errorf("the Job counts %d failures", status.Failed)
	}
}

func failingJob(r *rig) {
	s := begin(r)
	none := int32(0)
	mirror := r.mirrorOf(r.submitBatch("bad", batch{pods: 2, fail: time.Second, edit: func(j *batchv1.Job) { j.Spec.BackoffLimit = &none }}).UID)
	s.hears("job_failed " + mirror + " exited")
	failed := r.becomes(mirror, trainingjob.Failed)
	if c := failed.Status.Condition(trainingjob.ConditionFinished); c == nil || !strings.Contains(c.Message, "BackoffLimitExceeded") {
		r.Errorf("it is told as %+v", c)
	}
	r.quiet()
}

func failedPod(r *rig) {
	s := begin(r)
	mirror := r.mirrorOf(r.submitBatch("two", batch{pods: 2}).UID)
	s.hears("job_started " + mirror)
	before := r.podsOfBatch("two")
	r.patch(&before[0], `{"status":{"phase":"Failed","containerStatuses":[{"name":"main","image":"none","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}`, "status")
	r.await("another pod has the seat of the one that failed", func() bool {
		return slices.ContainsFunc(r.podsOfBatch("two"), func(p corev1.Pod) bool {
			return p.UID != before[0].UID && p.Spec.NodeName == before[0].Spec.NodeName && p.Status.Phase == corev1.PodRunning &&
				p.Annotations[gang.DevicesAnnotation] == before[0].Annotations[gang.DevicesAnnotation]
		})
	})
	if j := r.job(mirror); j.Status.State != trainingjob.Running || j.Status.Decision.Run != 1 {
		r.Errorf("it is %s in run %d, want to run on", j.Status.State, j.Status.Decision.Run)
	}
	wantStory(s, "job_submitted "+mirror)
}

func manyCompletions(r *rig) {
	s := begin(r)
	five := int32(5)
	mirror := r.mirrorOf(r.submitBatch("five", batch{pods: 2, run: time.Second, edit: func(j *batchv1.Job) { j.Spec.Completions = &five }}).UID)
	s.hears("job_finished " + mirror)
	if j := r.becomes(mirror, trainingjob.Completed); j.Status.Decision.Run != 1 || r.batch("five").Status.Succeeded != 5 {
		r.Errorf("it completed in run %d, and %d succeeded", j.Status.Decision.Run, r.batch("five").Status.Succeeded)
	}
}

func otherParallelism(r *rig) {
	s := begin(r)
	mirror := r.mirrorOf(r.submitBatch("two", batch{pods: 2, edit: func(j *batchv1.Job) {
		indexless := batchv1.NonIndexedCompletion
		ten := int32(10)
		j.Spec.CompletionMode, j.Spec.Completions = &indexless, &ten
	}}).UID)
	s.hears("job_started " + mirror)
	before := r.podsOfBatch("two")
	r.editBatch("two", `{"spec":{"parallelism":4}}`)
	r.await("four run", func() bool { return r.bound("two") == 4 })
	for _, b := range before {
		if !slices.ContainsFunc(r.podsOfBatch("two"), func(p corev1.Pod) bool { return p.UID == b.UID }) {
			r.Errorf("pod %s did not stay", b.Name)
		}
	}
	r.editBatch("two", `{"spec":{"parallelism":1}}`)
	r.await("one runs", func() bool {
		j := r.job(mirror)
		return len(r.podsOfBatch("two")) == 1 && r.bound("two") == 1 && j.Status.Replicas == 1 && j.Status.State == trainingjob.Running
	})
	if j := r.job(mirror); j.Status.Decision.Run != 1 || r.batch("two").Status.Failed > 0 {
		r.Errorf("it is in run %d, and counts %d failures", j.Status.Decision.Run, r.batch("two").Status.Failed)
	}
}

func nodeOfJob(r *rig) {
	s := begin(r)
	r.addNode("c", 2)
	s.hears("node_added c")
	mirror := r.mirrorOf(r.submitBatch("two", batch{pods: 4}).UID)
	s.hears("job_started " + mirror)
	if err := r.admin.Nodes().Delete(r.Context(), r.node("a"), metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_interrupted " + mirror + " node_failed")
	r.await("it runs elsewhere", func() bool {
		j := r.job(mirror)
		return j.Status.State == trainingjob.Running && j.Status.Decision.Run == 2 && r.bound("two") == 4
	})
}

func evictedPod(r *rig) {
	s := begin(r)
	none := int32(0)
	mirror := r.mirrorOf(r.submitBatch("two", batch{pods: 2, edit: func(j *batchv1.Job) { j.Spec.BackoffLimit = &none }}).UID)
	s.hears("job_started " + mirror)
	uncounted := r.podsOfBatch("two")[0]
	// Its Job would count that, and fail: an eviction is for the owner to allow.
	r.patch(&uncounted, `{"metadata":{"finalizers":["`+gang.Finalizer+`"]}}`)
	r.evict(uncounted.Name)
	s.hears("job_interrupted " + mirror + " evicted")
	r.await("it runs again", func() bool {
		j := r.job(mirror)
		return j.Status.State == trainingjob.Running && j.Status.Decision.Run == 2 && r.bound("two") == 2
	})
}

func orphans(r *rig) {
	s := begin(r)
	mirror := r.mirrorOf(r.submitBatch("two", batch{pods: 2}).UID)
	s.hears("job_started " + mirror)
	orphan := metav1.DeletePropagationOrphan
	pods := r.podsOfBatch("two")
	if err := r.admin.Jobs(r.namespace).Delete(r.Context(), "two", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		r.Fatal(err)
	}
	r.await("the Job is gone", func() bool {
		_, err := r.admin.Jobs(r.namespace).Get(r.Context(), "two", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	for _, p := range pods {
		r.patch(&p, `{"status":{"phase":"Succeeded"}}`, "status")
	}
	s.hears("job_finished " + mirror)
	r.becomes(mirror, trainingjob.Completed)
	r.quiet()
}

// pageExample applies the example of docs/kubernetes.md as it stands there.
func pageExample(r *rig) {
	page, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil {
		r.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "\n## Jobs and pods that others make\n")
	_, example, _ = strings.Cut(example, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	job := new(batchv1.Job)
	if err := yaml.UnmarshalStrict([]byte(example), job); err != nil {
		r.Fatal(err)
	}
	s := begin(r)
	created, err := r.admin.Jobs(r.namespace).Create(r.Context(), job, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		r.Fatal(err)
	}
	mirror := r.mirrorOf(created.UID)
	s.hears("job_started " + mirror)
	if j := r.job(mirror); j.Tenant() != "vision" || r.bound(created.Name) != 4 {
		r.Errorf("its tenant is %s, and %d pods are bound", j.Tenant(), r.bound(created.Name))
	}
}

func lonePod(r *rig) {
	s := begin(r)
	pod := r.submitPods(time.Second, nil, "alone")[0]
	mirror := r.mirrorOf(pod.UID)
	s.hears("job_finished " + mirror)
	r.becomes(mirror, trainingjob.Completed)
	r.quiet()
	if err := r.admin.Pods(r.namespace).Delete(r.Context(), "alone", metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	r.await("what mirrored it goes with it", func() bool {
		_, err := r.admin.jobs.Of(r.namespace).Get(r.Context(), mirror, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func lonePodDrained(r *rig) {
	s := begin(r)
	pod := r.submitPods(0, nil, "alone")[0]
	mirror := r.mirrorOf(pod.UID)
	s.hears("job_started " + mirror)
	r.patchNode("a", `{"spec":{"unschedulable":true},"metadata":{"annotations":{"quartet.sched/drain":"true"}}}`)
	r.await("its pod is gone", func() bool { return len(r.pods()) == 0 })
	r.hearsOf(pod.UID, "Stopped")
	s.hears("job_cancelled " + mirror)
}

func groupOfPods(r *rig) {
	s := begin(r)
	group := func(p *corev1.Pod) {
		p.Labels = map[string]string{gang.GroupLabel: "three"}
		p.Annotations[gang.GroupSizeAnnotation] = "3"
	}
	pods := r.submitPods(2*time.Second, group, "x", "y")
	if said := r.hearsOf(pods[0].UID, "NotScheduled"); !strings.Contains(said, "of 3 pods of the group three are there") {
		r.Errorf("got %q", said)
	}
	for _, p := range r.pods() {
		if p.Spec.NodeName != "" {
			r.Errorf("pod %s is bound, and one is missing", p.Name)
		}
	}
	r.submitPods(2*time.Second, group, "z")
	mirror := r.mirrorOf(pods[0].UID)
	s.hears("job_started " + mirror)
	s.hears("job_finished " + mirror)
	r.quiet()
}

func leftAlone(r *rig) {
	s := begin(r)
	elsewhere := r.submitPods(0, func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }, "elsewhere")[0]
	bare := r.submitPods(0, func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, "bare")[0]
	if said := r.hearsOf(bare.UID, "NotScheduled"); !strings.Contains(said, "leave schedulerName out") {
		r.Errorf("got %q", said)
	}
	picky := r.submitPods(0, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "x"} }, "picky")[0]
	if said := r.hearsOf(picky.UID, noNodeFits); !strings.Contains(said, "nodeSelector") {
		r.Errorf("got %q", said)
	}
	r.submitPods(0, func(p *corev1.Pod) { p.Spec.SchedulerName, p.Spec.NodeName = "another", r.node("b") }, "foreign")
	s.hears("node_changed b ready 1")
	three := r.mirrorOf(r.submitBatch("three", batch{pods: 3}).UID)
	s.hears("job_started " + three)
	four := r.mirrorOf(r.submitBatch("more", batch{pods: 1}).UID)
	r.becomes(four, trainingjob.Waiting)
	for _, p := range r.pods() {
		if (p.UID == elsewhere.UID || p.UID == bare.UID || p.UID == picky.UID) && (p.Spec.NodeName != "" || len(p.Finalizers) > 0) {
			r.Errorf("pod %s was touched: %+v", p.Name, p.ObjectMeta)
		}
	}
	for _, event := range s.messages() {
		if strings.HasPrefix(event, "node_changed a") { // what adopted pods hold is no use by others
			r.Errorf("got %q", event)
		}
	}
}

func meddledMirror(r *rig) {
	s := begin(r)
	job := r.submitBatch("two", batch{pods: 2})
	mirror := r.mirrorOf(job.UID)
	s.hears("job_started " + mirror)
	r.edit(mirror, `{"spec":{"suspend":true,"requested":1,"replicas":{"min":1,"max":1}}}`)
	r.await("it is as it was", func() bool {
		j := r.job(mirror)
		return !j.Spec.Suspend && j.Spec.Requested == 2 && j.Status.State == trainingjob.Running && r.bound("two") == 2
	})
	was := r.job(mirror).UID
	if err := r.admin.jobs.Of(r.namespace).Delete(r.Context(), mirror, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_cancelled " + mirror)
	r.await("it is made again, and runs", func() bool {
		j, err := r.admin.jobs.Of(r.namespace).Get(r.Context(), mirror, metav1.GetOptions{})
		return err == nil && j.UID != was && j.Status.State == trainingjob.Running && r.bound("two") == 2
	})
}

func forgedMirror(r *rig) {
	s := begin(r)
	victim := r.submitBatch("victim", batch{pods: 2})
	mirror := r.mirrorOf(victim.UID)
	s.hears("job_started " + mirror)
	r.submit("forged", asked{replicas: 2, edit: func(j *trainingjob.TrainingJob) { j.Spec.Adopts = r.job(mirror).Spec.Adopts }})
	r.becomes("forged", trainingjob.Rejected)
	if j := r.job(mirror); j.Status.State != trainingjob.Running || r.bound("victim") != 2 {
		r.Errorf("the Job is %s", j.Status.State)
	}
}

func unsplittable(r *rig) {
	s := begin(r)
	s.hears("node_added b")
	one := r.mirrorOf(r.submitBatch("one", batch{pods: 1}).UID)
	s.hears("job_started " + one)
	job := r.submitBatch("wide", batch{pods: 1, devices: 2, run: time.Second}) // first come, first served gives it one on each node
	mirror := r.mirrorOf(job.UID)
	s.hears("job_interrupted " + mirror + " refused")
	if said := r.hearsOf(job.UID, "DevicesSplit"); !strings.Contains(said, "2 devices each") {
		r.Errorf("got %q", said)
	}
	if r.bound("wide") > 0 {
		r.Error("it is bound")
	}
	if err := r.admin.Jobs(r.namespace).Delete(r.Context(), "one", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_finished " + mirror)
	wider := r.submitBatch("wider", batch{pods: 1, devices: 3})
	s.hears("job_interrupted " + r.mirrorOf(wider.UID) + " refused")
	if said := r.hearsOf(wider.UID, "DevicesSplit"); !strings.Contains(said, "no node has more than 2") {
		r.Errorf("got %q", said)
	}
}
