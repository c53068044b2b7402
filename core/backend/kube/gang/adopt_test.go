package gang_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Which pods are scheduled together.
func TestUnitOf(t *testing.T) {
	yes := true
	owned := func(api, kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: api, Kind: kind, Name: "owner", UID: "o", Controller: &yes}}
		}
	}
	grouped := func(p *corev1.Pod) { p.Labels = map[string]string{gang.GroupLabel: "three"} }
	for name, tc := range map[string]struct {
		change []func(*corev1.Pod)
		want   string // its key; empty for none
	}{
		"a pod":                         {nil, "Pod/team/u"},
		"of a Job":                      {[]func(*corev1.Pod){owned("batch/v1", "Job")}, "Job/team/o"},
		"of a Job of somebody else":     {[]func(*corev1.Pod){owned("batch.volcano.sh/v1", "Job")}, "Pod/team/u"},
		"of a ReplicaSet":               {[]func(*corev1.Pod){owned("apps/v1", "ReplicaSet")}, "Pod/team/u"},
		"of a group":                    {[]func(*corev1.Pod){grouped}, "PodGroup/team/three"},
		"of a group, of a ReplicaSet":   {[]func(*corev1.Pod){grouped, owned("apps/v1", "ReplicaSet")}, "PodGroup/team/three"},
		"of a group, of a Job":          {[]func(*corev1.Pod){grouped, owned("batch/v1", "Job")}, "Job/team/o"},
		"of a TrainingJob":              {[]func(*corev1.Pod){owned("quartet.sched/v1alpha1", "TrainingJob")}, ""},
		"of another scheduler":          {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }}, ""},
		"that an owner without control": {[]func(*corev1.Pod){owned("batch/v1", "Job"), func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }}, "Pod/team/u"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team", UID: "u"}}
		pod.Spec.SchedulerName = trainingjob.SchedulerName
		for _, change := range tc.change {
			change(pod)
		}
		got := ""
		if u, ok := gang.UnitOf(pod); ok {
			got = u.Key()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Containers of a pod that run at the same time add up.
func TestRequested(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	of := func(devices int) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gang.DefaultResource: quantity(devices)}}}
	}
	sidecar := of(1)
	sidecar.RestartPolicy = &always
	for name, tc := range map[string]struct {
		before, with []corev1.Container
		want         int
	}{
		"none":                       {nil, []corev1.Container{{}}, 0},
		"two containers":             {nil, []corev1.Container{of(1), of(2)}, 3},
		"one before, smaller":        {[]corev1.Container{of(2), of(1)}, []corev1.Container{of(3)}, 3},
		"one before, larger":         {[]corev1.Container{of(4)}, []corev1.Container{of(3)}, 4},
		"a sidecar":                  {[]corev1.Container{sidecar}, []corev1.Container{of(3)}, 4},
		"one beside a sidecar":       {[]corev1.Container{sidecar, of(4)}, []corev1.Container{of(3)}, 5},
		"one before a sidecar":       {[]corev1.Container{of(4), sidecar}, []corev1.Container{of(2)}, 4},
		"sidecars alone, one larger": {[]corev1.Container{sidecar, sidecar}, []corev1.Container{{}}, 2},
	} {
		if got := gang.Requested(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.before, Containers: tc.with}}, gang.DefaultResource); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// podOf finds a pod of a job by the node it is for.
func (r *rig) of(job *gang.Job, node string) *corev1.Pod {
	for _, pod := range r.pods {
		if gang.AdoptedBy(pod) == job.UID && pod.Annotations[gang.NodeAnnotation] == node && len(pod.Finalizers) > 1 {
			return pod
		}
	}
	return nil
}

// What happens to pods of others, and what comes of it.
func TestPodsOfOthers(t *testing.T) {
	others := way{others: true}
	begun := func(t *testing.T) (*rig, *gang.Job) {
		r := newRig(t, 2, 4, gang.Options{})
		job := r.newJobs(others, "a")[0]
		decide(job, true, seat(0, 0), seat(1, 0))
		if state := r.settle(t, job)[0]; state.Phase != gang.Running {
			t.Fatalf("state %+v", state)
		}
		return r, job
	}
	t.Run("nothing begins before all are there", func(t *testing.T) {
		r := newRig(t, 2, 4, gang.Options{})
		job := r.newJobs(others, "a")[0]
		r.tick() // makes one
		decide(job, true, seat(0, 0), seat(1, 0))
		state, err := r.drive(job)
		if err != nil || state.Phase != gang.Creating || state.Reason != gang.ReasonPodsMissing || state.Message != "1 of 2 pods are there" {
			t.Errorf("state %+v, %v", state, err)
		}
		if r.client.count > 0 {
			t.Errorf("%d calls", r.client.count)
		}
		job.Adopts.Wants = 1 // its owner does not want more any more
		if state, err := r.drive(job); err != nil || state.Phase != gang.Pulling {
			t.Errorf("state %+v, %v", state, err)
		}
	})
	t.Run("one that asks for another number of devices gets no seat", func(t *testing.T) {
		r := newRig(t, 2, 4, gang.Options{})
		job := r.newJobs(others, "a")[0]
		decide(job, true, seat(0, 0), seat(1, 0))
		r.tick()
		r.tick()
		for _, pod := range r.pods {
			if *pod = *pod.DeepCopy(); pod.Name == "a-0" { // they share their containers
				pod.Spec.Containers[0].Resources.Limits[gang.DefaultResource] = resource.MustParse("2")
			}
		}
		if state, err := r.drive(job); err != nil || state.Reason != gang.ReasonPodsMissing || state.Message != "1 of 2 pods are there" || r.client.count > 0 {
			t.Errorf("state %+v, %v, %d calls, pods %q", state, err, r.client.count, r.summary())
		}
	})
	t.Run("one fails, and another takes its seat", func(t *testing.T) {
		r, job := begun(t)
		failed := r.of(job, "node-0")
		r.end(failed, 1, "")
		if state := r.settle(t, job)[0]; state.Phase != gang.Running {
			t.Errorf("state %+v", state)
		}
		if next := r.of(job, "node-0"); next == nil || next.UID == failed.UID {
			t.Errorf("pods %q", r.summary())
		}
		r.must(t)
	})
	t.Run("one is refused by a kubelet", func(t *testing.T) {
		r, job := begun(t)
		pod := r.of(job, "node-0").DeepCopy()
		pod.Status.ContainerStatuses = nil
		r.end(pod, 1, "OutOfcpu")
		if state := r.settle(t, job)[0]; state.Phase != gang.Shrunk || state.Reason != "OutOfcpu" {
			t.Errorf("state %+v", state)
		}
	})
	t.Run("a stop is excused before it is one", func(t *testing.T) {
		r, job := begun(t)
		decide(job, false)
		for _, want := range []string{"PATCH pods/status", "PATCH pods", "DELETE pods"} {
			if state, err := r.drive(job); err != nil || state.Phase != gang.Stopping {
				t.Errorf("state %+v, %v", state, err)
			}
			if r.calls[want] < 2 {
				t.Errorf("calls %v, want %s of both pods", r.calls, want)
			}
		}
		for _, pod := range r.pods {
			if pod.Spec.NodeName != "" && slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
				t.Errorf("pod %s would count as failed", pod.Name)
			}
		}
		r.settle(t, job)
		r.holds(t, job)
		for _, pod := range r.pods { // what waits for the next start says nothing of the last one
			for key := range pod.Annotations {
				if strings.HasPrefix(key, "quartet.sched/") {
					t.Errorf("pod %s has %s", pod.Name, key)
				}
			}
		}
	})
	t.Run("what an owner ended is left to it", func(t *testing.T) {
		r, job := begun(t)
		job.Keep = true
		decide(job, false)
		r.settle(t, job)
		if r.calls["DELETE pods"] > 0 {
			t.Errorf("calls %v", r.calls)
		}
	})
}
