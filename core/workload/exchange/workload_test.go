package exchange

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// A workload is written with all that a trace can tell of its jobs.
func TestFromWorkload(t *testing.T) {
	job := func(name string, submit float64, requested int) workload.Job {
		return workload.Job{
			Spec: core.JobSpec{
				Name: name, SubmitSeconds: submit, Requested: requested, MinReplicas: requested, MaxReplicas: requested, Weight: 1, TotalWork: 60,
			},
			Model: workload.NewDurationModel(60, requested),
		}
	}
	plain, full := job("plain", 0, 2), job("full", 5, 4)
	full.Spec.Tenant, full.Spec.Application, full.Spec.Accelerators = "lab", "bert", []string{"a100", "v100"}
	full.Spec.Weight, full.Spec.MinReplicas, full.Spec.MaxReplicas, full.Spec.CPUs, full.Spec.MemoryGB, full.Spec.Pinned = 2, 1, 8, 3, 4, true
	full.Spec.DeadlineSeconds, full.Spec.BestEffort, full.Spec.Tier = 900.5, true, "standard"
	full.LimitSeconds, full.EstimateSeconds = 120, 90
	full.Observed = workload.Observed{Started: true, SubmitSeconds: 105, StartSeconds: 112, Outcome: "timeout"}
	trace, err := FromWorkload(&workload.Workload{Jobs: []workload.Job{plain, full}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteCSV(&b, trace); err != nil {
		t.Fatal(err)
	}
	want := `name,submit_s,duration_s,replicas,tenant,application,weight,min_replicas,max_replicas,accelerators,cpus,memory_gb,pinned,deadline_s,best_effort,tier,limit_s,estimate_s,observed_start_s,outcome
plain,0,60,2,,,,,,,,,,,,,,,,
full,5,60,4,lab,bert,2,1,8,a100|v100,3,4,true,900.5,true,standard,120,90,12,timeout
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := trace.At(0); got.Details() != (Details{}) || !(got.Limit != got.Limit) || !(got.Estimate != got.Estimate) || !(got.Start != got.Start) {
		t.Errorf("of a job that tells nothing besides: %+v, %+v", got, got.Details())
	}
	plain.Model = nil
	if _, err := FromWorkload(&workload.Workload{Jobs: []workload.Job{plain}}); err == nil || !strings.Contains(err.Error(), `job "plain" has no fixed duration`) {
		t.Errorf("without a duration: error %v", err)
	}
}
