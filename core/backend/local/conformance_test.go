package local

import (
	"fmt"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/workload"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{UnitSeconds: 0.2, Open: func(t testing.TB, w backendtest.World) core.Backend {
		if w.Open {
			t.Skip("jobs are given when it is opened")
		}
		jobs := &workload.Workload{}
		for i, j := range w.Jobs {
			jobs.Jobs = append(jobs.Jobs, workload.Job{Spec: core.JobSpec{
				ID: core.JobID(i), Name: j.Name, SubmitSeconds: j.SubmitSeconds, Weight: 1,
				Requested: j.Replicas, MinReplicas: j.Replicas, MaxReplicas: j.Replicas, Command: sleeps(j),
			}})
		}
		o := create(New(realClock{}), map[string]any{"grace": "200ms"}, discard).(*Opener)
		o.KeepIn(t.TempDir(), "test", false)
		b, err := o.Open(t.Context(), w.Cluster, jobs)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.(*Backend).Close() }) // it may be closed already
		return b
	}})
}

// sleeps is the command of a job that does nothing for its seconds.
func sleeps(j backendtest.Job) []string {
	command := []string{"sleep", fmt.Sprint(j.Seconds)}
	if j.Fails {
		command = []string{"sh", "-c", command[0] + " " + command[1] + "; exit 3"}
	}
	return command
}
