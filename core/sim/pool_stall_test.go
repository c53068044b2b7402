package sim

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

// wants is a scaler that wants so many nodes of each pool from a moment on, and the least before that.
type wants struct {
	nodes int
	from  float64
}

func (w wants) Scale(_ context.Context, v *core.View, _ *core.Plan) (target core.ClusterTarget, _ error) {
	for i := range v.Cluster.Pools {
		p := &v.Cluster.Pools[i]
		t := core.PoolTarget{Pool: p.Name, Nodes: p.Min}
		if v.NowSeconds >= w.from {
			t.Nodes = w.nodes
		}
		target.Pools = append(target.Pools, t)
	}
	return target, nil
}

// A run ends when nodes of a pool never come, or never for long enough, and not while what is waited for does come.
func TestARunThatWaitsForNodesInVainEnds(t *testing.T) {
	const day, second = 24 * time.Hour, time.Second
	for name, tc := range map[string]struct {
		world    Pool
		pool     core.Pool
		config   Config
		scaler   wants
		work     float64
		submits  []float64
		interval float64 // 0: on events only
		done     bool
		asked    bool    // that is why it ends
		ends     float64 // seconds, at least
		rounds   int     // at most
	}{
		"no node comes":                       {world: Pool{Provisioning: 90 * second, Fails: 1}, interval: 60, asked: true, rounds: 25_000},
		"no node comes, asked at once":        {world: Pool{Provisioning: second, Fails: 1}, asked: true, rounds: 25_000},
		"no node comes for years":             {world: Pool{Provisioning: 100_000 * time.Hour, Fails: 1}, interval: 3600, rounds: 800},
		"it comes, and is taken away at once": {world: Pool{Provisioning: 90 * second, Evictions: 5 * second}, config: Config{Cost: restart.Cost{RestartOverhead: time.Hour}}, interval: 60, asked: true, rounds: 25_000},
		"it is taken away before the node is": {world: Pool{Provisioning: 90 * second, Evictions: 60 * second, Notice: 60 * second}, config: Config{Cost: restart.Cost{RestartOverhead: 2 * time.Hour}}, interval: 60, asked: true, rounds: 40_000},
		"another job to come is waited for":   {world: Pool{Provisioning: 6 * time.Hour, Fails: 1}, submits: []float64{0, 200 * 86400}, interval: 36000, ends: 230 * 86400, rounds: 4000},
		"one of two comes":                    {world: Pool{Provisioning: 90 * second, Fails: 0.5}, interval: 60, done: true, rounds: 100},
		"one of a hundred comes":              {world: Pool{Provisioning: 90 * second, Fails: 0.99}, interval: 60, done: true, rounds: 4000},
		"one of two comes after weeks":        {world: Pool{Provisioning: 29 * day, Fails: 0.3}, interval: 3600, done: true, rounds: 3000},
		"it comes after years":                {world: Pool{Provisioning: 3 * 365 * day}, interval: 36000, done: true, rounds: 3000},
		"and takes hours to begin with":       {world: Pool{Provisioning: 40 * day}, config: Config{Cost: restart.Cost{RestartOverhead: 5 * time.Hour}}, interval: 60, done: true, rounds: 60_000},
		"a cool-down is waited for":           {world: Pool{Provisioning: 90 * second, Evictions: 10 * time.Hour}, pool: core.Pool{UpCooldownSeconds: 40 * 86400}, work: 90_000, interval: 36000, done: true, rounds: 1000},
		"a price is waited for":               {world: Pool{Provisioning: 90 * second}, pool: core.Pool{Prices: []core.Price{{FromSeconds: 90 * 86400, PerHour: 1}}}, scaler: wants{from: 90 * 86400}, interval: 3600, done: true, rounds: 2300},
		"after the last price is no price":    {world: Pool{Provisioning: 90 * second}, pool: core.Pool{Prices: []core.Price{{FromSeconds: 90 * 86400, PerHour: 1}}}, scaler: wants{from: 130 * 86400}, interval: 3600, rounds: 2900},
		"a gap between jobs":                  {world: Pool{Provisioning: 90 * second}, submits: []float64{0, 100 * 86400}, interval: 3600, done: true, rounds: 2500},
		"a repair is waited for":              {world: Pool{Provisioning: 90 * second}, config: Config{NodeEvents: []NodeEvent{{"own", 0, "down"}, {"own", 100 * day, "ready"}}}, scaler: wants{from: 1e12}, interval: 3600, done: true, rounds: 2500},
		"nobody asks for nodes":               {world: Pool{Provisioning: 90 * second}, scaler: wants{from: 1e12}, interval: 3600, rounds: 721},
		"a node of its own while others fail": {world: Pool{Provisioning: second, Fails: 1}, config: Config{NodeEvents: []NodeEvent{{"own", 0, "ready"}}}, work: 6000, interval: 3600, done: true, rounds: 13_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &core.Cluster{Accelerators: []string{"t4"}}
			p := tc.pool
			p.Name, p.Devices, p.Max = "p", 1, 1
			c.Pools = []core.Pool{p}
			c.Nodes = []core.Node{{Name: "own", Devices: 1}}
			config := tc.config
			config.StallAfter, tc.world.Pool = 30*day, "p"
			config.Pools = []Pool{tc.world}
			if len(config.NodeEvents) == 0 {
				config.NodeEvents = []NodeEvent{{"own", 0, "down"}}
			}
			if err := config.Validate(); err != nil {
				t.Fatal(err)
			}
			if tc.work == 0 {
				tc.work = 100
			}
			if tc.submits == nil {
				tc.submits = []float64{0}
			}
			jobs := &workload.Workload{}
			for i, at := range tc.submits {
				jobs.Jobs = append(jobs.Jobs, workload.Job{
					Spec:  core.JobSpec{ID: core.JobID(i), Name: "j", SubmitSeconds: at, Weight: 1, TotalWork: tc.work, Requested: 1, MinReplicas: 1, MaxReplicas: 1},
					Model: workload.NewDurationModel(tc.work, 1),
				})
			}
			backend, err := (&opener{config, core.Settings{ID: "sim", Rand: core.NewRand(1, "sim"), Seed: 1}}).Open(t.Context(), c, jobs)
			if err != nil {
				t.Fatal(err)
			}
			stages := backendtest.FIFO()
			tc.scaler.nodes = 1
			stages.Scaler = core.Component[core.ClusterScaler]{ID: "scaler/wants", Policy: tc.scaler}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rounds := &roundsOf{most: tc.rounds, over: cancel}
			pipeline := core.NewPipeline(c, stages, core.PipelineOptions{
				Rounds:    core.RoundOptions{IntervalSeconds: tc.interval, OnEvents: true},
				Observers: []core.Observer{rounds},
				Scaling:   backend.(core.Scaling),
			})
			if err := pipeline.Run(ctx, backend); err != nil {
				t.Fatalf("after %d rounds, at %v s: %v", rounds.held, pipeline.NowSeconds(), err)
			}
			if left := pipeline.Unfinished(); (len(left) == 0) != tc.done {
				t.Errorf("%d jobs are left after %d rounds, at %v s", len(left), rounds.held, pipeline.NowSeconds())
			}
			if pipeline.NowSeconds() < tc.ends {
				t.Errorf("the run ends at %v s, want %v s at least", pipeline.NowSeconds(), tc.ends)
			}
			if said := backend.(*Simulator).GaveUpReason(); (said != "") != tc.asked {
				t.Errorf("%q", said)
			}
		})
	}
}

// A run whose jobs are interrupted before they come further ends, and says so, however short the time is that its rounds take; one whose jobs do is done.
func TestARunThatOnlyRestartsEnds(t *testing.T) {
	const second = time.Second
	for name, tc := range map[string]struct {
		config Config
		work   float64
		done   bool
		rounds int // at most
	}{
		"starts that take longer than nodes last":      {Config{Cost: restart.Cost{RestartOverhead: 60 * second}, Failures: Failures{MTBF: 2 * second, Repair: second}}, 100, false, 210_000},
		"checkpoints that are further apart":           {Config{CheckpointInterval: time.Hour, Failures: Failures{MTBF: 2 * second, Repair: second}}, 100, false, 500_000},
		"nodes that mostly last as long as they start": {Config{Cost: restart.Cost{RestartOverhead: second}, CheckpointInterval: second, Failures: Failures{MTBF: 5 * second, Repair: second}}, 100, true, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n", Devices: 1}}}
			tc.config.StallAfter = 30 * 24 * time.Hour
			if err := tc.config.Validate(); err != nil {
				t.Fatal(err)
			}
			jobs := &workload.Workload{Jobs: []workload.Job{{
				Spec:  core.JobSpec{Name: "j", Weight: 1, TotalWork: tc.work, Requested: 1, MinReplicas: 1, MaxReplicas: 1},
				Model: workload.NewDurationModel(tc.work, 1),
			}}}
			backend, err := (&opener{tc.config, core.Settings{ID: "sim", Rand: core.NewRand(1, "sim"), Seed: 1}}).Open(t.Context(), c, jobs)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			rounds := &roundsOf{most: tc.rounds, over: cancel}
			pipeline := core.NewPipeline(c, backendtest.FIFO(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}, Observers: []core.Observer{rounds}})
			if err := pipeline.Run(ctx, backend); err != nil {
				t.Fatalf("after %d rounds, at %v s: %v", rounds.held, pipeline.NowSeconds(), err)
			}
			if left := pipeline.Unfinished(); (len(left) == 0) != tc.done {
				t.Errorf("%d jobs are left after %d rounds, at %v s", len(left), rounds.held, pipeline.NowSeconds())
			}
			if said := backend.(*Simulator).GaveUpReason(); strings.HasPrefix(said, "jobs were given devices in 100001 rounds, and none came further") == tc.done {
				t.Errorf("%q", said)
			}
		})
	}
}

// However often devices changed hands, a run goes on in which a job comes further by what happens next.
func TestARunInWhichOneGetsOnGoesOn(t *testing.T) {
	t.Parallel()
	jobs := &workload.Workload{Jobs: []workload.Job{{
		Spec: core.JobSpec{Name: "j", Weight: 1, TotalWork: 1000, Requested: 1, MinReplicas: 1, MaxReplicas: 1}, Model: workload.NewDurationModel(1000, 1),
	}}}
	c := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n", Devices: 1}}}
	backend, err := (&opener{Config{StallAfter: time.Hour}, core.Settings{ID: "sim"}}).Open(t.Context(), c, jobs)
	if err != nil {
		t.Fatal(err)
	}
	s := backend.(*Simulator)
	if _, err := s.Next(t.Context(), by(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), []core.Change{start(0, seats(0, 1))}); err != nil {
		t.Fatal(err)
	}
	s.stall.churned = mostChurned + 1
	seen, err := s.Next(t.Context(), core.Wake{BySeconds: math.Inf(1), OnEvents: true})
	if err != nil || seen.NowSeconds != 1000 || s.GaveUpReason() != "" {
		t.Errorf("at %v s: %v, %q; want the end of the job", seen.NowSeconds, err, s.GaveUpReason())
	}
}

// roundsOf counts rounds.
type roundsOf struct {
	held, most int
	over       func()
}

func (r *roundsOf) ObserveRound(*core.Report) error {
	if r.held++; r.held > r.most {
		r.over()
	}
	return nil
}

// A run is late only after the longest time in which a pool may not grow, and after the last price, whatever the order of the pools and prices.
func TestLateWaitsForCooldownsAndPrices(t *testing.T) {
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "own", Devices: 1}}, Pools: []core.Pool{
		{Name: "a", Devices: 1, Max: 1, UpCooldownSeconds: 100, Prices: []core.Price{{FromSeconds: 50}, {FromSeconds: 70}}},
		{Name: "b", Devices: 1, Max: 1, UpCooldownSeconds: 300, Prices: []core.Price{{FromSeconds: 20}}},
		{Name: "c", Devices: 1, Max: 1, UpCooldownSeconds: 200},
	}}
	b, err := (&opener{Config{StallAfter: time.Hour}, core.Settings{ID: "sim"}}).Open(t.Context(), cluster, &workload.Workload{})
	if err != nil {
		t.Fatal(err)
	}
	s := b.(*Simulator)
	if s.stall.cooling != 300 || s.stall.priced != 70 {
		t.Errorf("cooling for %v s, last price at %v s, want 300 and 70", s.stall.cooling, s.stall.priced)
	}
	if at := 70.0 + 3600 + 300; s.late(at) || !s.late(at+1) {
		t.Errorf("late at %v: %v, a second later: %v, want false and true", at, s.late(at), s.late(at+1))
	}
}
