package local

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

func TestConformance(t *testing.T) {
	open := func(t testing.TB, dir string, c *core.Cluster, jobs *workload.Workload) core.Backend {
		o := coretest.Component(New(realClock{}), map[string]any{"grace": "200ms"}, discard).(*Opener)
		o.For(Run{Dir: dir, Identity: "test"})
		b, err := o.Open(t.Context(), c, jobs)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.(*Backend).Close() }) // it may be closed already
		return b
	}
	restart := func(t testing.TB, before core.Backend) core.Backend {
		b := before.(*Backend)
		if _, err := b.Leave(); err != nil {
			t.Fatal(err)
		}
		jobs := &workload.Workload{Open: b.open}
		for _, j := range b.jobs {
			jobs.Jobs = append(jobs.Jobs, *j.Job)
		}
		return open(t, b.dir, b.cluster, jobs)
	}
	backendtest.Run(t, backendtest.Harness{UnitSeconds: 0.2, File: jobFile, Restart: restart, Open: func(t testing.TB, w backendtest.World) core.Backend {
		jobs := &workload.Workload{Open: w.Open}
		for i, j := range w.Jobs {
			jobs.Jobs = append(jobs.Jobs, workload.Job{Spec: core.JobSpec{
				ID: core.JobID(i), Name: j.Name, SubmitSeconds: j.SubmitSeconds, Weight: 1,
				Requested: j.Replicas, MinReplicas: j.Replicas, MaxReplicas: j.Replicas, Command: sleeps(j),
			}})
		}
		return open(t, t.TempDir(), w.Cluster, jobs)
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

func jobFile(t testing.TB, jobs []backendtest.Job) backend.JobFile {
	text := new(strings.Builder)
	fmt.Fprintln(text, "version: 1\njobs:")
	for _, j := range jobs {
		command, _ := json.Marshal(sleeps(j)) // a list of strings always can be
		fmt.Fprintf(text, "- {name: %s, command: %s, replicas: %d}\n", j.Name, command, j.Replicas)
	}
	return backend.JobFile{Name: "jobs.yaml", Text: []byte(text.String()), Dir: t.TempDir()}
}
