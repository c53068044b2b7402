package twin_test

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// Policies of a future are told of as many steps as those of the run, of jobs that are there and of jobs like earlier ones, though what was declared is wrong.
func TestFuturesTellTheStepsThatTheRunTells(t *testing.T) {
	c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", `
version: 1
name: twin
cluster: {nodes: [{name: n, count: 4, accelerator: t4, devices: 4}]}
workload: {type: generated, config: {jobs: 60, span: 2h, applications: true}}
estimate: {source: noisy, sigma: 1.4}
pipeline: {allocation: {type: las}}
`, quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := twin.NewWorkloadModel(twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent})
	told, running, exhausted, arrivals := map[string]float64{}, 0, 0, 0
	c.Observers = append(c.Observers, observer(func(r *core.Report) error {
		for _, e := range r.Events {
			if e.Kind == core.JobSubmitted {
				told[e.Spec.Application] = max(told[e.Spec.Application], e.StepsLeft)
			}
		}
		if err := b.ObserveRound(r); err != nil || r.View.Round%25 != 0 {
			return err
		}
		w := b.Draw(r.View, 1, 1, 3600)
		for _, of := range w.Jobs {
			j := r.View.Job(of.ID)
			done, phase := j.WorkDone(r.View.NowSeconds), 0
			for phase < of.Model.Phases()-1 && of.Model.PhaseEnd(phase) <= done {
				phase++
			}
			switch got := of.Model.StepsLeft(phase); {
			case math.IsNaN(j.StepsLeft):
				t.Errorf("%s tells no steps", j.Name)
			case got != j.StepsLeft:
				t.Errorf("%s has %v steps left after %v, in a future %v", j.Name, j.StepsLeft, done, got)
			}
			if done > 0 {
				running++
			}
			if j.StepsLeft == 0 {
				exhausted++
			}
		}
		for _, a := range w.Arrivals {
			arrivals++
			if got := a.Model.StepsLeft(0); !(got <= told[a.Spec.Application]) {
				t.Errorf("a job of %s comes with %v steps, and none told of more than %v", a.Spec.Application, got, told[a.Spec.Application])
			}
		}
		return nil
	}))
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if min(running, exhausted, arrivals) < 10 {
		t.Errorf("%d jobs that ran, %d that outlived what they declared, %d that come: too few to tell", running, exhausted, arrivals)
	}
}
