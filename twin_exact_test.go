package quartet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
)

// account is what was told of the rounds of a run, in words.
type account struct{ rounds []string }

func (a *account) ObserveRound(r *core.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v %v %v", r.View.Round, r.View.NowSeconds, r.DevicesUsed, r.GapRatio)
	for _, e := range r.Events {
		if e.Spec != nil {
			e.Message, e.Spec = e.Message+e.Spec.Name, nil
		}
		fmt.Fprintf(&b, "\n  %+v", e)
	}
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "\n  %+v", c)
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "\n  %+v", v)
	}
	for _, j := range r.Ended {
		fmt.Fprintf(&b, "\n  ended %d %v %v %v %d %d", j.ID, j.State, j.FinishSeconds, j.Attained, j.Restarts, j.Preemptions)
	}
	for _, t := range r.Scaled {
		fmt.Fprintf(&b, "\n  %+v", t)
	}
	a.rounds = append(a.rounds, b.String())
	return nil
}

// forking forks a run after some of its rounds.
type forking struct {
	account
	t        *testing.T
	c        *quartet.Composition
	every    int
	pipeline *core.Pipeline
	world    *sim.Simulator
	forks    []*fork
}

type fork struct {
	after    int // rounds
	pipeline *core.Pipeline
	world    *sim.Simulator
}

func (f *forking) ObserveRound(r *core.Report) error {
	if err := f.account.ObserveRound(r); err != nil {
		return err
	}
	if r.View.Round%f.every != 1 {
		return nil
	}
	p := f.pipeline.Fork()
	world, err := f.world.Fork(p.View().Cluster)
	if err != nil {
		return err
	}
	f.forks = append(f.forks, &fork{len(f.rounds), p, world})
	return nil
}

// rest is what becomes of a fork.
func (f *forking) rest(k *fork) []string {
	stages, err := quartet.BuildStages(f.c.Config, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	var told account
	if err := k.pipeline.Decide(f.t.Context(), stages, f.c.Round.Options(), true, &told); err != nil {
		f.t.Fatal(err)
	}
	k.pipeline.ScaleBy(k.world)
	if err := k.pipeline.Run(context.Background(), k.world); err != nil {
		f.t.Fatal(err)
	}
	return told.rounds
}

var twinned = map[string]string{
	"fifo":   "pipeline: {allocation: {type: fifo}}",
	"las":    "pipeline: {allocation: {type: las}}",
	"pollux": `pipeline: {allocation: {type: pollux}, placement: {type: consolidated}, elasticity: {job: {type: goodput}}}`,
}

// A fork of a run goes on as the run does, to the byte.
func TestAForkGoesOnAsTheRunDoes(t *testing.T) {
	for name, pipeline := range twinned {
		t.Run(name, func(t *testing.T) {
			config := "version: 1\nname: twin\nseed: 3\ncluster: {nodes: [{name: n, count: 4, accelerator: v100, devices: 4}]}\nworkload: {type: generated, config: {jobs: 60, span: 4h}}\nround: {interval: 60s}\n" +
				"backend: {type: simulator, config: {restart_overhead: 30s}}\n" + pipeline
			c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := &forking{t: t, c: c, every: 17}
			c.Watch = func(p *core.Pipeline, w core.Backend) core.Observer {
				f.pipeline, f.world = p, w.(*sim.Simulator)
				return f
			}
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, k := range f.forks {
				if diff := cmp.Diff(f.rounds[k.after:], f.rest(k)); diff != "" {
					t.Fatalf("from round %d on (-run +fork):\n%.3000s", k.after, diff)
				}
			}
			t.Logf("%d rounds, %d forks", len(f.rounds), len(f.forks))
		})
	}
}
