package trainingjob

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quartet-sched/quartet/core"
)

const plainTemplate = `{"spec": {"containers": [{"name": "main", "image": "trainer", "resources": {
	"requests": {"cpu": "1500m", "memory": "3Gi"}}}]}}`

// job is one that says nothing but its template.
func job(change func(*Spec)) *TrainingJob {
	j := &TrainingJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion().String(), Kind: Kind},
		ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "vision"},
		Spec:       Spec{Template: runtime.RawExtension{Raw: []byte(plainTemplate)}},
	}
	if change != nil {
		change(&j.Spec)
	}
	return j
}

func TestJobSpec(t *testing.T) {
	cases := map[string]struct {
		change func(*Spec)
		want   core.JobSpec
	}{
		"nothing said": {nil, core.JobSpec{
			Tenant: "vision", Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, CPUs: 1.5, MemoryGB: 3,
		}},
		"bounds": {func(s *Spec) { s.Replicas = Replicas{Min: 2, Max: 8} }, core.JobSpec{
			Tenant: "vision", Weight: 1, Requested: 8, MinReplicas: 2, MaxReplicas: 8, CPUs: 1.5, MemoryGB: 3,
		}},
		"a least": {func(s *Spec) { s.Replicas.Min = 2 }, core.JobSpec{
			Tenant: "vision", Weight: 1, Requested: 2, MinReplicas: 2, MaxReplicas: 2, CPUs: 1.5, MemoryGB: 3,
		}},
		"several devices in a replica": {func(s *Spec) {
			s.Requested, s.Replicas = 3, Replicas{Min: 2, Max: 4, DevicesPerReplica: 2}
		}, core.JobSpec{
			Tenant: "vision", Weight: 1, Requested: 6, MinReplicas: 4, MaxReplicas: 8, CPUs: 0.75, MemoryGB: 1.5,
		}},
		"batches like those of a job file": {func(s *Spec) { s.Batch = Batch{Requested: 256, Max: 1024, MaxPerDevice: 128} }, core.JobSpec{
			Tenant: "vision", Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, CPUs: 1.5, MemoryGB: 3,
			Batch: core.BatchSpec{Requested: 256, Initial: 256, Max: 1024, MinPerDevice: 1, MaxPerDevice: 128},
		}},
		"an initial batch alone": {func(s *Spec) { s.Batch = Batch{Initial: 64} }, core.JobSpec{
			Tenant: "vision", Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, CPUs: 1.5, MemoryGB: 3,
			Batch: core.BatchSpec{Requested: 64, Initial: 64, Max: 64, MinPerDevice: 1, MaxPerDevice: 64},
		}},
		"everything said": {func(s *Spec) {
			*s = Spec{
				Queue: "research", Weight: 2, Work: 5000, Replicas: Replicas{Min: 1, Max: 8}, Requested: 4, Pinned: true,
				Accelerators: []string{"a100", "h100"}, Application: "resnet50", DeadlineSeconds: 900, BestEffort: true, Tier: "premium", Experiment: "sweep.1",
				Batch: Batch{Requested: 512, Initial: 256, Min: 128, Max: 4096, MinPerDevice: 16, MaxPerDevice: 256},
				Template: runtime.RawExtension{Raw: []byte(`{"spec": {"schedulerName": "quartet", "restartPolicy": "Never",
					"initContainers": [{"name": "fetch", "resources": {"requests": {"memory": "9Gi", "cpu": "1"}}},
						{"name": "logs", "restartPolicy": "Always", "resources": {"limits": {"cpu": "500m"}}}],
					"containers": [{"name": "a", "resources": {"limits": {"cpu": 2}}}, {"name": "b", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}]}}`)},
			}
		}, core.JobSpec{
			Tenant: "research", Application: "resnet50", Weight: 2, Requested: 4, MinReplicas: 1, MaxReplicas: 8, Pinned: true,
			Accelerators: []string{"a100", "h100"}, TotalWork: 5000, CPUs: 3.5, MemoryGB: 9, DeadlineSeconds: 900, BestEffort: true, Tier: "premium", Experiment: "sweep.1",
			Batch: core.BatchSpec{Requested: 512, Initial: 256, Max: 4096, MinPerDevice: 16, MaxPerDevice: 256},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.ID, tc.want.Name, tc.want.SubmitSeconds = 7, "vision/train", 12.5
			got, problems := job(tc.change).JobSpec(7, 12.5)
			if diff := cmp.Diff(tc.want, got); diff != "" || problems.Err() != nil {
				t.Errorf("%v (-want +got):\n%s", problems.Err(), diff)
			}
		})
	}
}

func TestJobSpecProblems(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	template := func(text string) func(*Spec) {
		return func(s *Spec) { s.Template.Raw = []byte(text) }
	}
	cases := map[string]struct {
		change func(*Spec)
		want   []string
	}{
		"weight":             {func(s *Spec) { s.Weight = -1 }, []string{"spec.weight: must be from 1e-06 to 1e+06, got -1"}},
		"a weight of no use": {func(s *Spec) { s.Weight = math.NaN() }, []string{"spec.weight: must be from 1e-06 to 1e+06, got NaN"}},
		"deadline":           {func(s *Spec) { s.DeadlineSeconds = 1e10 }, []string{"spec.deadlineSeconds: must be from 0 to 1e+09, got 1e+10"}},
		"tier":               {func(s *Spec) { s.Tier = "gold" }, []string{"spec.tier: there is no tier \"gold\"; valid values: premium, standard, basic"}},
		"experiment":         {func(s *Spec) { s.Experiment = "a/b" }, []string{"spec.experiment: \"a/b\" cannot name an experiment; use up to 60 letters, digits, \"-\", \"_\" and \".\", the first a letter, digit or \"_\""}},
		"work":               {func(s *Spec) { s.Work = math.Inf(1) }, []string{"spec.work: must be from 0 to 1e+15, got +Inf"}},
		"least over most": {func(s *Spec) { s.Replicas = Replicas{Min: 4, Max: 2} }, []string{
			"spec.replicas.min: replicas.min must be at most replicas.max, got 4 and 2",
		}},
		"requested under the least": {func(s *Spec) { s.Requested, s.Replicas.Min = 1, 2 }, []string{
			"spec.requested: replicas.min must be at most requested, got 2 and 1",
		}},
		"requested over the most": {func(s *Spec) { s.Requested, s.Replicas.Max = 3, 2 }, []string{
			"spec.requested: requested must be at most replicas.max, got 3 and 2",
		}},
		"devices of a replica": {func(s *Spec) { s.Replicas.DevicesPerReplica = 65 }, []string{
			"spec.replicas.devicesPerReplica: must be from 1 to 64, got 65",
		}},
		"what a pod is": {func(s *Spec) { s.PodPer = "Device" }, []string{`spec.podPer: is "Device"; valid values: Node, Replica`}},
		"accelerators": {func(s *Spec) { s.Accelerators = []string{"a100", "", "a100"} }, []string{
			`spec.accelerators[1]: "" is empty or named before`, `spec.accelerators[2]: "a100" is empty or named before`,
		}},
		"a batch without its size": {func(s *Spec) { s.Batch.MaxPerDevice = 8 }, []string{
			"spec.batch.requested: must be given with the other bounds of the batch",
		}},
		"batches": {func(s *Spec) { s.Batch = Batch{Requested: 64, Min: 96, Max: 32, MinPerDevice: 80, MaxPerDevice: 70} }, []string{
			"spec.batch.min: batch.min must be at most batch.max, got 96 and 32",
			"spec.batch.min: batch.min must be at most batch.requested, got 96 and 64",
			"spec.batch.max: batch.requested must be at most batch.max, got 64 and 32",
			"spec.batch.max: batch.initial must be at most batch.max, got 64 and 32",
			"spec.batch.maxPerDevice: batch.minPerDevice must be at most batch.maxPerDevice, got 80 and 70",
			"spec.batch.minPerDevice: batch.minPerDevice must be at most batch.requested, got 80 and 64",
		}},
		"times": {func(s *Spec) { s.GraceSeconds, s.StartTimeoutSeconds = seconds(-1), seconds(0) }, []string{
			"spec.graceSeconds: must be from 0 to 86400, got -1", "spec.startTimeoutSeconds: must be from 1 to 86400, got 0",
		}},
		"no template": {template(""), []string{"spec.template: required but missing; it is the pod template of a replica"}},
		"a template too large": {template(sized(mostTemplate + 1)), []string{
			"spec.template: has 262145 bytes, at most 262144 leave room for the status of the job; keep what is large in a ConfigMap or an image",
		}},
		"the largest template": {template(sized(mostTemplate)), nil},
		"no container":         {template(`{}`), []string{"spec.template.spec.containers: holds no container"}},
		"no template at all":   {template(`{"spec": {"containers": "main"}}`), []string{"spec.template.spec.containers: cannot be a string"}},
		"no quantity": {template(`{"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "many"}}}]}}`), []string{
			"spec.template: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		}},
		"unknown fields": {template(`{"spec": {"containers": [{"name": "a", "gpus": 1}], "NodeName": "n"}}`), []string{
			`spec.template: unknown field "spec.containers[0].gpus"`, `spec.template: unknown field "spec.NodeName"`,
		}},
		"what is for the scheduler": {
			template(`{"spec": {"containers": [{"name": "a"}], "nodeName": "n", "schedulerName": "other", "schedulingGates": [{"name": "g"}], "restartPolicy": "Always"}}`),
			[]string{
				"spec.template.spec.nodeName: is for the scheduler to choose; leave it out",
				`spec.template.spec.schedulerName: names another scheduler, "other"; leave it out`,
				"spec.template.spec.schedulingGates: keep the pods from being bound; suspend the job instead",
				"spec.template.spec.restartPolicy: Always lets a replica never end; leave it out: Never",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, problems := job(tc.change).JobSpec(0, 0)
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	cases := map[string]struct {
		name string
		want int // problems
	}{
		"plain":            {"resnet-50", 0},
		"a digit first":    {"7b", 0},
		"the longest":      {strings.Repeat("x", 45), 0},
		"longer":           {strings.Repeat("x", 46), 1},
		"a dot":            {"a.b", 1},
		"capitals":         {"A", 1},
		"a hyphen first":   {"-a", 1},
		"a hyphen last":    {"a-", 1},
		"none":             {"", 1},
		"long and with _":  {strings.Repeat("_", 46), 2},
		"a letter of more": {"é", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := job(nil)
			j.Name = tc.name
			if _, problems := j.JobSpec(0, 0); len(problems) != tc.want {
				t.Errorf("%d problems, want %d: %v", len(problems), tc.want, problems)
			}
		})
	}
}

// A label may have each letter and digit, and what lies beside them is none.
func TestIsLabel(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "z": true, "0": true, "9": true, "a-z": true, "": false, "-": false, "-a": false, "a-": false, "A": false, "a.b": false,
		"`": false, "{": false, "/": false, ":": false,
	} {
		if isLabel(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
}

// The times of a job may be the least and the most that are allowed.
func TestTimesAtTheirBounds(t *testing.T) {
	for start, want := range map[int64]bool{0: false, 1: true, mostSeconds: true, mostSeconds + 1: false} {
		for grace, also := range map[int64]bool{-1: false, 0: true, mostSeconds: true, mostSeconds + 1: false} {
			var p problems
			p.spec(&Spec{StartTimeoutSeconds: &start, GraceSeconds: &grace})
			if got := len(p.Diagnostics) == 0; got != (want && also) {
				t.Errorf("start %d, grace %d: %v", start, grace, p.Diagnostics)
			}
		}
	}
}

// sized is a template of so many bytes.
func sized(bytes int) string {
	const before, after = `{"metadata": {"annotations": {"a": "`, `"}}, "spec": {"containers": [{"name": "a"}]}}`
	return before + strings.Repeat("x", bytes-len(before)-len(after)) + after
}
