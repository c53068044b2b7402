package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/engine"
)

// still is a backend on which nothing happens.
type still struct{}

func (still) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, io.EOF
}

func (still) Apply(context.Context, []core.Change) error { return nil }

func (still) Capabilities() []core.Capability { return nil }

// TestAQuietRoundAllocatesNothing holds rounds, all stages and all records included, in which nothing changed.
func TestAQuietRoundAllocatesNothing(t *testing.T) {
	for _, allocation := range catalog().Allocation {
		if allocation.Type == "matching" {
			continue // it holds a market of its own making every round
		}
		for _, placement := range catalog().Placement {
			sharing := core.Exclusive
			if len(allocation.Sharing) > 0 {
				sharing = allocation.Sharing[0]
			}
			if sharing != core.Exclusive && !slices.Contains(placement.Sharing, sharing) {
				continue
			}
			t.Run(allocation.Type+" and "+placement.Type, func(t *testing.T) {
				ctx := context.Background()
				c, err := configs.Parse(catalog(), "quiet", configs.Default(), configs.Options{Sets: []string{
					"pipeline.allocation.type=" + allocation.Type, "pipeline.placement.type=" + placement.Type, "cluster.sharing=" + sharing.String(),
					fmt.Sprintf("cluster.count_resources=%v", placement.Divides),
				}})
				if err != nil {
					t.Fatal(err)
				}
				stages, err := engine.BuildStages(c, nil)
				if err != nil {
					t.Fatal(err)
				}
				collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: io.Discard, Rounds: io.Discard, Decisions: io.Discard})
				p := core.NewPipeline(c.BuildCluster(), stages, core.PipelineOptions{Rounds: c.Round.Options(), Observers: []core.Observer{collector}})
				now := 0.0
				round := func(events ...core.Event) {
					now += 60
					if err := p.Round(ctx, core.Observation{NowSeconds: now, Events: events}, still{}); err != nil {
						t.Fatal(err)
					}
				}
				round(fortyJobs()...)
				for range 10 {
					round()
				}
				if allocs := testing.AllocsPerRun(100, func() { round() }); allocs != 0 {
					t.Errorf("%v allocations in a round in which nothing changed, want 0", allocs)
				}
			})
		}
	}
}

// fortyJobs take 40 of the 64 devices of the default cluster, so that each keeps running.
func fortyJobs() []core.Event {
	var events []core.Event
	for id := range core.JobID(40) {
		events = append(events, core.Event{Kind: core.JobSubmitted, Job: id, Spec: &core.JobSpec{
			ID: id, Name: fmt.Sprint(id), Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, TotalWork: 1e9,
		}})
	}
	return events
}
