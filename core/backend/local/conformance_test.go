package local

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

func TestConformance(t *testing.T) {
	pooled := map[string][]any{} // by directory
	var mutex sync.Mutex
	open := func(t testing.TB, dir string, c *core.Cluster, jobs *workload.Workload) core.Backend {
		mutex.Lock()
		config := map[string]any{"grace": "200ms", "pools": pooled[dir]}
		mutex.Unlock()
		o := coretest.Component(New(realClock{}), config, discard).(*Opener)
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
		c := b.cluster
		if len(c.Pools) > 0 {
			c = &core.Cluster{Accelerators: c.Accelerators, Nodes: slices.Clone(c.Nodes), Pools: c.Pools}
		}
		return open(t, b.dir, c, jobs)
	}
	openWorld := func(t testing.TB, dir string, w backendtest.World) core.Backend {
		jobs := &workload.Workload{Open: w.Open}
		for i, j := range w.Jobs {
			jobs.Jobs = append(jobs.Jobs, workload.Job{Spec: core.JobSpec{
				ID: core.JobID(i), Name: j.Name, SubmitSeconds: j.SubmitSeconds, Weight: 1,
				Requested: j.Replicas, MinReplicas: j.Replicas, MaxReplicas: j.Replicas, Command: sleeps(j), Share: j.Share(),
			}})
		}
		return open(t, dir, w.Cluster, jobs)
	}
	backendtest.Run(t, backendtest.Harness{
		UnitSeconds: 0.2, File: jobFile, Restart: restart,
		Open: func(t testing.TB, w backendtest.World) core.Backend { return openWorld(t, t.TempDir(), w) },
		OpenPools: func(t testing.TB, w backendtest.World, pools []backend.Pool) core.Backend {
			dir := t.TempDir()
			mutex.Lock()
			for _, p := range pools {
				pooled[dir] = append(pooled[dir], map[string]any{
					"pool": p.Pool, "provisioning": p.Provisioning.String(), "fails": p.Fails, "drain_timeout": p.DrainTimeout.String(),
					"evictions": p.Evictions.String(), "notice": p.Notice.String(),
				})
			}
			mutex.Unlock()
			return openWorld(t, dir, w)
		},
	})
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
