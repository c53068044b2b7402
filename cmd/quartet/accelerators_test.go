package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/refdata"
)

const mixedTypes = `version: 1
name: mixed
seed: 3
cluster:
  nodes: [{name: t4, count: 10, accelerator: t4, devices: 4}, {name: a100, count: 6, accelerator: a100, devices: 8}]
workload: {type: generated, config: {jobs: 60, span: 1h, replicas: gavel, durations: philly}}
pipeline:
  allocation: {type: las}
backend: {type: simulator, config: {failures: {mtbf: 12h, repair: 30m}, restart_overhead: 30s}}
output: {write: [jobs, rounds, decisions, accelerators, fairness]}
`

// decision is what a line of decisions.jsonl tells of who sits where.
type decision struct {
	At     float64 `json:"t_s"`
	Job    string  `json:"job"`
	Event  string  `json:"event"`
	Action string  `json:"action"`
	Seats  [][2]string
}

// audit is the device-seconds by name of job and type that decisions.jsonl comes to.
func audit(t *testing.T, path string) map[[2]string]float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	held, since := map[string]map[string]int{}, map[string]float64{}
	books := map[[2]string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var d decision
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if d.Event == "" && d.Action != "start" && d.Action != "stop" && d.Action != "move" {
			continue
		}
		for accelerator, devices := range held[d.Job] {
			books[[2]string{d.Job, accelerator}] += float64(devices) * (d.At - since[d.Job])
		}
		held[d.Job], since[d.Job] = map[string]int{}, d.At
		for _, seat := range d.Seats {
			accelerator, _, _ := strings.Cut(seat[0], "-")
			held[d.Job][accelerator] += strings.Count(seat[1], ",") + 1
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return books
}

// allRows reads a CSV file whose rows have no key.
func allRows(t *testing.T, path string) []map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, column := range records[0] {
			row[column] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// TestBooksByTypeMatchTheDecisions audits whole runs: who ran where for how long follows from decisions.jsonl alone,
// and adds up to what jobs.csv and the summary say.
func TestBooksByTypeMatchTheDecisions(t *testing.T) {
	for name, sets := range map[string][]string{
		"las":      nil,
		"tiresias": {"pipeline.allocation.type=tiresias"},
		"moving":   {"pipeline.allocation={type: optimus}", "pipeline.elasticity.job={type: fixed, config: {replicas: elastic}}"},
		"training": {
			"workload.config={applications: true, jobs: 60, span: 1h}", "pipeline.allocation={type: pollux}",
			"pipeline.placement={type: proposed}", "pipeline.elasticity.job={type: goodput}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "mixed.yaml")
			if err := os.WriteFile(path, []byte(mixedTypes), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"simulate", "-q", "-f", path, "--out", dir}
			for _, set := range sets {
				args = append(args, "--set", set)
			}
			if code := run(t.Context(), args, io.Discard, os.Stderr); code != cli.ExitOK {
				t.Fatalf("exit %d", code)
			}
			folder := filepath.Join(dir, "mixed")
			want := audit(t, filepath.Join(folder, "decisions.jsonl"))
			jobs := refdata.RowsBy(t, filepath.Join(folder, "jobs.csv"), "job")
			byJob, byType := map[string]float64{}, map[string]float64{}
			for _, row := range allRows(t, filepath.Join(folder, "accelerators.csv")) {
				got := refdata.Number(t, row["device_seconds"])
				byJob[row["job"]] += got
				byType[row["accelerator"]] += got
				key := [2]string{jobs[row["job"]]["name"], row["accelerator"]}
				if math.Abs(got-want[key]) > 1e-5 {
					t.Errorf("%v: %v device-seconds, the decisions say %v", key, got, want[key])
				}
				delete(want, key)
			}
			if len(want) > 0 {
				t.Errorf("accelerators.csv leaves out %v", want)
			}
			for id, row := range jobs {
				if math.Abs(byJob[id]-refdata.Number(t, row["gpu_seconds"])) > 1e-5 {
					t.Errorf("job %s: %v device-seconds of all types, gpu_seconds is %s", id, byJob[id], row["gpu_seconds"])
				}
			}
			var summary metrics.Summary
			text, err := os.ReadFile(filepath.Join(folder, "summary.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &summary); err != nil {
				t.Fatal(err)
			}
			if len(summary.Accelerators) != 2 || summary.Fairness.Sia == nil || !summary.Fairness.Sia.Mean.Known() {
				t.Fatalf("summary has accelerators %+v and fairness %+v", summary.Accelerators, summary.Fairness)
			}
			for _, u := range summary.Accelerators {
				if math.Abs(float64(u.DeviceSeconds)-byType[u.Accelerator]) > 1e-4 || byType[u.Accelerator] == 0 {
					t.Errorf("%s: %v device-seconds, its rows say %v", u.Accelerator, u.DeviceSeconds, byType[u.Accelerator])
				}
			}
		})
	}
}

// A job alone on a cluster gets all that is fair: but for the pause of its start, which only Sia takes for fair, it
// takes no longer than alone. Its files are among those that a repetition compares.
func TestAloneIsFair(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mixed.yaml")
	if err := os.WriteFile(path, []byte(mixedTypes), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{
		"simulate", "-q", "-f", path, "--out", dir, "--set", "workload.config.jobs=1", "--set", "round={interval: 0s, on_events: true}",
	}, io.Discard, os.Stderr); code != cli.ExitOK {
		t.Fatalf("exit %d", code)
	}
	manifest := filepath.Join(dir, "mixed", quartet.ManifestFile)
	if code := run(t.Context(), []string{"simulate", "-q", "--from", manifest}, io.Discard, os.Stderr); code != cli.ExitOK {
		t.Fatalf("exit %d when repeated", code)
	}
	recorded, err := quartet.ReadManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"accelerators.csv", "fairness.csv"} {
		if !slices.ContainsFunc(recorded.Outputs, func(d quartet.Digest) bool { return d.File == file }) {
			t.Errorf("the manifest has no %s", file)
		}
	}
	rows := allRows(t, filepath.Join(dir, "mixed", "fairness.csv"))
	if len(rows) != 1 {
		t.Fatalf("%d rows, want 1", len(rows))
	}
	exclusive := refdata.Number(t, rows[0]["exclusive_s"])
	paused := (exclusive + 30) / exclusive
	for column, want := range map[string]float64{
		"jobs_mean": 1, "fair_s": exclusive + 30, "rho": paused, "rho_themis": paused, "rho_sia": 1,
	} {
		if math.Abs(refdata.Number(t, rows[0][column])-want) > 1e-9*want {
			t.Errorf("%s is %s, want %v", column, rows[0][column], want)
		}
	}
}
