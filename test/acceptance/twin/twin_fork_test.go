package twin_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// published are compositions of publications whose runs brought to light what forks lacked.
var published = []string{
	"papers/muri-sigcomm22/antman.yaml", "papers/muri-sigcomm22/muri-l.yaml", "papers/muri-sigcomm22/ours.yaml",
	"papers/pollux-osdi21/pollux-history.yaml", "papers/pollux-osdi21/pollux-known.yaml", "papers/pollux-osdi21/pollux-unknown.yaml",
}

// A fork of a run of a publication goes on as the run does.
func TestAForkOfAPublicationGoesOnAsItsRunDoes(t *testing.T) {
	refdata.Path(t, "data")
	for _, name := range published {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sets []string
			if strings.HasSuffix(name, "history.yaml") {
				sets = append(sets, "pipeline.elasticity.job.config.history_path="+filepath.Join(t.TempDir(), "pool.yaml"))
			}
			c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{name}, Sets: sets, Env: os.LookupEnv})
			if err != nil {
				t.Fatal(err)
			}
			f := &forking{t: t, c: c, at: map[int]bool{20: true, 77: true, 300: true}}
			c.Watch = f.watch
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, k := range f.forks {
				if diff := cmp.Diff(f.rounds[k.after:], f.rest(k), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("from round %d of %d on (-run +fork):\n%.3000s", k.after, len(f.rounds), diff)
				}
			}
			if len(f.forks) < 3 {
				t.Errorf("%d forks", len(f.forks))
			}
		})
	}
}

// together are compositions whose stages share with their forks what changes later.
var together = map[string]bool{
	"history": true, "batch rule": true, "exact": true, "genetic": true, "muri": true, "antman, published": true, "cells": true, "mig": true, "loss gain, tuned": true,
}

// Several futures that begin with the same fork go on as the run does, at the same time as the run.
func TestForksGoOnTogether(t *testing.T) {
	for name := range together {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := twin(t, name)
			f := &forking{t: t, c: c, at: map[int]bool{}}
			var group sync.WaitGroup
			rests := make([][]string, 4)
			const after = 25
			c.Watch = func(p *core.Pipeline, w core.Backend) core.Observer {
				return observers{f.watch(p, w), func(*core.Report) error {
					if len(f.rounds) != after {
						return nil
					}
					kept := p.Fork()
					for i := range rests {
						world, err := w.(*sim.Simulator).Fork(kept.View().Cluster)
						if err != nil {
							return err
						}
						group.Go(func() { rests[i] = f.rest(&fork{after, kept.Fork(), world}) })
					}
					return nil
				}}
			}
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			group.Wait()
			for _, rest := range rests {
				if diff := cmp.Diff(f.rounds[after:], rest); diff != "" {
					t.Fatalf("(-run +fork):\n%.3000s", diff)
				}
			}
		})
	}
}

type observers struct {
	first core.Observer
	then  func(*core.Report) error
}

func (o observers) ObserveRound(r *core.Report) error {
	if err := o.first.ObserveRound(r); err != nil {
		return err
	}
	return o.then(r)
}

// A fork writes no history, whoever ends the stages that were made for it, and other policies take over from what was learned.
func TestAForkLeavesNothingBehind(t *testing.T) {
	pool := filepath.Join(t.TempDir(), "pool.yaml")
	const pipeline = "pipeline: {allocation: {type: pollux}, elasticity: {job: {type: goodput, config: {knowledge: history, history_path: "
	c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", over(t, twinHead, pipeline+pool+"}}}}"), quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var forked, other *core.Pipeline
	c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		return observers{new(account), func(r *core.Report) error {
			if r.View.Round == 100 {
				forked, other = p.Fork(), p.Fork()
			}
			return nil
		}}
	}
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pool); err != nil {
		t.Fatalf("the run: %v", err)
	}
	for name, tc := range map[string]struct {
		pipeline *core.Pipeline
		same     bool
	}{"a second instance": {forked, true}, "one that takes over": {other, false}} {
		stages, err := engine.BuildStages(c.Config, nil)
		if err != nil {
			t.Fatal(err)
		}
		made := stages.Elasticity.Policy
		if err := tc.pipeline.Decide(context.Background(), stages, tc.same, core.PipelineOptions{Rounds: c.Round.Options()}); err != nil {
			t.Fatal(err)
		}
		if stages.Elasticity.Policy != made {
			t.Errorf("%s: whoever made a stage ends another one", name)
		}
		if !tc.same {
			s, err := made.(core.Snapshotter).Snapshot()
			if err != nil || len(s) < 1000 {
				t.Errorf("%s: it learned %s, %v", name, s, err)
			}
			continue
		}
		if err := engine.CloseStages(&stages); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(pool); !os.IsNotExist(err) {
			t.Errorf("%s: it wrote a history: %v", name, err)
		}
	}
}
