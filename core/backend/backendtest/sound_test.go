package backendtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/workload"
)

// A backend that does what core.Backend says passes the whole suite, whether its stops take time and it reports events again or not.
func TestSoundBackendPasses(t *testing.T) {
	for name, tc := range map[string]struct {
		options fake.Options
		unit    float64 // seconds
	}{
		"exact":            {fake.Options{}, 1},
		"reports again":    {fake.Options{RepeatShare: 0.7}, 1},
		"stops take a bit": {fake.Options{StopSeconds: 0.005, RepeatShare: 0.7}, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			openPools := func(t testing.TB, w backendtest.World, pools []backend.Pool) core.Backend {
				o := tc.options
				o.Rand, o.Pools, o.Scripts = rand.New(rand.NewPCG(1, 2)), pools, map[string]fake.Script{}
				jobs := workload.Workload{Open: w.Open}
				for i, j := range w.Jobs {
					jobs.Jobs = append(jobs.Jobs, workload.Job{Spec: core.JobSpec{
						ID: core.JobID(i), Name: j.Name, SubmitSeconds: j.SubmitSeconds, Weight: 1,
						Requested: j.Replicas, MinReplicas: j.Replicas, MaxReplicas: j.Replicas, TotalWork: work(j),
					}})
					o.Scripts[j.Name] = fake.Script{Fails: j.Fails}
				}
				b := fake.Open(w.Cluster, &jobs, o)
				t.Cleanup(func() { _ = b.Close() })
				return b
			}
			backendtest.Run(t, backendtest.Harness{
				UnitSeconds: tc.unit, Exact: tc.options.StopSeconds == 0, OpenPools: openPools,
				Open: func(t testing.TB, w backendtest.World) core.Backend { return openPools(t, w, nil) },
				Restart: func(t testing.TB, b core.Backend) core.Backend {
					if err := b.(*fake.Backend).Restart(""); err != nil {
						t.Fatal(err)
					}
					return b
				},
				File: func(_ testing.TB, jobs []backendtest.Job) backend.JobFile {
					text := new(strings.Builder)
					fmt.Fprintln(text, "version: 1\njobs:")
					for _, j := range jobs {
						fmt.Fprintf(text, "- {name: %s, command: [train], replicas: %d, seconds: %v}\n", j.Name, j.Replicas, work(j))
					}
					return backend.JobFile{Name: "jobs.yaml", Text: []byte(text.String()), Dir: "/"}
				},
			})
		})
	}
}

// work is the seconds of work of a job; 0 without end.
func work(j backendtest.Job) float64 {
	if j.Seconds == backendtest.Endless {
		return 0
	}
	return j.Seconds
}
