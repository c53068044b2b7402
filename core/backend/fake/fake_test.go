package fake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/workload"
)

func TestConformance(t *testing.T) {
	cases := map[string]struct {
		options fake.Options
		unit    float64
	}{
		"plain":            {fake.Options{}, 1},
		"tells again":      {fake.Options{RepeatShare: 0.7}, 1},
		"stops take long":  {fake.Options{StopSeconds: 0.03}, 0.02},
		"stops take a bit": {fake.Options{StopSeconds: 0.005, RepeatShare: 0.7}, 0.02},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, backendtest.Harness{UnitSeconds: tc.unit, Exact: tc.options.StopSeconds == 0, File: file, Restart: restart, Open: func(t testing.TB, w backendtest.World) core.Backend {
				o := tc.options
				o.Rand = rand.New(rand.NewPCG(1, 2))
				return open(t, w, o)
			}, OpenPools: func(t testing.TB, w backendtest.World, pools []backend.Pool) core.Backend {
				o := tc.options
				o.Rand, o.Pools = rand.New(rand.NewPCG(1, 2)), pools
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

func restart(t testing.TB, b core.Backend) core.Backend {
	if err := b.(*fake.Backend).Restart(""); err != nil {
		t.Fatal(err)
	}
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

// nextEvents waits for a round and lists its events as "kind job@moment", ids included.
func nextEvents(t *testing.T, b *fake.Backend) (list []string) {
	t.Helper()
	o, err := b.Next(t.Context(), core.Wake{BySeconds: math.Inf(1), OnEvents: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range o.Events {
		list = append(list, fmt.Sprintf("%d: %v %d@%v", e.ID, e.Kind, e.Job, e.AtSeconds))
	}
	return list
}

func wantEvents(t *testing.T, b *fake.Backend, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, nextEvents(t, b)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func apply(t *testing.T, b *fake.Backend, changes ...core.Change) {
	t.Helper()
	if err := b.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

// on is a start of round 1 on the first device of a node.
func on(id core.JobID, node core.NodeID) core.Change {
	return core.Change{Round: 1, Action: core.Start, Job: id, Seats: []core.Seat{{Node: node, Devices: 1}}}
}

func jobs(seconds ...float64) *workload.Workload {
	w := &workload.Workload{}
	for i, s := range seconds {
		w.Jobs = append(w.Jobs, workload.Job{Spec: core.JobSpec{Name: string(rune('a' + i)), Requested: 1, MaxReplicas: 1, TotalWork: s}})
	}
	return w
}

func nodes() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{{ID: 0, Name: "n0", Devices: 1}, {ID: 1, Name: "n1", Devices: 1}}}
}

func TestInterruptedJobIsNotStartedByARepetition(t *testing.T) {
	b := fake.Open(nodes(), jobs(10), fake.Options{Scripts: map[string]fake.Script{"a": {InterruptAt: []float64{4}}}})
	wantEvents(t, b, "1: job_submitted 0@0")
	apply(t, b, on(0, 0))
	wantEvents(t, b, "2: job_progressed 0@0", "3: job_interrupted 0@4")
	apply(t, b, on(0, 0)) // a scheduler that was restarted finishes round 1
	if _, err := b.Next(t.Context(), core.Wake{BySeconds: math.Inf(1)}); !errors.Is(err, io.EOF) {
		t.Fatalf("error %v, want the end, for nothing runs", err)
	}
}

func TestWorkGoesOnAfterAnInterruption(t *testing.T) {
	b := fake.Open(nodes(), jobs(10), fake.Options{Scripts: map[string]fake.Script{"a": {InterruptAt: []float64{4}, Fails: true}}})
	nextEvents(t, b)
	apply(t, b, on(0, 0))
	nextEvents(t, b)
	again := on(0, 1)
	again.Round = 2
	apply(t, b, again)
	wantEvents(t, b, "4: job_progressed 0@4", "5: job_failed 0@10")
}

func TestSlowStops(t *testing.T) {
	b := fake.Open(nodes(), jobs(10, 10, 5), fake.Options{StopSeconds: 3})
	nextEvents(t, b)
	apply(t, b, on(0, 0))
	if _, err := b.Next(t.Context(), core.Wake{BySeconds: 2}); err != nil {
		t.Fatal(err)
	}
	apply(t, b, core.Change{Round: 2, Action: core.Stop, Job: 0}, on(1, 0)) // where job 0 runs until 5
	wantEvents(t, b, "5: job_progressed 0@5", "6: job_progressed 1@5", "7: job_finished 1@15")
	apply(t, b, core.Change{Round: 3, Action: core.Start, Job: 0, Seats: []core.Seat{{Node: 0, Devices: 1}}}, on(2, 1))
	if _, err := b.Next(t.Context(), core.Wake{BySeconds: 18}); err != nil {
		t.Fatal(err)
	}
	apply(t, b, core.Change{Round: 4, Action: core.Stop, Job: 0}, core.Change{Round: 4, Action: core.Stop, Job: 2})
	wantEvents(t, b, "10: job_finished 0@20", "11: job_finished 2@20")
}

func TestNodeGoesDown(t *testing.T) {
	b := fake.Open(nodes(), jobs(10, 10), fake.Options{})
	nextEvents(t, b)
	apply(t, b, on(0, 0))
	if err := b.SetHealth(t.Context(), "n0", core.Down); err != nil {
		t.Fatal(err)
	}
	// The pipeline has not heard of it.
	apply(t, b, core.Change{Round: 2, Action: core.Move, Job: 0, Seats: []core.Seat{{Node: 1, Devices: 1}}}, on(1, 0))
	wantEvents(t, b,
		"3: job_progressed 0@0", "4: node_changed 0@0", "5: job_interrupted 0@0", "6: job_interrupted 1@0")
}

func TestDevicesAreGivenAwayOnce(t *testing.T) {
	cases := map[string]core.Change{
		"taken":       on(1, 0),
		"not there":   {Action: core.Start, Job: 1, Seats: []core.Seat{{Node: 1, Devices: 2}}},
		"on no node":  {Action: core.Start, Job: 1, Seats: []core.Seat{{Node: 2, Devices: 1}}},
		"on node -1":  {Action: core.Start, Job: 1, Seats: []core.Seat{{Node: -1, Devices: 1}}},
		"given twice": {Action: core.Start, Job: 1, Seats: []core.Seat{{Node: 1, Devices: 1}, {Node: 1, Devices: 1}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.Open(nodes(), jobs(10, 10), fake.Options{})
			nextEvents(t, b)
			apply(t, b, on(0, 0))
			if err := b.Apply(t.Context(), []core.Change{c}); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestTellsAgain(t *testing.T) {
	b := fake.Open(nodes(), jobs(1, 1, 1, 1, 1, 1), fake.Options{RepeatShare: 1, Rand: rand.New(rand.NewPCG(1, 2))})
	times := map[string]int{}
	for id := range core.JobID(6) {
		for _, e := range nextEvents(t, b) {
			times[e]++
		}
		apply(t, b, on(id, 0))
	}
	again := 0
	for _, n := range times {
		again += n - 1
	}
	if again == 0 {
		t.Errorf("nothing was told again: %v", times)
	}
}

func TestClose(t *testing.T) {
	w := jobs()
	w.Open = true
	b := fake.Open(nodes(), w, fake.Options{})
	end := make(chan error)
	go func() {
		_, err := b.Next(context.Background(), core.Wake{BySeconds: math.Inf(1)})
		end <- err
	}()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-end; !errors.Is(err, io.EOF) {
		t.Errorf("Next ends with %v, want io.EOF", err)
	}
	if err := b.Cancel(t.Context(), "a"); !errors.Is(err, fake.ErrOver) {
		t.Errorf("an order after the end: %v, want %v", err, fake.ErrOver)
	}
}
