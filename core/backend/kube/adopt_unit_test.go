package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// A mirror of whatever has a name that its job may have, which follows from its owner, and is another one for each.
func TestMirrorName(t *testing.T) {
	names := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?`)
	uids := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`)
	rapid.Check(t, func(p *rapid.T) {
		a := trainingjob.Adopts{Kind: gang.JobUnit, Name: names.Draw(p, "name"), UID: types.UID(uids.Draw(p, "uid"))}
		name := mirrorName(&a)
		object := trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, problems := object.JobSpec(0, 0); slices.ContainsFunc(problems, func(d core.Diagnostic) bool { return d.Path == "metadata.name" }) {
			p.Fatalf("%q: %v", name, problems)
		}
		b := a
		if b.UID = types.UID(uids.Draw(p, "other")); b.UID != a.UID && mirrorName(&b) == name {
			p.Fatalf("%s and %s have the same mirror %s", a.UID, b.UID, name)
		}
		if mirrorName(&a) != name {
			p.Fatalf("%s, then %s", name, mirrorName(&a))
		}
	})
}

// How many pods a Job wants, and what its TrainingJob says of it.
func TestMirrorOfJob(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	yes := true
	running := &trainingjob.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{succeededAnnotation: "1"}},
		Status:     trainingjob.Status{Decision: &trainingjob.Decision{Seats: []trainingjob.Seat{{Node: "a", Devices: "0"}}}},
	}
	type want struct {
		Replicas int
		Devices  int
		Suspend  bool
		Pinned   bool
		Queue    string
		Types    []string
		Refused  string // a part of why
	}
	for name, tc := range map[string]struct {
		change func(*batchv1.Job)
		mirror *trainingjob.TrainingJob
		want   want
	}{
		"as it is":               {nil, nil, want{Replicas: 4, Devices: 2}},
		"fewer completions":      {func(j *batchv1.Job) { j.Spec.Completions = number(3) }, nil, want{Replicas: 3, Devices: 2}},
		"more completions":       {func(j *batchv1.Job) { j.Spec.Completions = number(9) }, nil, want{Replicas: 4, Devices: 2}},
		"no parallelism said":    {func(j *batchv1.Job) { j.Spec.Parallelism = nil }, nil, want{Replicas: 1, Devices: 2}},
		"some have succeeded":    {func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = number(4), 3 }, nil, want{Replicas: 1, Devices: 2}},
		"some succeed in a run":  {func(j *batchv1.Job) { j.Spec.Completions, j.Status.Succeeded = number(4), 3 }, running, want{Replicas: 3, Devices: 2}},
		"none":                   {func(j *batchv1.Job) { j.Spec.Parallelism = number(0) }, nil, want{Replicas: 1, Devices: 2, Suspend: true}},
		"suspended":              {func(j *batchv1.Job) { j.Spec.Suspend = &yes }, nil, want{Replicas: 4, Devices: 2, Suspend: true}},
		"pinned":                 {func(j *batchv1.Job) { j.Annotations = map[string]string{pinnedAnnotation: "true"} }, nil, want{Replicas: 4, Devices: 2, Pinned: true}},
		"pinned by another word": {func(j *batchv1.Job) { j.Annotations = map[string]string{pinnedAnnotation: "yes"} }, nil, want{Replicas: 4, Devices: 2}},
		"of a queue":             {func(j *batchv1.Job) { j.Labels = map[string]string{queueLabel: "vision"} }, nil, want{Replicas: 4, Devices: 2, Queue: "vision"}},
		"whose pods are of one":  {func(j *batchv1.Job) { j.Spec.Template.Labels = map[string]string{queueLabel: "vision"} }, nil, want{Replicas: 4, Devices: 2, Queue: "vision"}},
		"for one type":           {func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{"gpu.type": "a100"} }, nil, want{Replicas: 4, Devices: 2, Types: []string{"a100"}}},
		"for one, by our label":  {func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{acceleratorLabel: "a100"} }, nil, want{Replicas: 4, Devices: 2, Types: []string{"a100"}}},
		"without devices":        {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, nil, want{Refused: "ask for no gpu"}},
		"with too many": {func(j *batchv1.Job) {
			j.Spec.Template.Spec.Containers[0].Resources.Limits["gpu"] = resource.MustParse("65")
		}, nil, want{Refused: "64 devices at most, and asks for 65"}},
		"with an affinity": {func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: make([]corev1.PodAffinityTerm, 1)}}
		}, nil, want{Replicas: 4, Devices: 2}},
		"with labels of namespaces": {func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			}}}}
		}, nil, want{Refused: "namespaceSelector is not supported"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "team", UID: "u"}, Spec: batchv1.JobSpec{Parallelism: number(4)}}
			j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"gpu": resource.MustParse("2")}}}}
			if tc.change != nil {
				tc.change(j)
			}
			b := &Backend{config: Config{Resource: "gpu", Accelerator: "gpu.type"}}
			spec, why := b.mirrorSpec(findJob(j, tc.mirror))
			if tc.want.Refused != "" {
				if !strings.Contains(why, tc.want.Refused) {
					t.Errorf("refused because %q, want %q", why, tc.want.Refused)
				}
				return
			}
			if why != "" {
				t.Fatal(why)
			}
			if _, problems := (&trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: *spec}).JobSpec(0, 0); len(problems) > 0 {
				t.Error(problems)
			}
			got := want{
				Replicas: spec.Replicas.Min, Devices: spec.Replicas.DevicesPerReplica, Suspend: spec.Suspend, Pinned: spec.Pinned, Queue: spec.Queue, Types: spec.Accelerators,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// Schedulers that know nothing of adoption are not to make pods of it.
			old := *spec
			old.Adopts = nil
			if _, problems := old.PodTemplate(); len(problems) == 0 {
				t.Error("a version before takes it for a job of its own")
			}
		})
	}
	for name, change := range map[string]func(*batchv1.Job){
		"deleted": func(j *batchv1.Job) { j.DeletionTimestamp = new(metav1.Time) },
		"complete": func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		},
		"failed": func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		},
		"of another controller": func(j *batchv1.Job) { other := "another"; j.Spec.ManagedBy = &other },
	} {
		j := &batchv1.Job{}
		if change(j); findJob(j, nil) != nil {
			t.Errorf("a Job that is %s is scheduled", name)
		}
	}
}
