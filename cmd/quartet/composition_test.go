package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
)

// scenario is a drawn cluster, workload, composition and simulated world.
type scenario struct {
	cluster core.Cluster
	rows    []string // of a csv workload, without the header
	stages  func() (core.Stages, error)
	round   core.RoundOptions
	world   sim.Config
	seed    uint64
	// mayStarve: the released placement of Blox never seats a job whose size no running sum of free devices hits.
	mayStarve bool
}

const compositionHeader = "name,submit_s,duration_s,replicas,tenant,min_replicas,max_replicas\n"

// pick draws a factory of a slot and one of its configurations, and returns the constructor of the component.
func pick[S any](t *rapid.T, stage string, factories []core.Factory[S], options map[string][]map[string]any, seed uint64) (create func() (core.Component[S], error), label string) {
	f := rapid.SampledFrom(factories).Draw(t, stage)
	raw := map[string]any(nil)
	if choices := options[f.Type]; len(choices) > 0 {
		raw = rapid.SampledFrom(choices).Draw(t, f.Type+" config")
	}
	config, problems := f.Decode(raw)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", f.Type, problems)
	}
	id := stage + "/" + f.Type
	return func() (core.Component[S], error) {
		policy, err := f.New(config, core.Settings{ID: id, Rand: core.NewRand(seed, id), Log: slog.New(slog.DiscardHandler)})
		return core.Component[S]{ID: id, Policy: policy}, err
	}, fmt.Sprint(f.Type, raw)
}

func queues(extra ...string) []map[string]any {
	choices := []map[string]any{{}, {"queue": "blocking"}, {"queue": "backfill"}, {"queue": "all"}}
	for _, pair := range extra {
		key, value, _ := strings.Cut(pair, "=")
		choices = append(choices, map[string]any{key: value})
	}
	return choices
}

func drawScenario(t *rapid.T) *scenario {
	s := &scenario{seed: rapid.Uint64Range(0, 99).Draw(t, "seed")}
	s.cluster.Accelerators = []string{"t4"}
	devices := 0
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		n := rapid.IntRange(1, 8).Draw(t, "devices")
		s.cluster.Nodes = append(s.cluster.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("n%d", i), Devices: n})
		devices += n
	}
	for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
		replicas := rapid.IntRange(1, devices+1).Draw(t, "replicas") // now and then too many
		least := rapid.IntRange(1, replicas).Draw(t, "min")
		s.rows = append(s.rows, fmt.Sprintf("j%d,%d,%d,%d,%s,%d,%d\n", i,
			rapid.IntRange(0, 40).Draw(t, "submit")*50, rapid.IntRange(1, 2000).Draw(t, "duration"), replicas,
			rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), least, replicas+rapid.IntRange(0, 3).Draw(t, "more")))
	}
	s.round = rapid.SampledFrom([]core.RoundOptions{
		{IntervalSeconds: 60}, {IntervalSeconds: 300}, {IntervalSeconds: 60, OnEvents: true}, {OnEvents: true},
	}).Draw(t, "round")
	s.drawStages(t)
	s.drawWorld(t)
	return s
}

func (s *scenario) drawStages(t *rapid.T) {
	c := catalog()
	admission, _ := pick(t, "admission", c.Admission, map[string][]map[string]any{
		"load_threshold": {{"factor": 0.5}, {"factor": 1.2}},
		"quota":          {{"default_devices": 3}, {"default_jobs": 2}},
	}, s.seed)
	allocation, _ := pick(t, "allocation", c.Allocation, map[string][]map[string]any{
		"fifo": queues(), "srtf": queues("weigh_by_devices=true")[:4], "las": queues("service=wall_time", "starvation_after=10m"),
		"tiresias": {{}, {"thresholds": []any{500.0, 5000.0}}, {"inside": "running_first", "thresholds": []any{800.0}}, {"promote_factor": 2.0, "thresholds": []any{300.0}}},
	}, s.seed)
	placement, label := pick(t, "placement", c.Placement, map[string][]map[string]any{
		"consolidated":  {{}, {"strict": true}},
		"tail_eviction": {{"fit": "scattered"}, {"fit": "prefix_sum"}},
	}, s.seed)
	elasticity, _ := pick(t, "elasticity", c.Elasticity, map[string][]map[string]any{
		"fixed": {{"replicas": "requested"}, {"replicas": "elastic"}},
	}, s.seed)
	scaler, _ := pick(t, "scaler", c.Scaler, nil, s.seed)
	s.mayStarve = strings.Contains(label, "prefix_sum")
	s.stages = func() (core.Stages, error) {
		var stages core.Stages
		a, err := admission()
		if err != nil {
			return stages, err
		}
		stages.Admission = append(stages.Admission, a)
		if stages.Allocation, err = allocation(); err != nil {
			return stages, err
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

// drawWorld draws costs and failures. Every node that fails comes back, so that every job can end.
func (s *scenario) drawWorld(t *rapid.T) {
	s.world = sim.Config{
		RestartOverhead: time.Duration(rapid.SampledFrom([]int{0, 10, 30}).Draw(t, "overhead")) * time.Second,
		LocalityPenalty: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "locality"),
		Interference:    rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "interference"),
		StallAfter:      24 * time.Hour,
	}
	if rapid.Bool().Draw(t, "checkpoints") {
		s.world.CheckpointInterval = 5 * time.Minute
	}
	for range rapid.IntRange(0, 4).Draw(t, "outages") {
		node := s.cluster.Nodes[rapid.IntRange(0, len(s.cluster.Nodes)-1).Draw(t, "node")].Name
		at := time.Duration(rapid.IntRange(0, 3000).Draw(t, "at")) * time.Second
		s.world.NodeEvents = append(s.world.NodeEvents,
			sim.NodeEvent{Node: node, At: at, To: rapid.SampledFrom([]string{"down", "draining"}).Draw(t, "to")},
			sim.NodeEvent{Node: node, At: at + time.Duration(rapid.IntRange(1, 2000).Draw(t, "outage"))*time.Second, To: "ready"})
	}
	if rapid.IntRange(0, 4).Draw(t, "failures") == 0 {
		s.world.Failures = sim.Failures{MTBF: 2 * time.Hour, Repair: 5 * time.Minute}
	}
	if s.round.IntervalSeconds > 0 && !s.round.OnEvents && rapid.IntRange(0, 3).Draw(t, "published") == 0 {
		s.world.Publication = rapid.SampledFrom([]sim.Publication{
			{FirstRound: "one_interval", Progress: "per_round", EpochEnds: "whole_seconds"},
			{FirstRound: "start", Progress: "per_round"}, {Completion: "next_round"},
		}).Draw(t, "publication")
	}
}

// run simulates the scenario with its rows in an order, and returns the three output files.
func (s *scenario) run(dir string, rows []string, observers ...core.Observer) ([]string, error) {
	path := filepath.Join(dir, "jobs.csv")
	if err := os.WriteFile(path, []byte(compositionHeader+strings.Join(rows, "")), 0o600); err != nil {
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
	stages, err := s.stages()
	if err != nil {
		return nil, err
	}
	opener, err := sim.NewSimulator().New(&s.world, core.Settings{Rand: core.NewRand(s.seed, "backend/simulator")})
	if err != nil {
		return nil, err
	}
	cluster := s.cluster
	cluster.Nodes = append([]core.Node(nil), s.cluster.Nodes...)
	world, err := opener.Open(ctx, &cluster, jobs)
	if err != nil {
		return nil, err
	}
	var files [3]bytes.Buffer
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: &files[0], Rounds: &files[1], Decisions: &files[2]})
	p := core.NewPipeline(&cluster, stages, s.round, nil, append(observers, collector)...)
	if err := p.Run(ctx, world); err != nil {
		return nil, err
	}
	if _, err := collector.Finish(p.Unfinished(), p.NowSeconds()); err != nil {
		return nil, err
	}
	return []string{files[0].String(), files[1].String(), files[2].String()}, nil
}

// auditor keeps books of its own about every job, from events and changes alone.
type auditor struct {
	t        *rapid.T
	held     map[core.JobID]int
	since    map[core.JobID]float64
	attained map[core.JobID]float64
	ended    map[core.JobID]core.JobState
	seen     map[core.JobID]bool
}

func newAuditor(t *rapid.T) *auditor {
	return &auditor{
		t: t, held: map[core.JobID]int{}, since: map[core.JobID]float64{}, attained: map[core.JobID]float64{},
		ended: map[core.JobID]core.JobState{}, seen: map[core.JobID]bool{},
	}
}

func (a *auditor) hold(id core.JobID, devices int, now float64) {
	a.attained[id] += float64(a.held[id]) * (now - a.since[id])
	a.held[id], a.since[id] = devices, now
}

func (a *auditor) ObserveRound(r *core.Report) error {
	for _, e := range r.Events {
		switch e.Kind {
		case core.JobSubmitted:
			a.seen[e.Job] = true
		case core.JobFinished, core.JobFailed, core.JobInterrupted:
			a.hold(e.Job, 0, e.AtSeconds)
		}
	}
	for _, c := range r.Changes {
		switch c.Action {
		case core.Stop:
			a.hold(c.Job, 0, r.View.NowSeconds)
		case core.Start, core.Move:
			a.hold(c.Job, core.Replicas(c.Seats), r.View.NowSeconds)
		}
	}
	for _, j := range r.Ended {
		if state, again := a.ended[j.ID]; again {
			a.t.Errorf("job %q ended twice: %v, then %v", j.Name, state, j.State)
		}
		a.ended[j.ID] = j.State
		if math.Abs(j.Attained-a.attained[j.ID]) > 1e-6 {
			a.t.Errorf("job %q attained %v device-seconds, the books say %v", j.Name, j.Attained, a.attained[j.ID])
		}
	}
	var taken core.Ledger
	taken.Reset(r.View.Cluster)
	for _, j := range r.View.Jobs {
		if j == nil || j.State != core.Running {
			continue
		}
		if j.Held != a.held[j.ID] || j.Held != core.Replicas(j.Seats) {
			a.t.Errorf("job %q holds %d devices, the books say %d", j.Name, j.Held, a.held[j.ID])
		}
		if !taken.Occupy(j.Seats) {
			a.t.Errorf("round %d: job %q sits on devices that are not free", r.View.Round, j.Name)
		}
	}
	return nil
}

func TestEveryCompositionKeepsTheInvariants(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		audit := newAuditor(t)
		files, err := s.run(dir, s.rows, audit)
		if err != nil {
			t.Fatal(err)
		}
		if len(audit.seen) != len(s.rows) {
			t.Errorf("%d jobs submitted, want %d", len(audit.seen), len(s.rows))
		}
		if rows := strings.Count(files[0], "\n") - 1; rows != len(s.rows) {
			t.Errorf("jobs.csv has %d rows, want %d", rows, len(s.rows))
		}
		if !s.mayStarve && len(audit.ended) != len(s.rows) {
			t.Errorf("%d jobs ended, want %d\n%s\n%s\n%s", len(audit.ended), len(s.rows), files[0], files[1], files[2])
		}
		permuted, err := s.run(dir, rapid.Permutation(s.rows).Draw(t, "permutation"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, permuted); diff != "" {
			t.Errorf("permuting the rows of the workload changes the run (-as drawn +permuted):\n%s", diff)
		}
	})
}
