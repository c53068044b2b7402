package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/plugins/loopback"
)

// eavesdropper notes what jobs are told to be.
type eavesdropper struct{ told map[string]float64 }

func (e eavesdropper) ObserveRound(r *core.Report) error {
	for i := range r.Events {
		if ev := &r.Events[i]; ev.Kind == core.JobSubmitted {
			e.told[ev.Spec.Name] = ev.Spec.TotalWork
		}
	}
	return nil
}

// A policy behind the wire is told the estimate, and decides as the built-in one that is told it.
func TestEstimatesThroughTheWire(t *testing.T) {
	load := func(sets ...string) *configs.Config {
		all := append([]string{"pipeline.allocation={type: srtf}", "workload={type: generated, config: {jobs: 60}}", "pipeline.elasticity.job={type: fixed}"}, sets...)
		c, err := configs.Load(catalog(), configs.Options{Sets: all})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	files := func(c *configs.Config, wired bool) [3]string {
		jobs, err := quartet.LoadWorkload(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if wired {
			return filesOf(t, c, jobs, remoteStages(t, loopback.Dial, c))
		}
		stages, err := engine.BuildStages(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return filesOf(t, c, jobs, stages)
	}
	noisy := load("estimate={source: noisy, sigma: 1}")
	direct := files(noisy, false)
	if diff := cmp.Diff(direct, files(noisy, true)); diff != "" {
		t.Errorf("files through the wire (-built in +wire):\n%s", diff)
	}
	if truth := files(load(), true); truth[0] == direct[0] {
		t.Error("a policy behind the wire decides as if it knew the truth")
	}
}

// Metrics know the truth where a job does not: rho of a job that is told to be twice as long is that of the job as it is.
func TestMeasuresKnowTheTruth(t *testing.T) {
	rho := func(sets ...string) metrics.Number {
		listener := eavesdropper{map[string]float64{}}
		c, err := quartet.Load(catalog(), quartet.Options{Sets: append([]string{
			"pipeline.allocation={type: fifo}", "workload={type: generated, config: {jobs: 60}}", "pipeline.elasticity.job={type: fixed}",
		}, sets...)})
		if err != nil {
			t.Fatal(err)
		}
		c.Observers = append(c.Observers, listener)
		r, err := c.Simulate(t.Context())
		if err != nil || len(listener.told) != 60 {
			t.Fatalf("%d jobs, error %v", len(listener.told), err)
		}
		return r.Summary.Fairness.RhoMean
	}
	if truth, noisy := rho(), rho("estimate={source: noisy, sigma: 2}"); truth != noisy || math.IsNaN(float64(truth)) {
		t.Errorf("rho %v by the truth, %v with estimates", truth, noisy)
	}
}
