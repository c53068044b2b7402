package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local"
)

// late is a world in which a round comes some time after what it is told of, as every real one does.
type late struct {
	*local.Preview
	seconds float64
}

func (l late) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	o, err := l.Preview.Next(ctx, w)
	o.NowSeconds += l.seconds
	return o, err
}

// A plan tells of jobs that are submitted at that very moment, a run a little later: with every composition that comes
// with Quartet and can run real jobs, the first round is the one that was planned.
func TestPlanIsTheFirstRound(t *testing.T) {
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(jobs, []byte(`version: 1
jobs:
  - {name: one, command: ["true"], seconds: 100}
  - {name: elastic, command: ["true"], seconds: 200, max_replicas: 4, batch: {requested: 64, max: 256, max_per_device: 32}}
  - {name: two, command: ["true"], seconds: 50, replicas: 2}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("QUARTET_DATA", dir)
	planned := 0
	for _, name := range configs.EmbeddedNames() {
		f := runFlags{jobs: jobs}
		f.files = []string{name}
		f.sets = []string{"round.on_events=true", "backend=null", "backend={type: local, config: {declared: true}}"}
		a := &app{}
		if _, err := f.load(t.Context(), a); err != nil {
			if !strings.Contains(err.Error(), "needs") {
				t.Errorf("%s: %v", name, err)
			}
			continue // it must know what no real job tells
		}
		planned++
		t.Run(name, func(t *testing.T) {
			round := func(seconds float64) (started []string) {
				c, err := f.load(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				jobs, err := loadWorkload(t.Context(), c, a.logger())
				if err != nil {
					t.Fatal(err)
				}
				stages, err := buildStages(c, a.logger())
				if err != nil {
					t.Fatal(err)
				}
				opener, err := c.Backend.New(c.Seed, a.logger())
				if err != nil {
					t.Fatal(err)
				}
				cluster := c.BuildCluster()
				world, err := opener.(*local.Opener).Preview("", cluster, jobs)
				if err != nil {
					t.Fatal(err)
				}
				if err := core.NewPipeline(cluster, stages, c.Round.Options(), nil).Run(t.Context(), late{world, seconds}); err != nil {
					t.Fatal(err)
				}
				for _, change := range world.Changes() {
					started = append(started, jobs.Jobs[change.Job].Spec.Name+" "+change.Action.String()+" "+seatsText(cluster, change.Seats))
				}
				return started
			}
			plan := round(0)
			if len(plan) == 0 {
				t.Error("nothing is to start on an idle cluster")
			}
			if diff := cmp.Diff(plan, round(0.004)); diff != "" {
				t.Errorf("first round (-planned +run):\n%s", diff)
			}
		})
	}
	if planned < 10 {
		t.Errorf("%d compositions were planned", planned)
	}
}
