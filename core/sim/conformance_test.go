package sim

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/workload"
)

// Jobs of the simulator do not fail.
func TestConformance(t *testing.T) {
	o := opener{Config{StallAfter: time.Hour}, core.Settings{Rand: core.NewRand(1, "sim")}}
	open := func(t testing.TB, w backendtest.World, pools []Pool) core.Backend {
		o := o
		o.config.Pools = pools
		jobs := &workload.Workload{}
		for i, j := range w.Jobs {
			jobs.Jobs = append(jobs.Jobs, workload.Job{
				Spec: core.JobSpec{
					ID: core.JobID(i), Name: j.Name, SubmitSeconds: j.SubmitSeconds, Weight: 1, TotalWork: j.Seconds,
					Requested: j.Replicas, MinReplicas: j.Replicas, MaxReplicas: j.Replicas, Share: j.Share(),
				},
				Model: workload.NewDurationModel(j.Seconds, j.Replicas),
			})
		}
		b, err := o.Open(context.Background(), w.Cluster, jobs)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	backendtest.Run(t, backendtest.Harness{
		UnitSeconds: 1, Exact: true, NeverFails: true, OpenPools: open,
		Open: func(t testing.TB, w backendtest.World) core.Backend { return open(t, w, nil) },
	})
}

func TestAnInterruptedJobIsNotStartedByARepetition(t *testing.T) {
	s := open(t, Config{NodeEvents: []NodeEvent{{Node: "n0", At: 10 * time.Second, To: "down"}}}, 2, arrival{0, phased{100}})
	onEvents := core.Wake{BySeconds: math.Inf(1), OnEvents: true}
	if _, err := s.Next(t.Context(), onEvents); err != nil {
		t.Fatal(err)
	}
	c := start(0, seats(0, 1))
	c.Round = 1
	for range 2 { // before and after it was interrupted
		if err := s.Apply(t.Context(), []core.Change{c}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(t.Context(), onEvents); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return
		}
	}
	t.Error("the job goes on after the repetition, want the end, for nothing runs")
}

func TestNothingIsLostWithAContext(t *testing.T) {
	for name, progress := range map[string]string{"exact": exact, "per round": perRound, "back to back": backToBack} {
		t.Run(name, func(t *testing.T) {
			run := func(interrupted bool, after int) (moments []float64) {
				s := open(t, Config{Publication: Publication{Progress: progress}}, 1, arrival{0, phased{70, 170}}, arrival{30, phased{500}})
				for round := 0; ; round++ {
					var seen core.Observation
					err := context.Canceled
					if interrupted {
						seen, err = s.Next(&doneAfter{t.Context(), (round + after) % 3}, every(60))
					}
					if errors.Is(err, context.Canceled) {
						seen, err = s.Next(t.Context(), every(60))
					}
					if errors.Is(err, io.EOF) {
						return moments
					}
					if err != nil {
						t.Fatal(err)
					}
					moments = append(append(moments, seen.NowSeconds), happened(seen)...)
					startAll(t, s)
				}
			}
			for after := range 3 {
				if diff := cmp.Diff(run(false, 0), run(true, after)); diff != "" {
					t.Errorf("after %d (-in one go +interrupted):\n%s", after, diff)
				}
			}
		})
	}
}

// doneAfter is a context that ends after it was asked so often.
type doneAfter struct {
	context.Context
	left int
}

func (c *doneAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func happened(o core.Observation) (moments []float64) {
	for _, e := range o.Events {
		moments = append(moments, e.AtSeconds)
	}
	return moments
}

// startAll starts every job that was submitted, on a device of its own.
func startAll(t *testing.T, s *Simulator) {
	t.Helper()
	for id := range core.JobID(s.jobs.arrived) {
		c := start(id, seats(0, 1<<id))
		c.Round = 1
		if err := s.Apply(t.Context(), []core.Change{c}); err != nil {
			t.Fatal(err)
		}
	}
}
