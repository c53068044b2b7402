package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/operate"
)

// file writes a file into the folder of the run.
func (l *liveRun) file(name, text string) string {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

// A plan of a drain has a job that keeps no checkpoint end later by what it loses, and one that keeps one only by its restart.
func TestADrainCostsWhatIsNotKept(t *testing.T) {
	needsProcesses(t)
	l := goLive(t, `
version: 1
name: live
cluster: {nodes: [{name: n, count: 3, accelerator: gpu, devices: 1}]}
round: {interval: 60s}
workload: {type: submitted}
backend: {type: local, config: {speedup: 600}}
pipeline: {allocation: {type: fifo}}
`)
	l.tell("submit", l.file("jobs.yaml", `
version: 1
jobs:
  - {name: forgets, command: [sleep, "3600"], seconds: 360000}
  - {name: keeps, command: [sleep, "3600"], seconds: 360000, checkpoint: true}
`))
	l.running(2)
	const enough = 3000.0 // seconds of the run: far more than a restart takes
	done := map[string]float64{}
	l.await("both have done some work", func() bool {
		var jobs []struct {
			Job string
			Ran float64 `json:"executed_s"`
		}
		l.read(&jobs, "jobs")
		for _, j := range jobs {
			done[j.Job] = j.Ran - 600 // what it takes to start
		}
		return min(done["forgets"], done["keeps"]) >= enough
	})
	seats := l.seats()
	for job, loses := range map[string]bool{"forgets": true, "keeps": false} {
		node, _, _ := strings.Cut(seats[job], ":")
		var plan operate.WhatIfFile
		l.read(&plan, "plan", "--drain", node, "--draws", "4")
		at := slices.IndexFunc(plan.Jobs, func(j operate.WhatIfJobFile) bool { return j.Job == job })
		if at < 0 || plan.Jobs[at].EndWith == nil || plan.Jobs[at].EndWithout == nil {
			t.Fatalf("%s is not foreseen: %+v", job, plan.Jobs)
		}
		later := *plan.Jobs[at].EndWith - *plan.Jobs[at].EndWithout
		if lost := later >= done[job]; lost != loses || !loses && later > enough/2 {
			t.Errorf("%s had done %.0f s of work, and ends later by %.0f s when %s is drained", job, done[job], later, node)
		}
	}
}

// When a run has changed its composition, forecasts and plans of it are by the one in force.
func TestPlansOfARunThatChose(t *testing.T) {
	needsProcesses(t)
	l := goLive(t, `
version: 1
name: live
cluster: {nodes: [{name: n, accelerator: gpu, devices: 2}, {name: spare, accelerator: other, devices: 1}]}
round: {interval: 60s, on_events: true}
workload: {type: submitted}
backend: {type: local, config: {speedup: 60, declared: true}}
pipeline: {allocation: {type: fifo}}
synthesizer: {own: fifo, every: 1, pause: 60s, horizon: 24h, draws: 8, candidates: [{name: srtf, pipeline: {allocation: {type: srtf, config: {step_times: false}}}}]}
`)
	job := func(name string, seconds int) string {
		return fmt.Sprintf("  - {name: %s, command: [sleep, \"3600\"], seconds: %d, checkpoint: true, accelerators: [gpu]}\n", name, seconds)
	}
	check := func(composition string) {
		t.Helper()
		var forecast operate.ForecastFile
		l.read(&forecast, "forecast", "--draws", "2", "--rehearsals", "0")
		var plan operate.WhatIfFile
		l.read(&plan, "plan", "--drain", "spare", "--draws", "2", "--horizon", "1h")
		want := fmt.Sprintf("%q is taken to decide from now on", composition)
		for of, notes := range map[string][]string{"forecast": forecast.Notes, "plan": plan.Notes} {
			if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, want) }) {
				t.Errorf("%s notes %q, want one that begins with %s", of, notes, want)
			}
		}
		at := slices.IndexFunc(forecast.Jobs, func(j operate.ForecastJob) bool { return j.Job == "long-0" })
		waits := forecast.Jobs[at].Position != nil
		if want := composition == "srtf"; waits != want || waits && *forecast.Jobs[at].Position <= 10 {
			t.Errorf("by %s, a long job is forecast as %+v", composition, forecast.Jobs[at])
		}
	}
	const shorts = 12
	jobs := job("long-0", 900_000) + job("long-1", 900_000)
	for i := range shorts {
		jobs += job(fmt.Sprintf("short-%d", i), 3000)
	}
	l.tell("submit", l.file("jobs.yaml", "version: 1\njobs:\n"+jobs))
	l.running(2)
	check("fifo")
	drained := false
	l.await("short jobs run before long ones", func() bool {
		if drained = !drained; drained { // each is a round, and some rounds take a look
			l.tell("drain", "spare")
		} else {
			l.tell("undrain", "spare")
		}
		time.Sleep(time.Second)
		seats := l.seats()
		return seats["short-0"] != "" && seats["short-1"] != ""
	})
	check("srtf")
}
