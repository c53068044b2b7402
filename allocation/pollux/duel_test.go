package pollux

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/placement"
)

// component decodes the config of a factory and creates what it makes.
func component[S any](t testing.TB, f core.Factory[S], config map[string]any) S {
	t.Helper()
	decoded, problems := f.Decode(config)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	made, err := f.New(decoded, core.Settings{ID: f.Type, Rand: core.NewRand(1, f.Type), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// published simulates a workload of the artifact under an allocator, as its configs do.
func published(t testing.TB, file string, a core.Allocator) {
	t.Helper()
	data := refdata.Path(t, "data", "pollux-osdi21")
	jobs, err := component(t, workload.NewPollux(), map[string]any{
		"path": filepath.Join(data, file), "profiles": data,
	}).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster := &core.Cluster{Accelerators: []string{"t4"}}
	for i := range 16 {
		cluster.Nodes = append(cluster.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("t4-%d", i), Devices: 4})
	}
	opener := component(t, sim.NewSimulator(), map[string]any{
		"restart_overhead": "30s",
		"publication":      map[string]any{"first_round": "one_interval", "progress": "per_round", "epoch_ends": "whole_seconds"},
	})
	world, err := opener.Open(t.Context(), cluster, jobs)
	if err != nil {
		t.Fatal(err)
	}
	stages := core.Stages{
		Allocation: core.Component[core.Allocator]{ID: "allocation/pollux", Policy: a},
		Placement:  core.Component[core.Placer]{ID: "placement/proposed", Policy: component(t, placement.NewProposed(), nil)},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/goodput", Policy: component(t, elasticity.NewGoodput(), map[string]any{
			"fixed_batch": []any{"ncf"}, "declared_work": false,
		})},
	}
	if err := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(t.Context(), world); err != nil {
		t.Fatal(err)
	}
}

// duel lets both searches answer the same questions, and one of them decide.
type duel struct {
	byExact bool // who decides
	repeats int  // times that the exact search is asked again

	genetic, exact         *allocator
	rounds, won            int
	shortfall              float64 // of the exact fitness, at most
	gap                    float64 // certified of the exact search, summed
	distance               float64 // of the genetic fitness from what is certified, summed
	geneticTime, exactTime time.Duration
	warmTime               time.Duration // of the exact search when asked again, its mean summed over the rounds
}

// Allocate times both.
func (d *duel) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	started := time.Now()
	grants, err := d.exact.Allocate(ctx, v, candidates)
	if err != nil {
		return nil, err
	}
	d.exactTime += time.Since(started)
	for range d.repeats {
		started = time.Now()
		if grants, err = d.exact.Allocate(ctx, v, candidates); err != nil {
			return nil, err
		}
		d.warmTime += time.Since(started) / time.Duration(d.repeats)
	}
	started = time.Now()
	published, err := d.genetic.Allocate(ctx, v, candidates)
	d.geneticTime += time.Since(started)
	if !d.byExact {
		grants = published
	}
	exact, genetic := d.exact.fitness(d.exact.plan.cost), d.genetic.fitness(d.genetic.plan.cost)
	d.rounds++
	if exact >= genetic*(1-1e-9) {
		d.won++
	}
	d.shortfall = max(d.shortfall, 1-exact/genetic)
	d.gap += d.exact.GapRatio()
	d.distance += 1 - genetic/exact*(1-d.exact.GapRatio())
	return grants, err
}

var byGenetic = flag.Bool("by-genetic", false, "let the genetic search decide in duels")

var everyWorkload = flag.Bool("every-workload", false, "duel on every given workload of the artifact")

// TestExactBeatsGenetic holds the exact search to the fitness that the published one reaches, on the rounds that it brings
// about itself; with -by-genetic, on those of the other one.
func TestExactBeatsGenetic(t *testing.T) {
	files := []string{"workloads-0.5/workload-3.csv"}
	if *everyWorkload {
		for _, n := range []int{1, 2, 3, 4, 6} {
			files = append(files, fmt.Sprintf("workloads/workload-%d.csv", n))
		}
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			d := &duel{
				byExact: !*byGenetic,
				exact:   component(t, New(), nil).(*allocator),
				genetic: component(t, New(), map[string]any{"search": "genetic"}).(*allocator),
			}
			published(t, file, d)
			share, rounds := float64(d.won)/float64(d.rounds), time.Duration(d.rounds)
			gap := d.gap / float64(d.rounds)
			t.Logf("%d rounds: exact at least as fit in %.2f %%, %.2f %% less at most; %.3f %% below its bound, genetic %.3f %%; %v a decision against %v, %.0f times faster",
				d.rounds, 100*share, 100*d.shortfall, 100*gap, 100*d.distance/float64(d.rounds),
				d.exactTime/rounds, d.geneticTime/rounds, d.geneticTime.Seconds()/d.exactTime.Seconds())
			if share < 0.99 {
				t.Errorf("exact is at least as fit in %.2f %% of the rounds, want 99", 100*share)
			}
			if !(gap <= 0.01) {
				t.Errorf("mean certified gap %.3f %%, want at most 1", 100*gap)
			}
		})
	}
}
