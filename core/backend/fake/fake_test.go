package fake_test

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

func TestConformance(t *testing.T) {
	cases := map[string]struct {
		options fake.Options
		exact   bool
	}{
		"plain":             {fake.Options{}, true},
		"tells again":       {fake.Options{TellAgain: 0.7}, true},
		"stops take longer": {fake.Options{StopSeconds: 1.5}, false},
		"all at once":       {fake.Options{TellAgain: 0.7, StopSeconds: 0.25}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, backendtest.Harness{UnitSeconds: 1, Exact: tc.exact, File: file, Open: func(t testing.TB, w backendtest.World) core.Backend {
				o := tc.options
				o.Rand = rand.New(rand.NewPCG(1, 2))
				return open(t, w, o)
			}})
		})
	}
}

func open(t testing.TB, w backendtest.World, o fake.Options) *fake.Backend {
	jobs := workload.Workload{Open: w.Open}
	o.Scripts = map[string]fake.Script{}
	for i, j := range w.Jobs {
		spec := core.JobSpec{
			ID: core.JobID(i), Name: j.Name, SubmitSeconds: j.SubmitSeconds, Weight: 1,
			Requested: j.Replicas, MinReplicas: j.Replicas, MaxReplicas: j.Replicas, TotalWork: work(j),
		}
		jobs.Jobs = append(jobs.Jobs, workload.Job{Spec: spec})
		o.Scripts[j.Name] = fake.Script{Fails: j.Fails}
	}
	b := fake.Open(w.Cluster, &jobs, o)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func work(j backendtest.Job) float64 {
	if j.Seconds == backendtest.Endless {
		return 0
	}
	return j.Seconds
}

func file(_ testing.TB, jobs []backendtest.Job) backend.JobFile {
	text := new(strings.Builder)
	fmt.Fprintln(text, "version: 1\njobs:")
	for _, j := range jobs {
		fmt.Fprintf(text, "- {name: %s, command: [train], replicas: %d, seconds: %v}\n", j.Name, j.Replicas, work(j))
	}
	return backend.JobFile{Name: "jobs.yaml", Text: []byte(text.String()), Dir: "/"}
}
