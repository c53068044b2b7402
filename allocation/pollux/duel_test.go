package pollux

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

// component decodes the config of a factory and creates what it makes.
func component[S any](t testing.TB, f core.Factory[S], config map[string]any) S {
	t.Helper()
	decoded, problems := f.Decode(config)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	made, err := f.New(decoded, core.Settings{ID: f.Type, Rand: core.NewRand(1, f.Type), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// published simulates a workload of the artifact under an allocator, as its configs do.
func published(t testing.TB, file string, a core.Allocator) {
	t.Helper()
	root := os.Getenv("QUARTET_DATA")
	if root == "" {
		t.Skip("QUARTET_DATA is not set: it names the folder that holds data/ and reference/")
	}
	data := filepath.Join(root, "data", "pollux-osdi21")
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
	var opener backend.Opener = component(t, sim.NewSimulator(), map[string]any{
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
	if err := core.NewPipeline(cluster, stages, core.RoundOptions{IntervalSeconds: 60}, nil).Run(t.Context(), world); err != nil {
		t.Fatal(err)
	}
}

// duel lets the genetic search decide and the exact one answer the same question.
type duel struct {
	genetic, exact         *allocator
	rounds, won            int
	geneticTime, exactTime time.Duration
	slowest                time.Duration
	worst                  float64
	shortfall              float64 // of the genetic search's fitness from the bound
}

func (d *duel) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	started := time.Now()
	if _, err := d.exact.Allocate(ctx, v, candidates); err != nil {
		return nil, err
	}
	middle := time.Now()
	grants, err := d.genetic.Allocate(ctx, v, candidates)
	d.geneticTime += time.Since(middle)
	d.exactTime += middle.Sub(started)
	d.slowest = max(d.slowest, middle.Sub(started))
	d.rounds++
	exact, genetic := d.exact.fitness(d.exact.plan.cost), d.genetic.fitness(d.genetic.plan.cost)
	if exact >= genetic*(1-1e-9) {
		d.won++
	} else {
		d.worst = max(d.worst, 1-exact/genetic)
	}
	gap, _ := d.exact.Gap()
	d.shortfall += 1 - genetic*(1-gap)/exact
	return grants, err
}

// TestExactBeatsGenetic holds the exact search to the fitness that the published one reaches, on the rounds that that
// one brings about.
func TestExactBeatsGenetic(t *testing.T) {
	for _, file := range []string{"workloads/workload-6.csv"} {
		d := &duel{
			exact:   component(t, New(), nil).(*allocator),
			genetic: component(t, New(), map[string]any{"search": "genetic"}).(*allocator),
		}
		published(t, file, d)
		_, gap := d.exact.Gap()
		share := float64(d.won) / float64(d.rounds)
		t.Logf("%s: %d rounds, exact at least as fit in %.2f %% (worst %.2f %% below), certified gap %.3f %%, genetic below the bound by %.3f %%, %v (%v at most) against %v a decision: %.0f times faster",
			file, d.rounds, 100*share, 100*d.worst, 100*gap, 100*d.shortfall/float64(d.rounds),
			d.exactTime/time.Duration(d.rounds), d.slowest, d.geneticTime/time.Duration(d.rounds), d.geneticTime.Seconds()/d.exactTime.Seconds())
		if share < 0.99 {
			t.Errorf("exact is at least as fit in %.2f %% of the rounds, want 99", 100*share)
		}
		if !(gap <= 0.01) || math.IsNaN(gap) {
			t.Errorf("mean certified gap %.3f %%, want at most 1", 100*gap)
		}
	}
}
