package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// successor is a scheduler of a run that goes on with the rounds of an earlier one: those are told again, and in them nothing is forecast.
type successor struct {
	*liveForecast
	repeated func(round int) bool
	after    func(round int)
}

func (g *successor) ObserveRound(r *core.Report) error {
	again := *r
	again.Repeated = g.repeated(r.View.Round)
	err := g.liveForecast.ObserveRound(&again)
	g.group.Wait() // so that forecasts come at the same rounds
	g.after(r.View.Round)
	return err
}

// forecastRun simulates a run with a file of what was kept, and is how bands held in the end, and what was logged.
func forecastRun(t *testing.T, file, run string, repeated func(round int) bool, after func(round int)) (c twin.Calibration, logged []string) {
	t.Helper()
	composition, err := Parse(catalog(), "kept.yaml", "version: 1\nname: kept\nseed: 3\ncluster: {nodes: [{name: n, count: 2, accelerator: v100, devices: 4}]}\n"+
		"workload: {type: generated, config: {jobs: 150, span: 6h}}\nround: {interval: 60s}\nbackend: {type: simulator}\npipeline: {allocation: {type: fifo}}\n", configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var g *successor
	composition.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		round := 0
		g = &successor{&liveForecast{
			report: func(*twin.Forecast) {}, reportNone: func(string) {}, inForce: func() *configs.Config { return composition.Config }, pipeline: p,
			stopwatch: func() time.Duration { return time.Duration(round) * time.Second }, // a forecast every five rounds
			model:     twin.NewWorkloadModel(twin.WorkloadModelOptions{}), forecaster: twin.NewForecaster(3), seed: 3,
			failed: func(err error) { t.Error(err) },
			kept:   &calibrationFile{path: file, run: run, log: func(text string, err error) { logged = append(logged, fmt.Sprintf("%s: %v", text, err)) }},
		}, repeated, func(r int) { round = r; after(r) }}
		g.ctx, g.cancel = context.WithCancel(t.Context())
		g.kept.take(g.forecaster)
		return g
	}
	if _, err := composition.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.end()
	return g.forecaster.Calibration(), logged
}

// A scheduler that goes on with a run knows how bands held that an earlier one showed, and judges those that were open by the rounds since: as if it had been one that
// only forecast nothing in the rounds that the earlier one no longer kept. What it cannot take up is learned anew, and told.
func TestHowBandsHeldOutlivesAScheduler(t *testing.T) {
	const killed = 100 // after this round
	nothing := func(int) {}
	dir := t.TempDir()
	file := filepath.Join(dir, "forecasts.json")
	var kept []byte
	last := 0
	forecastRun(t, file, "run", func(int) bool { return false }, func(round int) {
		last = round
		if round == killed {
			kept, _ = os.ReadFile(file)
		}
	})
	if len(kept) == 0 {
		t.Fatalf("nothing is kept; %d rounds", last)
	}
	var since int
	if _, err := fmt.Sscanf(string(kept), `{"run":"run","round":%d,`, &since); err != nil || since <= killed-65 || since > killed {
		t.Fatalf("round %d, error %v: %.60s", since, err, kept)
	}
	between := func(from, to int) func(int) bool { return func(round int) bool { return round > from && round <= to } }
	results := map[[2]int]twin.Calibration{}
	like := func(rounds [2]int) twin.Calibration {
		if _, known := results[rounds]; !known {
			results[rounds], _ = forecastRun(t, filepath.Join(t.TempDir(), "none"), "run", between(rounds[0], rounds[1]), nothing)
		}
		return results[rounds]
	}
	for name, tc := range map[string]struct {
		kept   string
		run    string
		going  int    // the last round of the earlier scheduler
		like   [2]int // what it is to be like: one that forecasts nothing after the first of these rounds until the second
		logged int
	}{
		"goes on":                 {string(kept), "run", killed, [2]int{since, killed}, 0},
		"goes on later":           {string(kept), "run", killed + 50, [2]int{since, killed + 50}, 0},
		"nothing was kept":        {"", "run", killed, [2]int{0, killed}, 0},
		"kept of another run":     {string(kept), "other", killed, [2]int{0, killed}, 1},
		"kept is damaged":         {string(kept[:len(kept)/2]), "run", killed, [2]int{0, killed}, 1},
		"kept by another program": {`{"run":"run","round":9,"calibration":{"schema":"quartet.calibration/v9"}}`, "run", killed, [2]int{0, killed}, 1},
		"kept is nonsense":        {`{"run":"run","round":9,"calibration":{"schema":"quartet.calibration/v1","starts":{"rank":7}}}`, "run", killed, [2]int{0, killed}, 1},
		"rounds were lost":        {string(kept), "run", since - 20, [2]int{0, since - 20}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "forecasts.json")
			if tc.kept != "" {
				if err := os.WriteFile(file, []byte(tc.kept), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, logged := forecastRun(t, file, tc.run, between(0, tc.going), nothing)
			if diff := cmp.Diff(like(tc.like), got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("how bands held (-want +got):\n%s", diff)
			}
			if got.Ends.Resolved == 0 {
				t.Error("no band is judged")
			}
			if len(logged) != tc.logged {
				t.Errorf("logged %q, want %d lines", logged, tc.logged)
			}
		})
	}
	if like([2]int{since, killed}) == like([2]int{0, killed}) {
		t.Error("what is kept makes no difference")
	}
}
