package twin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/engine"
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
		if e.Added != nil {
			e.Message, e.Added = fmt.Sprintf("%v %+v", e.Message, *e.Added), nil
		}
		fmt.Fprintf(&b, "\n  %+v", e)
	}
	for _, c := range r.Changes {
		if c.Resources != nil {
			fmt.Fprintf(&b, "\n  with %+v", *c.Resources)
			c.Resources = nil
		}
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
	at       map[int]bool // after these rounds
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
	if !f.at[len(f.rounds)] {
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

func (f *forking) watch(p *core.Pipeline, w core.Backend) core.Observer {
	f.pipeline, f.world = p, w.(*sim.Simulator)
	return f
}

// rest is what becomes of a fork.
func (f *forking) rest(k *fork) []string {
	stages, err := engine.BuildStages(f.c.Config, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	var told account
	if err := k.pipeline.Decide(f.t.Context(), stages, true, core.PipelineOptions{Rounds: f.c.Round.Options(), Observers: []core.Observer{&told}, Scaling: k.world}); err != nil {
		f.t.Fatal(err)
	}
	if err := k.pipeline.Run(context.Background(), k.world); err != nil {
		f.t.Fatal(err)
	}
	return told.rounds
}

// head is a cluster of two types and jobs whose applications are known, on a simulator with a cost of restarts.
const twinHead = `
version: 1
name: twin
seed: 3
cluster: {nodes: [{name: a, count: 3, accelerator: v100, devices: 4}, {name: b, count: 2, accelerator: k80, devices: 2}]}
workload: {type: generated, config: {jobs: 60, span: 4h, applications: true}}
round: {interval: 60s}
backend: {type: simulator, config: {restart_overhead: 30s}}
`

// twinned are compositions, as what they change of the head.
var twinned = map[string]string{
	"fifo":                 "pipeline: {allocation: {type: fifo}}",
	"las on events":        "pipeline: {allocation: {type: las}}\nround: {interval: 300s, on_events: true}",
	"srtf and load":        "pipeline: {allocation: {type: srtf}, admission: [{type: load_threshold, config: {factor: 1.2}}]}",
	"tiresias":             "pipeline: {allocation: {type: tiresias}, placement: {type: consolidated}}",
	"pollux":               "pipeline: {allocation: {type: pollux}, placement: {type: proposed}, elasticity: {job: {type: goodput}}}",
	"pollux with horizons": "pipeline: {allocation: {type: pollux, config: {restart: horizon, adaptive_horizon: true}}, elasticity: {job: {type: goodput}}}",
	"noise": "pipeline: {allocation: {type: pollux}, placement: {type: proposed}, elasticity: {job: {type: goodput}}}\n" +
		"backend: {type: simulator, config: {restart_overhead: 30s, measurement_noise: {spread: 0.1, outliers: 0.05}}}",
	"failures": "pipeline: {allocation: {type: las}, placement: {type: consolidated}}\n" +
		"backend: {type: simulator, config: {restart_overhead: 30s, checkpoint_interval: 10m, failures: {mtbf: 8h, repair: 20m}}}",
	"delays": "pipeline: {allocation: {type: tiresias}}\n" +
		"backend: {type: simulator, config: {restart_overhead: 30s, start_delay: 20s, start_delay_spread: 1m, release_delay: 15s}}",
	"random placement": "pipeline: {allocation: {type: las}, placement: {type: random}}",
	"gavel":            "pipeline: {allocation: {type: gavel_max_min}}\nround: {interval: 360s}",
	"matching":         "pipeline: {allocation: {type: matching}, placement: {type: matching}, elasticity: {job: {type: throughput}}}",
	"sia":              "pipeline: {allocation: {type: sia}, placement: {type: consolidated}, elasticity: {job: {type: goodput}}}",
	"optimus":          "pipeline: {allocation: {type: optimus}, elasticity: {job: {type: goodput}}}",
	"afs":              "pipeline: {allocation: {type: afs}, elasticity: {job: {type: throughput}}}",
	"themis":           "pipeline: {allocation: {type: themis}}",
	"elastic":          "pipeline: {allocation: {type: elastic_dp}, elasticity: {job: {type: fixed, config: {replicas: elastic}}}}",
	"lucid": "pipeline: {allocation: {type: lucid}, placement: {type: consolidated}}\n" +
		"cluster: {sharing: timeslice, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"gandiva": "pipeline: {allocation: {type: gandiva}, placement: {type: gandiva_affinity}}\n" +
		"cluster: {sharing: timeslice, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"antman": "pipeline: {allocation: {type: antman}, placement: {type: antman}}\n" +
		"cluster: {sharing: timeslice, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"muri": "pipeline: {allocation: {type: muri}, placement: {type: consolidated}}\nround: {interval: 360s}\n" +
		"cluster: {sharing: timeslice, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"finish time fairness": "pipeline: {allocation: {type: finish_time_fairness}}\nround: {interval: 360s}",
	"pool": "pipeline: {allocation: {type: fifo}, elasticity: {cluster: {type: queue}}}\n" +
		"cluster: {pools: [{name: p, accelerator: v100, devices: 4, start: 2, min: 1, max: 6, down_cooldown: 10m}]}\n" +
		"backend: {type: simulator, config: {restart_overhead: 30s, pools: [{pool: p, provisioning: 2m, provisioning_spread: 1m, fails: 0.1, evictions: 6h, notice: 2m}]}}",
	"history":          "pipeline: {allocation: {type: pollux}, placement: {type: proposed}, elasticity: {job: {type: goodput, config: {knowledge: history, declared_work: false}}}}",
	"oracle":           "pipeline: {allocation: {type: pollux}, elasticity: {job: {type: goodput, config: {knowledge: oracle}}}}",
	"exact":            "pipeline: {allocation: {type: pollux}, elasticity: {job: {type: goodput, config: {knowledge: exact}}}}",
	"throughput":       "pipeline: {allocation: {type: elastic_dp}, elasticity: {job: {type: throughput, config: {knowledge: history}}}}",
	"batch rule":       "pipeline: {allocation: {type: elastic_fifo}, elasticity: {job: {type: batch_rule, config: {rule: averaged_noise, knowledge: history}}}}",
	"loss gain":        "pipeline: {allocation: {type: optimus}, elasticity: {job: {type: loss_gain}}}\nround: {interval: 60s}",
	"loss gain, tuned": "pipeline: {allocation: {type: optimus}, elasticity: {job: {type: loss_gain, config: {batch: goodput}}}}",
	"genetic":          "pipeline: {allocation: {type: pollux, config: {search: genetic, generations: 4, population: 10}}, placement: {type: proposed}, elasticity: {job: {type: goodput}}}",
	"elasticflow":      "pipeline: {allocation: {type: elasticflow}, admission: [{type: deadline}], elasticity: {job: {type: fixed, config: {replicas: elastic}}}}",
	"edf":              "pipeline: {allocation: {type: edf}, admission: [{type: deadline}]}",
	"elastic tiresias": "pipeline: {allocation: {type: elastic_tiresias}, elasticity: {job: {type: goodput}}}",
	"quota":            "pipeline: {allocation: {type: fifo}, admission: [{type: quota, config: {default_devices: 6}}]}",
	"convergence":      "pipeline: {allocation: {type: las}, admission: [{type: convergence, config: {change: 0.01, reports: 3}}]}",
	"asha":             "pipeline: {allocation: {type: fifo}, admission: [{type: quota, config: {default_jobs: 8}}, {type: asha, config: {first: 1, reduction: 3, max_step: 27}}]}",
	"hyperband":        "pipeline: {allocation: {type: fifo}, admission: [{type: hyperband, config: {reduction: 3, max_step: 27}}]}",
	"median":           "pipeline: {allocation: {type: fifo}, admission: [{type: median}]}",
	"cells": "pipeline: {allocation: {type: fifo, config: {queue: all}}, admission: [{type: virtual_clusters, config: {tenants: [{name: replicas-1, cells: [{level: node, count: 1}]}, {name: replicas-2, cells: [{level: node, count: 1}]}], others: opportunistic}}], " +
		"placement: {type: cells, config: {tenants: [{name: replicas-1, cells: [{level: node, count: 1}]}, {name: replicas-2, cells: [{level: node, count: 1}]}]}}}\n" +
		"workload: {type: generated, config: {jobs: 60, span: 4h, tenants: by_replicas}}\ncluster: {nodes: [{name: a, count: 4, accelerator: v100, devices: 4}]}",
	"buddy":         "pipeline: {allocation: {type: las}, placement: {type: buddy}}",
	"tail eviction": "pipeline: {allocation: {type: las}, placement: {type: tail_eviction}}",
	"skew":          "pipeline: {allocation: {type: tiresias}, placement: {type: tiresias_skew}}",
	"antman, published": "pipeline: {allocation: {type: antman}, placement: {type: antman, config: {loads: summed, keeps: first}}}\n" +
		"cluster: {sharing: timeslice, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"muri, published": "pipeline: {allocation: {type: muri, config: {exchange: false, steady: false}}, placement: {type: first_fit}}\nround: {interval: 600s, on_events: true}\n" +
		"cluster: {sharing: timeslice, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"fgd":            "pipeline: {allocation: {type: fifo}, placement: {type: fgd}}\ncluster: {sharing: fractional, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"fractional drf": "pipeline: {allocation: {type: drf}, placement: {type: packing}}\ncluster: {sharing: fractional, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"mig":            "pipeline: {allocation: {type: las}, placement: {type: fgd}}\ncluster: {sharing: mig, nodes: [{name: a, count: 3, accelerator: a100, devices: 4}]}",
	"scaler that counts what it gains": "pipeline: {allocation: {type: pollux}, elasticity: {job: {type: goodput, config: {knowledge: history}}, cluster: {type: goodput}}}\n" +
		"cluster: {pools: [{name: p, accelerator: v100, devices: 4, start: 2, min: 1, max: 6, down_cooldown: 10m}]}\n" +
		"backend: {type: simulator, config: {restart_overhead: 30s, pools: [{pool: p, provisioning: 2m}]}}",
	"scaler of marginal gains": "pipeline: {allocation: {type: pollux}, elasticity: {job: {type: goodput}, cluster: {type: marginal}}}\n" +
		"cluster: {pools: [{name: p, accelerator: v100, devices: 4, start: 2, min: 1, max: 6}]}\n" +
		"backend: {type: simulator, config: {restart_overhead: 30s, pools: [{pool: p, provisioning: 2m}]}}",
	"gavel pairs":  "pipeline: {allocation: {type: gavel_max_min_packed}}\nround: {interval: 360s}\ncluster: {sharing: timeslice, nodes: [{name: a, count: 3, accelerator: v100, devices: 4}]}",
	"allox":        "pipeline: {allocation: {type: allox}}\nround: {interval: 360s}",
	"fifo perf":    "pipeline: {allocation: {type: fifo_perf}}\nround: {interval: 360s}",
	"gpu fraction": "pipeline: {allocation: {type: gpu_fraction}, elasticity: {job: {type: fixed, config: {replicas: elastic}}}}",
}

// twinnedJobs change the jobs of some of these compositions.
var twinnedJobs = map[string]func(*workload.Job){
	"elasticflow":       func(j *workload.Job) { j.Spec.DeadlineSeconds = 2 * j.Spec.TotalWork },
	"edf":               func(j *workload.Job) { j.Spec.DeadlineSeconds = 2 * j.Spec.TotalWork },
	"antman":            bestEffort,
	"antman, published": bestEffort,
	"convergence":       learns,
	"asha":              learns,
	"hyperband":         learns,
	"median":            learns,
	"loss gain":         learns,
	"fgd":               partOf,
	"fractional drf":    partOf,
	"mig":               partOf,
}

// bestEffort is every third job.
func bestEffort(j *workload.Job) { j.Spec.BestEffort = j.Spec.ID%3 == 0 }

// partOf has most jobs ask for a part of a device.
func partOf(j *workload.Job) {
	if part := int(j.Spec.ID) % 4; part > 0 {
		j.Spec.Requested, j.Spec.MinReplicas, j.Spec.MaxReplicas = 1, 1, 1
		j.Spec.Share = &core.Share{Milli: 250 * part}
	}
}

// learns has every job be a trial that tells its loss.
func learns(j *workload.Job) {
	j.Spec.Experiment, j.Spec.TotalWork = "search", 60*doortest.TrialEpochs
	j.Model = doortest.TrialOf(int(j.Spec.ID))
}

// twin is one of the compositions, with its jobs.
func twin(t *testing.T, name string) *quartet.Composition {
	t.Helper()
	c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", over(t, twinHead, twinned[name]), quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Jobs, err = quartet.LoadWorkload(t.Context(), c.Config, nil); err != nil {
		t.Fatal(err)
	}
	for i := range c.Jobs.Jobs {
		if change := twinnedJobs[name]; change != nil {
			change(&c.Jobs.Jobs[i])
		}
	}
	return c
}

// A fork of a run goes on as the run does, to the byte: ten moments of each composition.
func TestAForkGoesOnAsTheRunDoes(t *testing.T) {
	for name := range twinned {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := twin(t, name)
			rounds := new(account)
			c.Observers = []core.Observer{rounds}
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.Observers = nil
			f := &forking{t: t, c: c, at: map[int]bool{}}
			for r := core.NewRand(7, "twin/"+name); len(f.at) < min(10, len(rounds.rounds)); {
				f.at[1+r.IntN(len(rounds.rounds))] = true
			}
			c.Watch = f.watch
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rounds.rounds, f.rounds); diff != "" {
				t.Fatalf("a run that is forked is another one (-run +forked):\n%.3000s", diff)
			}
			for _, k := range f.forks {
				if diff := cmp.Diff(f.rounds[k.after:], f.rest(k), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("from round %d of %d on (-run +fork):\n%.3000s", k.after, len(f.rounds), diff)
				}
			}
		})
	}
}

// over is a config with the sections of another instead of its own.
func over(t *testing.T, config, changes string) string {
	t.Helper()
	var sections, others map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(config), &sections), yaml.Unmarshal([]byte(changes), &others)); err != nil {
		t.Fatal(err)
	}
	maps.Copy(sections, others)
	text, err := yaml.Marshal(sections)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
