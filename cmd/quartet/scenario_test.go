package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/timeline"
	"github.com/quartet-sched/quartet/core/workload"
)

// scenario is a drawn cluster, workload, composition and simulated world. All its times are multiples of a unit, so that
// short rounds come with short jobs, and a run holds some hundred rounds whatever their length.
type scenario struct {
	unit    float64 // seconds
	cluster core.Cluster
	rows    []string // of a csv workload, without the header
	trains  []workload.Job
	stages  func() (core.Stages, error)
	round   core.RoundOptions
	world   sim.Config
	seed    uint64
	// mayStarve: the released placement of Blox never seats a job whose size no running sum of free devices hits, the published
	// search of Pollux may never think of a row as wide as a job needs, and jobs that take turns under LAS every round get
	// nowhere where a restart takes a round.
	mayStarve  bool
	takesTurns bool
}

const scenarioHeader = "name,submit_s,duration_s,replicas,tenant,application,min_replicas,max_replicas,accelerators\n"

var acceleratorTypes = []string{"t4", "v100", "a100"}

func drawScenario(t *rapid.T) *scenario {
	s := &scenario{seed: rapid.Uint64Range(0, 99).Draw(t, "seed")}
	s.drawRounds(t)
	s.drawCluster(t)
	s.drawJobs(t)
	s.drawTraining(t)
	s.drawMixing(t)
	s.drawStages(t)
	s.drawWorld(t)
	return s
}

func (s *scenario) drawRounds(t *rapid.T) {
	interval := rapid.SampledFrom([]time.Duration{
		time.Minute, 5 * time.Minute, 0, 100 * time.Millisecond, 300 * time.Millisecond, 1100 * time.Millisecond,
	}).Draw(t, "interval")
	s.round = core.RoundOptions{IntervalSeconds: interval.Seconds(), OnEvents: interval == 0 || rapid.IntRange(0, 2).Draw(t, "on events") == 0}
	if rapid.Bool().Draw(t, "settles") {
		s.round.Settle = core.Settling{Passes: rapid.IntRange(2, 4).Draw(t, "passes"), MakeRoom: rapid.Bool().Draw(t, "make room")}
	}
	s.unit = 1
	if interval > 0 {
		s.unit = min(s.unit, interval.Seconds()/60)
	}
}

// duration is so many units.
func (s *scenario) duration(units int) time.Duration {
	return time.Duration(float64(units) * s.unit * float64(time.Second))
}

// seconds is so many units as text.
func (s *scenario) seconds(units int) string {
	return strconv.FormatFloat(float64(units)*s.unit, 'g', -1, 64)
}

func (s *scenario) drawCluster(t *rapid.T) {
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		accelerator := rapid.SampledFrom(acceleratorTypes[:1+s.seed%3]).Draw(t, "accelerator")
		id := slices.Index(s.cluster.Accelerators, accelerator)
		if id < 0 {
			id = len(s.cluster.Accelerators)
			s.cluster.Accelerators = append(s.cluster.Accelerators, accelerator)
		}
		s.cluster.Nodes = append(s.cluster.Nodes, core.Node{
			ID: core.NodeID(i), Name: fmt.Sprintf("n%d", i), Accelerator: core.AcceleratorID(id),
			Devices: rapid.IntRange(1, 8).Draw(t, "devices"),
		})
	}
}

// drawJobs draws jobs of which some are too large, and some cannot run on any node.
func (s *scenario) drawJobs(t *rapid.T) {
	most := s.cluster.CapacityFor(&core.JobSpec{}) + 1
	for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
		replicas := rapid.IntRange(1, most).Draw(t, "replicas")
		accelerators := ""
		if rapid.IntRange(0, 2).Draw(t, "restricted") == 0 {
			accelerators = strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom(acceleratorTypes), 1, 2, rapid.ID).Draw(t, "accelerators"), "|")
		}
		s.rows = append(s.rows, fmt.Sprintf("j%d,%s,%s,%d,%s,%s,%d,%d,%s\n", i,
			s.seconds(50*rapid.IntRange(0, 40).Draw(t, "submit")), s.seconds(rapid.IntRange(1, 2000).Draw(t, "duration")), replicas,
			rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), rapid.SampledFrom([]string{"bert", "vgg"}).Draw(t, "application"),
			rapid.IntRange(1, replicas).Draw(t, "min"), replicas+rapid.IntRange(0, 3).Draw(t, "more"), accelerators))
	}
}

// settings are the values that the keys of a config may have besides their defaults.
type settings map[string][]any

func (s settings) draw(t *rapid.T, component string) map[string]any {
	raw := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if value := rapid.SampledFrom(append([]any{nil}, s[key]...)).Draw(t, component+" "+key); value != nil {
			raw[key] = value
		}
	}
	return raw
}

// pick draws a factory of a slot and its configuration, and returns the constructor of the component.
func pick[S any](t *rapid.T, id string, factories []core.Factory[S], choices map[string]settings, seed uint64) (create func() (core.Component[S], error), raw map[string]any) {
	f := rapid.SampledFrom(factories).Draw(t, id)
	raw = choices[f.Type].draw(t, f.Type)
	switch {
	case raw["inside"] == "gittins":
		raw["samples"], raw["gittins_quantum"] = []any{100.0, 900.0, 4000.0}, 500.0
	case raw["search"] == "genetic":
		raw["generations"], raw["population"] = 4, 8
	case raw["knowledge"] == "history": // of nothing yet
		raw["history_path"], raw["history_frozen"] = "no-history.yaml", true
	}
	config, problems := f.Decode(raw)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", f.Type, problems)
	}
	id += "/" + f.Type
	return func() (core.Component[S], error) {
		policy, err := f.New(config, core.Settings{ID: id, Rand: core.NewRand(seed, id), Log: slog.New(slog.DiscardHandler)})
		return core.Component[S]{ID: id, Policy: policy, OneType: f.OneType}, err
	}, raw
}

func (s *scenario) drawStages(t *rapid.T) {
	c := catalog()
	type admitter = func() (core.Component[core.Admitter], error)
	var admission []admitter
	for range rapid.IntRange(1, 2).Draw(t, "admitters") {
		a, _ := pick(t, "admission", c.Admission, map[string]settings{
			"load_threshold": {"factor": {0.5, 1.2}},
			"quota":          {"default_devices": {3}, "default_jobs": {2}},
		}, s.seed)
		admission = append(admission, a)
	}
	queue := []any{"blocking", "backfill", "all"}
	allocation, search := pick(t, "allocation", c.Allocation, map[string]settings{
		"fifo": {"queue": queue},
		"srtf": {"queue": queue, "preemptive": {false}, "weigh_by_devices": {true}},
		"las": {
			"queue": queue, "service": {"wall_time"}, "quantum_seconds": {200 * s.unit}, "starvation_after": {s.duration(600).String()},
		},
		"tiresias": {
			"queue": queue, "service": {"wall_time"}, "inside": {"running_first", "gittins"}, "promote_factor": {2.0},
			"thresholds": {[]any{500 * s.unit}, []any{300 * s.unit, 5000 * s.unit}},
		},
		"pollux": {
			"search": {"genetic"}, "fairness_p": {1.0, 0.5, 0.0, -5.0}, "reference": {"best", "one"}, "restart": {"horizon"},
			"weights": {"remaining", "attained"}, "weight_floor": {0.2}, "waiting_floor": {s.duration(600).String()},
			"adaptive_horizon": {true}, "avoid_interference": {false}, "types": {"blind"}, "restart_overhead": {s.duration(30).String(), "0s"},
		},
		"sia": {
			"power": {-2.0, 0.0, 1.0}, "restart_overhead": {s.duration(30).String(), "0s"}, "clamp_restarts": {false},
			"finish_restarts": {false}, "digits": {2}, "gap": {0.05},
		},
		"matching": {
			"values": {"raw_rate", "blind"}, "samples": {0, 4}, "kicks": {0}, "fairness": {0.5}, "urgency": {0.0, 2.0}, "moves_pay": {"for_life"},
			"restart_overhead": {s.duration(30).String(), "0s"},
		},
	}, s.seed)
	placement, fit := pick(t, "placement", c.Placement, map[string]settings{
		"consolidated":  {"strict": {true}},
		"matching":      {"values": {"raw_rate"}},
		"tail_eviction": {"fit": {"scattered", "prefix_sum"}},
		"tiresias_skew": {"skewed": {[]any{"vgg"}}},
	}, s.seed)
	elasticity, _ := pick(t, "elasticity", c.Elasticity, map[string]settings{
		"fixed": {"replicas": {"requested", "elastic"}, "split": {"proportional"}, "oracle": {true}},
		"goodput": {
			"profiled": {true}, "types": {"blind"},
			"knowledge": {"history", "oracle"}, "fixed_batch": {[]any{"narrow"}}, "declared_work": {false}, "most_replicas": {3, 8},
			"scaling_rule": {"linear", "square_root", "legew"}, "warmup_iterations": {50.0},
		},
	}, s.seed)
	scaler, _ := pick(t, "scaler", c.Scaler, nil, s.seed)
	joint := rapid.IntRange(0, 3).Draw(t, "joint") == 0
	s.mayStarve = fit["fit"] == "prefix_sum" || search["search"] == "genetic"
	if a, err := allocation(); err == nil {
		s.takesTurns = a.ID == "allocation/las"
	}

	s.stages = func() (stages core.Stages, err error) {
		for _, create := range admission {
			a, err := create()
			if err != nil {
				return stages, err
			}
			stages.Admission = append(stages.Admission, a)
		}
		if stages.Allocation, err = allocation(); err != nil {
			return stages, err
		}
		if joint {
			stages.Allocation.Policy = &proposer{Allocator: stages.Allocation.Policy}
		}
		if stages.Placement, err = placement(); err != nil {
			return stages, err
		}
		if stages.Elasticity, err = elasticity(); err != nil {
			return stages, err
		}
		stages.Scaler, err = scaler()
		return stages, err
	}
}

// proposer adds to the grants of a policy the seats that a joint policy would want: those a job has, or else the first
// free ones of a type. Every fifth job gets a proposal that no placer may follow.
type proposer struct {
	core.Allocator
	ledger core.Ledger
}

func (p *proposer) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	grants, err := p.Allocator.Allocate(ctx, v, candidates)
	grants = slices.Clone(grants)
	p.ledger.Reset(v.Cluster)
	for i := range grants {
		grants[i].Proposed = p.propose(v, &grants[i])
	}
	return grants, err
}

func (p *proposer) propose(v *core.View, g *core.Grant) []core.Seat {
	job := v.Job(g.Job)
	switch {
	case g.Job%5 == 4:
		if g.Replicas > v.Cluster.Nodes[0].Devices {
			return nil
		}
		return []core.Seat{{Node: 0, Devices: core.FirstDevices(g.Replicas)}} // whoever holds them
	case job.Held == g.Replicas && p.ledger.Occupy(job.Seats):
		return slices.Clone(job.Seats)
	}
	for t := range v.Cluster.Accelerators {
		if !job.CanRunOn(v.Cluster, core.AcceleratorID(t)) {
			continue
		}
		var seats []core.Seat
		missing := g.Replicas
		for i := range v.Cluster.Nodes {
			n := &v.Cluster.Nodes[i]
			if n.Accelerator == core.AcceleratorID(t) && missing > 0 && p.ledger.Free(n.ID) > 0 {
				seats = append(seats, p.ledger.Take(n.ID, missing))
				missing -= seats[len(seats)-1].Devices.Count()
			}
		}
		if missing == 0 {
			return seats
		}
		p.ledger.Release(seats)
	}
	return nil
}

// drawWorld draws costs and failures. Every node that fails comes back, so that every job can end.
func (s *scenario) drawWorld(t *rapid.T) {
	s.world = sim.Config{
		Cost:            restart.Cost{RestartOverhead: s.duration(rapid.SampledFrom([]int{0, 10, 30}).Draw(t, "overhead"))},
		FreeFirstStart:  rapid.Bool().Draw(t, "free first start"),
		LocalityPenalty: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "locality"),
		Interference:    rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "interference"),
		StallAfter:      s.duration(24 * 60 * 60),
	}
	s.mayStarve = s.mayStarve || s.takesTurns && s.world.RestartOverhead.Seconds() >= s.round.IntervalSeconds
	if rapid.Bool().Draw(t, "checkpoints") {
		s.world.CheckpointInterval = s.duration(300)
	}
	for range rapid.IntRange(0, 4).Draw(t, "outages") {
		node := s.cluster.Nodes[rapid.IntRange(0, len(s.cluster.Nodes)-1).Draw(t, "node")].Name
		at := rapid.IntRange(0, 3000).Draw(t, "at")
		s.world.NodeEvents = append(s.world.NodeEvents,
			sim.NodeEvent{Node: node, At: s.duration(at), To: rapid.SampledFrom([]string{"down", "draining"}).Draw(t, "to")},
			sim.NodeEvent{Node: node, At: s.duration(at + rapid.IntRange(1, 2000).Draw(t, "outage")), To: "ready"})
	}
	if rapid.IntRange(0, 4).Draw(t, "failures") == 0 {
		s.world.Failures = sim.Failures{MTBF: s.duration(7200), Repair: s.duration(300)}
	}
	if s.round.IntervalSeconds > 0 && !s.round.OnEvents && rapid.IntRange(0, 3).Draw(t, "published") == 0 {
		s.world.Publication = rapid.SampledFrom([]sim.Publication{
			{FirstRound: "one_interval", Progress: "per_round"},
			{FirstRound: "start", Progress: "per_round"},
			{Completion: "next_round"},
		}).Draw(t, "publication")
		if s.unit == 1 && s.world.Publication.Progress == "per_round" && rapid.Bool().Draw(t, "whole seconds") {
			s.world.Publication.EpochEnds = "whole_seconds"
		}
	}
}

// mostRounds is far above what a scenario takes: about 30 jobs of at most 34 rounds each, one after another, and events.
const mostRounds = 20_000

// roundLimit ends a run that would never end by itself.
type roundLimit struct{}

func (roundLimit) ObserveRound(r *core.Report) error {
	if r.View.Round > mostRounds {
		return fmt.Errorf("more than %d rounds, now at %v s", mostRounds, r.View.NowSeconds)
	}
	return nil
}

// run simulates the scenario with its rows in an order, and returns the output files: jobs, rounds, decisions, and those of the
// timeline.
func (s *scenario) run(dir string, rows []string, observers ...core.Observer) ([]string, error) {
	path := filepath.Join(dir, "jobs.csv")
	if err := os.WriteFile(path, []byte(scenarioHeader+strings.Join(rows, "")), 0o600); err != nil {
		return nil, err
	}
	ctx := context.Background()
	f := workload.NewCSV()
	config, problems := f.Decode(map[string]any{"path": path})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	source, err := f.New(config, core.Settings{})
	if err != nil {
		return nil, err
	}
	jobs, err := source.Load(ctx)
	if err != nil {
		return nil, err
	}
	s.addTraining(jobs)
	stages, err := s.stages()
	if err != nil {
		return nil, err
	}
	opener, err := sim.NewSimulator().New(&s.world, core.Settings{Rand: core.NewRand(s.seed, "backend/simulator")})
	if err != nil {
		return nil, err
	}
	cluster := s.cluster
	cluster.Nodes = slices.Clone(s.cluster.Nodes)
	world, err := opener.Open(ctx, &cluster, jobs)
	if err != nil {
		return nil, err
	}
	var files [3]bytes.Buffer
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: &files[0], Rounds: &files[1], Decisions: &files[2]})
	var timelines [4]bytes.Buffer
	recorder := timeline.NewRecorder(&cluster, timeline.Outputs{
		Timeline: &timelines[0], Nodes: &timelines[1], Usage: &timelines[2], Training: &timelines[3],
		Truth: workload.NewTrainings(&cluster, jobs).At,
	})
	p := core.NewPipeline(&cluster, stages, core.PipelineOptions{Rounds: s.round, Observers: append(observers, collector, recorder, roundLimit{})})
	if err := p.Run(ctx, world); err != nil {
		return nil, err
	}
	if _, err := collector.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
		return nil, err
	}
	if err := recorder.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
		return nil, err
	}
	list := []string{files[0].String(), files[1].String(), files[2].String()}
	for i := range timelines {
		list = append(list, timelines[i].String())
	}
	return list, nil
}
