package pollux

import (
	"context"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/placement"
)

// overload is a cluster to which in each round come at least as many jobs as it can serve, all of them shorter than those
// that wait since the start.
type overload struct {
	nodes, perNode int
	rounds         int
	most           []int // replicas that a job can use, by its number modulo their number
	excess         int   // jobs that come in a round beyond those that fit the cluster
	config         map[string]any
}

const roundSeconds = 60

// linear is a job with as many units of work a second as it has replicas.
type linear float64

func (linear) Phases() int                            { return 1 }
func (l linear) PhaseEnd(int) float64                 { return float64(l) }
func (linear) Rate(_ int, r workload.Running) float64 { return float64(r.Replicas) }
func (linear) StepsLeft(int) float64                  { return math.NaN() }

// linearly tells what linear jobs can do.
type linearly struct{ rates []float64 }

func (e linearly) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	var responses []core.Response
	for _, j := range jobs {
		responses = append(responses, core.Response{
			Job: j.ID, MinReplicas: 1, MaxReplicas: j.MaxReplicas, RemainingWork: math.NaN(),
			Curves: []core.Curve{{OneNode: e.rates[:j.MaxReplicas], ManyNodes: e.rates[:j.MaxReplicas]}},
		})
	}
	return responses, nil
}

func (linearly) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

// workload is a long job for each device at the start, and short ones for ever.
func (o *overload) workload() *workload.Workload {
	w := &workload.Workload{}
	add := func(at, work float64) {
		id := core.JobID(len(w.Jobs))
		w.Jobs = append(w.Jobs, workload.Job{Model: linear(work), Spec: *coretest.MakeJob("").ID(id).Submit(at).Work(work).
			Elastic(1, 1, o.most[int(id)%len(o.most)]).Obj().JobSpec})
	}
	devices := o.nodes * o.perNode
	for range devices {
		add(0, 1e6)
	}
	for round := range o.rounds {
		for range devices + o.excess {
			add(float64(round*roundSeconds), 20)
		}
	}
	return w
}

// waits holds every wait against its bound.
type waits struct {
	bound   func(jobs int) float64 // seconds, by the most jobs there ever were at once
	jobs    int
	longest float64 // wait, as a part of its bound
}

func (w *waits) ObserveRound(r *core.Report) error {
	w.jobs = max(w.jobs, len(r.View.Active))
	for _, id := range r.View.Active {
		if j := r.View.Jobs[id]; j.State == core.Waiting {
			w.longest = max(w.longest, (r.View.NowSeconds-j.LastChange)/w.bound(w.jobs))
		}
	}
	return nil
}

// longestWait runs the rounds and returns the longest wait for devices, as a part of what liftWaiting bounds it by with a
// floor.
func (o *overload) longestWait(t testing.TB, floor time.Duration) float64 {
	t.Helper()
	p := component(t, New(), o.config).(*allocator)
	widest := 0
	for _, most := range o.most {
		widest = max(widest, min(most, o.nodes*o.perNode))
	}
	// What a job could lose at most, by what one gains at least that gets a device, at the same weight.
	alike, span := &job{weight: 1}, p.config.Horizon.Seconds()
	nothing, all := p.cost(alike, 0), p.cost(alike, 1)
	one := p.cost(alike, (span-p.config.RestartOverhead.Seconds())/span/float64(widest))
	root := math.Sqrt((nothing - all) / (nothing - one))
	told := &waits{bound: func(jobs int) float64 {
		inRound := (o.nodes*o.perNode + widest - 1) / widest
		queue := float64((jobs+inRound-1)/inRound) * roundSeconds
		return root*max(floor.Seconds(), queue) + queue
	}}
	cluster := coretest.MakeCluster().Nodes(o.nodes, "t4", o.perNode).Obj()
	opener := component(t, sim.NewSimulator(), map[string]any{"restart_overhead": "30s"})
	world, err := opener.Open(context.Background(), cluster, o.workload())
	if err != nil {
		t.Fatal(err)
	}
	rates := make([]float64, o.nodes*o.perNode+8)
	for i := range rates {
		rates[i] = float64(i + 1)
	}
	stages := core.Stages{
		Allocation: core.Component[core.Allocator]{ID: "allocation/pollux", Policy: p},
		Placement:  core.Component[core.Placer]{ID: "placement/proposed", Policy: component(t, placement.NewProposed(), nil)},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/linear", Policy: linearly{rates}},
	}
	run := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: roundSeconds}, Observers: []core.Observer{told}})
	for now := 0.0; now < float64(o.rounds*roundSeconds); now = run.NowSeconds() + roundSeconds {
		seen, err := world.Next(context.Background(), core.Wake{BySeconds: now, IntervalSeconds: roundSeconds})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Round(context.Background(), seen, world); err != nil {
			t.Fatal(err)
		}
	}
	return told.longest
}

// shortFirst is the configuration that serves short jobs first, with or without a floor.
func shortFirst(power float64, floor time.Duration) map[string]any {
	return map[string]any{
		"weights": "remaining", "reference": "best", "restart": "horizon", "fairness_p": power, "waiting_floor": floor.String(),
	}
}

// TestEveryWaitIsBounded holds liftWaiting to its bound under permanent overload.
func TestEveryWaitIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		floor := time.Duration(rapid.IntRange(1, 30).Draw(rt, "floor_minutes")) * time.Minute
		o := &overload{
			nodes: rapid.IntRange(1, 3).Draw(rt, "nodes"), perNode: rapid.IntRange(1, 4).Draw(rt, "devices"),
			rounds: 150, most: rapid.SliceOfN(rapid.IntRange(1, 4), 1, 3).Draw(rt, "most"),
			excess: rapid.IntRange(0, 2).Draw(rt, "excess"),
			config: shortFirst(rapid.SampledFrom([]float64{-1, 0, 0.5, 1}).Draw(rt, "power"), floor),
		}
		if longest := o.longestWait(t, floor); longest > 1 {
			rt.Fatalf("a job waits %.2f times as long as its bound", longest)
		}
	})
}

// TestWithoutAFloorLongJobsStarve shows that the bound is not kept by chance.
func TestWithoutAFloorLongJobsStarve(t *testing.T) {
	const floor = 10 * time.Minute
	o := &overload{nodes: 1, perNode: 4, rounds: 200, most: []int{1}, excess: 1}
	for name, tc := range map[string]struct {
		floor time.Duration
		over  bool
	}{
		"without": {0, true},
		"with":    {floor, false},
	} {
		t.Run(name, func(t *testing.T) {
			o.config = shortFirst(0.5, tc.floor)
			longest := o.longestWait(t, floor)
			t.Logf("the longest wait is %.2f of its bound", longest)
			if over := longest > 1; over != tc.over {
				t.Errorf("the longest wait is %.2f of its bound, want it above: %v", longest, tc.over)
			}
		})
	}
}
