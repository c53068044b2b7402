package operate

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local"
	"github.com/quartet-sched/quartet/internal/engine"
)

// With every composition that comes with Quartet and can run real jobs, the first round is the one that was planned,
// whenever it is: with rounds on events even at the very moment of the submissions.
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
		f.Files = []string{name}
		f.Sets = []string{"backend=null", "backend={type: local, config: {declared: true}}"}
		a := &app{&cli.App{Stderr: io.Discard}}
		if _, err := f.load(t.Context(), a); err != nil {
			if !strings.Contains(err.Error(), "needs") && !strings.Contains(err.Error(), "gives each device to one job at a time") {
				t.Errorf("%s: %v", name, err)
			}
			continue // it must know what no real job tells, or its jobs share devices
		}
		planned++
		t.Run(name, func(t *testing.T) {
			round := func(seconds float64, sets ...string) (started []string) {
				f := f
				f.Sets = append(sets, f.Sets...)
				c, err := f.load(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				jobs, err := quartet.LoadWorkload(t.Context(), c, a.Logger())
				if err != nil {
					t.Fatal(err)
				}
				stages, err := engine.BuildStages(c, a.Logger())
				if err != nil {
					t.Fatal(err)
				}
				opener, err := c.Backend.New(c.Seed, a.Logger())
				if err != nil {
					t.Fatal(err)
				}
				cluster := c.BuildCluster()
				world, err := opener.(*local.Opener).Preview(t.Context(), "", cluster, jobs)
				if err != nil {
					t.Fatal(err)
				}
				if err := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: c.Round.Options()}).Run(t.Context(), engine.Late(world, seconds)); err != nil {
					t.Fatal(err)
				}
				for _, change := range world.Changes() {
					started = append(started, jobs.Jobs[change.Job].Spec.Name+" "+change.Action.String()+" "+seatsText(cluster, change.Seats))
				}
				return started
			}
			plan := round(engine.FirstRoundSeconds)
			if len(plan) == 0 {
				t.Error("nothing is to start on an idle cluster")
			}
			for what, first := range map[string][]string{
				"soon": round(0.002), "late": round(0.1), "at once": round(0, "round.on_events=true"), "on events": round(0.002, "round.on_events=true"),
			} {
				if diff := cmp.Diff(plan, first); diff != "" {
					t.Errorf("first round %s (-planned +run):\n%s", what, diff)
				}
			}
		})
	}
	if planned < 10 {
		t.Errorf("%d compositions were planned", planned)
	}
}
