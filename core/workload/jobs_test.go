package workload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestJobFile(t *testing.T) {
	w, err := readString(readJobs, `version: 1
jobs:
  - {name: late, command: [train], submit: 1m30s}
  - {name: none, command: [prepare], share_milli: 0, submit: 2m}
  - name: elastic
    command: [train, --all]
    dir: work
    experiment: lr_1.e-3
    environment: [{name: A, value: b}]
    replicas: 2
    min_replicas: 1
    max_replicas: 4
    accelerators: [v100]
    cpus: 1.5
    memory_gb: 8
    share_milli: 250
    device_memory_gb: 2.5
    batch: {requested: 64, max: 256, max_per_device: 32}
    seconds: 120
    retries: 3
    lost_retries: 0
    start_retries: 2
    checkpoint: true
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.JobSpec{{
		ID: 0, Name: "elastic", Experiment: "lr_1.e-3", Weight: 1, Requested: 2, MinReplicas: 1, MaxReplicas: 4, Accelerators: []string{"v100"}, CPUs: 1.5, MemoryGB: 8,
		Share: &core.Share{Milli: 250}, DeviceMemoryGB: 2.5,
		Batch:   core.BatchSpec{Requested: 64, Initial: 64, Max: 256, MinPerDevice: 1, MaxPerDevice: 32},
		Command: []string{"train", "--all"}, TotalWork: 120,
	}, {
		ID: 1, Name: "late", Weight: 1, SubmitSeconds: 90, Requested: 1, MinReplicas: 1, MaxReplicas: 1, Command: []string{"train"},
	}, {
		ID: 2, Name: "none", Weight: 1, SubmitSeconds: 120, Requested: 1, MinReplicas: 1, MaxReplicas: 1, Command: []string{"prepare"}, Share: &core.Share{},
	}}
	var got []core.JobSpec
	for i := range w.Jobs {
		got = append(got, w.Jobs[i].Spec)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	never, twice := 0, 2
	wantProcess := Process{Dir: "work", Environment: []Variable{{"A", "b"}}, Retries: 3, LostRetries: &never, StartRetries: &twice, Checkpoints: true}
	if diff := cmp.Diff(wantProcess, w.Jobs[0].Process); diff != "" {
		t.Errorf("process (-want +got):\n%s", diff)
	}
	if p := w.Jobs[1].Process; p.Retries != 0 || p.LostRetries != nil || p.StartRetries != nil {
		t.Errorf("a job that says nothing of retries has %+v", p)
	}
}

// Jobs of one moment keep the order of the file, as if they were submitted one by one.
func TestJobFileKeepsItsOrder(t *testing.T) {
	w, err := readString(readJobs, `version: 1
jobs:
  - {name: z10, command: [x], submit: 5s}
  - {name: b, command: [x]}
  - name: a
    command: [x]
  - {command: [x], name: z9, submit: 5s}
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range w.Jobs {
		got = append(got, fmt.Sprintf("%d %s %s", w.Jobs[i].Spec.ID, w.Jobs[i].Spec.Name, w.Jobs[i].At))
	}
	if diff := cmp.Diff([]string{"0 b t.csv:4:6", "1 a t.csv:5:5", "2 z10 t.csv:3:6", "3 z9 t.csv:7:20"}, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// A problem of form hides none of sense, but those of settings that make sense only together with it.
func TestJobFileTellsEveryProblem(t *testing.T) {
	_, err := readString(readJobs, `version: 2
jobs:
  - {name: a b, command: [], submit: -5s, cpus: 0.001}
  - {name: b, command: [x], replicas: two, min_replicas: 7, iterations: 1, seconds: 1}
  - text
  - {name: c, command: [x], batch: {requested: x, max: 4}, retry: 3, environment: [{name: 1A}, {name: 2, value: x}]}
  - {name: b, command: [x], batch: {requested: 9, max: 8}}
`)
	var got []string
	for line := range strings.SplitSeq(fmt.Sprint(err), "\n") {
		summary, _, _ := strings.Cut(line, ";")
		got = append(got, strings.TrimPrefix(summary, "t.csv:"))
	}
	want := []string{
		`1:1: version: unknown version 2`,
		`3:6: jobs[0].name: "a b" cannot name a job`,
		`3:17: jobs[0].command: names no program`,
		`3:30: jobs[0].submit: must be at least 0s, got -5s`,
		`3:43: jobs[0].cpus: must be 0 or at least 0.01, got 0.001`,
		`4:29: jobs[1].replicas: expected a whole number, got text "two"`,
		`4:61: jobs[1].iterations: must not be given together with seconds`,
		`5:5: jobs[2]: expected a mapping, got text "text"`,
		`6:37: jobs[3].batch.requested: expected a whole number, got text "x"`,
		`6:60: jobs[3].retry: unknown key`,
		`6:97: jobs[3].environment[1].name: expected text, got number 2`,
		`7:6: jobs[4].name: job name "b" appears twice`,
		`7:51: jobs[4].batch.max: requested must be at most max, got 9 and 8`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// An object of Kubernetes is said to be one; what only looks like one is a broken job file.
func TestJobFileOfKubernetes(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n":             `j.yaml:1:1: is a Kubernetes object of kind "PyTorchJob" ("kubeflow.org/v1"), not a job file; `,
		"# set\napiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n": `j.yaml:2:1: is a Kubernetes object of kind "JobSet" ("jobset.x-k8s.io/v1alpha2"), not a job file; `,
		"kind: RayJob\napiVersion: ray.io/v1\n---\nkind: Service\n":   `is a Kubernetes object of kind "RayJob" ("ray.io/v1")`,
		`{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}`:  `is a Kubernetes object of kind "Job" ("batch.volcano.sh/v1alpha1")`,
		"apiVersion: v1\n":               `unknown key; did you mean "version"?`,
		"apiVersion: v1\nkind: {a: b}\n": `unknown key; did you mean "version"?`,
		"apiVersion: v1\nkind: \n":       `unknown key; did you mean "version"?`,
		"apiVersion: v1\nkind: [\n":      "did not find expected node content",
		"[apiVersion, kind]":             "cannot unmarshal",
		"version: 1\njobs: [{name: a, command: [kubectl, --for=apiVersion]}]\n": "",
	} {
		_, err := DecodeJobs("j.yaml", []byte(text))
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestJobFileProblems(t *testing.T) {
	cases := map[string]struct{ job, want string }{
		"path as a name":        {`{name: ../../etc, command: [x]}`, `jobs[0].name: "../../etc" cannot name a job`},
		"hidden name":           {`{name: .a, command: [x]}`, `jobs[0].name: ".a" cannot name a job`},
		"path as a search":      {`{name: a, experiment: a/b, command: [x]}`, `jobs[0].experiment: "a/b" cannot name an experiment; use up to 60 letters`},
		"no command":            {`{name: a, command: []}`, `jobs[0].command: names no program`},
		"command as text":       {`{name: a, command: rm -rf}`, `jobs[0].command: expected a list`},
		"unknown key":           {`{name: a, command: [x], replica: 2}`, `jobs[0].replica: unknown key; did you mean "replicas"?`},
		"another's socket":      {`{name: a, command: [x], environment: [{name: QUARTET_AGENT, value: /x}]}`, `"QUARTET_AGENT" is set by the scheduler`},
		"another's device":      {`{name: a, command: [x], environment: [{name: CUDA_VISIBLE_DEVICES, value: "0"}]}`, `"CUDA_VISIBLE_DEVICES" is set by the scheduler`},
		"no variable":           {`{name: a, command: [x], environment: [{name: "A=B"}]}`, `"A=B" is no variable`},
		"least above requested": {`{name: a, command: [x], min_replicas: 2}`, `min_replicas: must be at most the 1 of replicas, got 2`},
		"most below requested":  {`{name: a, command: [x], replicas: 3, max_replicas: 2}`, `max_replicas: must be at least the 3 of replicas, got 2`},
		"batch without a size":  {`{name: a, command: [x], batch: {max: 8}}`, `batch.requested: must be given`},
		"batch above its most":  {`{name: a, command: [x], batch: {requested: 9, max: 8}}`, `requested must be at most max, got 9 and 8`},
		"type named twice":      {`{name: a, command: [x], accelerators: [v, v]}`, `accelerators[1]: "v" is empty or named before`},
		"more than a device":    {`{name: a, command: [x], share_milli: 1001}`, `share_milli: must be at most 1000, got 1001`},
		"less than nothing":     {`{name: a, command: [x], share_milli: -1}`, `share_milli: must be at least 0, got -1`},
		"negative device GB":    {`{name: a, command: [x], device_memory_gb: -1}`, `device_memory_gb: must be at least 0, got -1`},
		"too little of a CPU":   {`{name: a, command: [x], cpus: 0.001}`, `cpus: must be 0 or at least 0.01, got 0.001`},
		"too little memory":     {`{name: a, command: [x], memory_gb: 0.001}`, `memory_gb: must be 0 or at least 0.01, got 0.001`},
		"negative memory":       {`{name: a, command: [x], memory_gb: -1}`, `memory_gb: must be at least 0, got -1`},
		"program as text":       {`{name: a, command: echo hi}`, `jobs[0].command: expected a list, got text "echo hi"; write [sh, -c, "echo hi"]`},
		"truth as an argument":  {`{name: a, command: [true]}`, `jobs[0].command[0]: expected text, got true; write "true" in quotes`},
		"no replica":            {`{name: a, command: [x], replicas: 0}`, `jobs[0].replicas: must be at least 1, got 0`},
		"variable set twice":    {`{name: a, command: [x], environment: [{name: A}, {name: A, value: b}]}`, `jobs[0].environment[1]: "A" is set twice`},
		"no weight":             {`{name: a, command: [x], weight: 0}`, `jobs[0].weight: must be at least 1e-6, got 0`},
		"hardly any weight":     {`{name: a, command: [x], weight: 1e-300}`, `jobs[0].weight: must be at least 1e-6, got 1e-300`},
		"negative weight":       {`{name: a, command: [x], weight: -1}`, `jobs[0].weight: must be at least 1e-6, got -1`},
		"minus nothing":         {`{name: a, command: [x], weight: -0.0}`, `jobs[0].weight: must be at least 1e-6, got -0`},
		"too much weight":       {`{name: a, command: [x], weight: 1e308}`, `jobs[0].weight: must be at most 1e6, got 1e+308`},
		"no number":             {`{name: a, command: [x], weight: .nan}`, `jobs[0].weight: expected a finite number, got NaN`},
		"weight as text":        {`{name: a, command: [x], weight: "2"}`, `jobs[0].weight: expected a number, got text "2"`},
		"weight of nothing":     {`{name: a, command: [x], weight: ~}`, `jobs[0].weight: expected a number, got nothing`},
		"a deadline at once":    {`{name: a, command: [x], deadline: 0s}`, `jobs[0].deadline: must be above 0s, got 0s; leave it out for a job that may be done whenever`},
		"a deadline of 0":       {`{name: a, command: [x], deadline: 0h0m}`, `jobs[0].deadline: must be above 0s, got 0s`},
		"a deadline long ago":   {`{name: a, command: [x], deadline: -5s}`, `jobs[0].deadline: must be at least 0s, got -5s`},
		"no deadline at all":    {`{name: a, command: [x], deadline: ~}`, `jobs[0].deadline: expected a duration`},
		"no name":               {`{command: [x]}`, `jobs[0].name: required but missing`},
		"no mapping":            {`a`, `jobs[0]: expected a mapping, got text "a"`},
		"name used twice":       {"{name: a, command: [x]}\n  - {name: a, command: [x]}", `jobs[1].name: job name "a" appears twice; first in jobs[0]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := readString(readJobs, "version: 1\njobs:\n  - "+tc.job+"\n")
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), ":3:") && !strings.Contains(err.Error(), ":4:") {
				t.Errorf("problems %v, want one with %q at its line", err, tc.want)
			}
		})
	}
	for text, want := range map[string]string{
		"version: 2\njobs: [{name: a, command: [x]}]": "unknown version 2", "version: 1\njobs: []": "holds no job", "": "is empty",
	} {
		if _, err := readString(readJobs, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: problems %v, want %q", text, err, want)
		}
	}
}

func FuzzJobFile(f *testing.F) {
	f.Add("version: 1\njobs: [{name: a, command: [x]}]")
	f.Add("version: 1\njobs:\n  - &a {name: a, command: [x], batch: {requested: 4}, submit: 1m}\n  - {<<: *a, name: b, replicas: 0}")
	f.Add("jobs: [1, {command: x, environment: [{name: 3}]}, {name: [], seconds: -1}]\nversion: x")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := readString(readJobs, text)
		if err != nil {
			positioned(t, err)
			return
		}
		for i := range w.Jobs {
			s := &w.Jobs[i].Spec
			if int(s.ID) != i || !PlainName(s.Name) || len(s.Command) == 0 || s.MinReplicas < 1 || s.MinReplicas > s.Requested || s.Requested > s.MaxReplicas || w.Jobs[i].At.Line == 0 {
				t.Errorf("job %d: %+v", i, s)
			}
		}
	})
}
