package sim

import (
	"context"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/workload"
)

// Jobs of the simulator do not fail.
func TestConformance(t *testing.T) {
	o := opener{Config{StallAfter: time.Hour}, core.Settings{Rand: core.NewRand(1, "sim")}}
	backendtest.Run(t, backendtest.Harness{UnitSeconds: 1, Exact: true, NeverFails: true, Open: func(t testing.TB, w backendtest.World) core.Backend {
		jobs := &workload.Workload{}
		for i, j := range w.Jobs {
			jobs.Jobs = append(jobs.Jobs, workload.Job{
				Spec: core.JobSpec{
					ID: core.JobID(i), Name: j.Name, SubmitSeconds: j.SubmitSeconds, Weight: 1, TotalWork: j.Seconds,
					Requested: j.Replicas, MinReplicas: j.Replicas, MaxReplicas: j.Replicas,
				},
				Model: workload.NewDurationModel(j.Seconds, j.Replicas),
			})
		}
		b, err := o.Open(context.Background(), w.Cluster, jobs)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}})
}
