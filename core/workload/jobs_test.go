package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestJobFile(t *testing.T) {
	w, err := readString(readJobs, `version: 1
jobs:
  - {name: late, command: [train], submit: 1m30s}
  - name: elastic
    command: [train, --all]
    dir: work
    environment: [{name: A, value: b}]
    replicas: 2
    min_replicas: 1
    max_replicas: 4
    accelerators: [v100]
    cpus: 1.5
    memory_gb: 8
    batch: {requested: 64, max: 256, max_per_device: 32}
    seconds: 120
    retries: 3
    checkpoint: true
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []core.JobSpec{{
		ID: 0, Name: "elastic", Weight: 1, Requested: 2, MinReplicas: 1, MaxReplicas: 4, Accelerators: []string{"v100"}, CPUs: 1.5, MemoryGB: 8,
		Batch:   core.BatchSpec{Requested: 64, Initial: 64, Max: 256, MinPerDevice: 1, MaxPerDevice: 32},
		Command: []string{"train", "--all"}, TotalWork: 120,
	}, {
		ID: 1, Name: "late", Weight: 1, SubmitSeconds: 90, Requested: 1, MinReplicas: 1, MaxReplicas: 1, Command: []string{"train"},
	}}
	var got []core.JobSpec
	for i := range w.Jobs {
		got = append(got, w.Jobs[i].Spec)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	wantProcess := Process{Dir: "work", Environment: []Variable{{"A", "b"}}, Retries: 3, Checkpoints: true}
	if diff := cmp.Diff(wantProcess, w.Jobs[0].Process); diff != "" {
		t.Errorf("process (-want +got):\n%s", diff)
	}
}

func TestJobFileProblems(t *testing.T) {
	cases := map[string]struct{ job, want string }{
		"path as a name":        {`{name: ../../etc, command: [x]}`, `jobs[0].name: "../../etc" cannot name a job`},
		"hidden name":           {`{name: .a, command: [x]}`, `jobs[0].name: ".a" cannot name a job`},
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
		"too little of a CPU":   {`{name: a, command: [x], cpus: 0.001}`, `cpus: must be 0 or at least 0.01, got 0.001`},
		"too little memory":     {`{name: a, command: [x], memory_gb: 0.001}`, `memory_gb: must be 0 or at least 0.01, got 0.001`},
		"negative memory":       {`{name: a, command: [x], memory_gb: -1}`, `memory_gb: must be at least 0, got -1`},
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
