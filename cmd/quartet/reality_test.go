package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// A trace that is replayed comes to what its simulation says. tools/reality compares more jobs, more closely.
func TestReplayIsLikeTheSimulation(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs processes for ten seconds")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the local backend is for Linux; run the tests there")
	}
	const jobs, speedup = 6, 20
	dir := t.TempDir()
	var trace strings.Builder
	trace.WriteString("name,submit_s,duration_s,replicas\n")
	for i := range jobs {
		fmt.Fprintf(&trace, "job-%d,%d,%d,%d\n", i, 8*i, 30+25*(i*5%4), 1+i%3)
	}
	config := fmt.Sprintf(`
version: 1
name: replay
cluster: {nodes: [{name: n, count: 2, accelerator: t4, devices: 2}]}
workload: {type: csv, config: {path: %q}}
round: {interval: 10s}
pipeline:
  allocation: {type: tiresias, config: {thresholds: [60]}}
backend: {type: simulator, config: {restart_overhead: 2s}}
`, filepath.Join(dir, "trace.csv"))
	for name, text := range map[string]string{"trace.csv": trace.String(), "replay.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	simulated := outcomeOf(t, "simulate", "-f", filepath.Join(dir, "replay.yaml"), "--out", filepath.Join(dir, "simulated"))
	replayed := outcomeOf(t, "run", "-f", filepath.Join(dir, "replay.yaml"), "--out", filepath.Join(dir, "run"), "--speedup", fmt.Sprint(speedup))
	if simulated.Preemptions == 0 || replayed.Preemptions == 0 {
		t.Errorf("%d and %d jobs were preempted: the trace asks too little", simulated.Preemptions, replayed.Preemptions)
	}
	if simulated.Jobs.Completed != jobs || replayed.Jobs.Completed != jobs {
		t.Errorf("%d and %d jobs completed, want %d", simulated.Jobs.Completed, replayed.Jobs.Completed, jobs)
	}
	if ratio := replayed.JCT.Mean / simulated.JCT.Mean; math.Abs(ratio-1) > 0.25 {
		t.Errorf("mean completion time %.1f s, the simulation says %.1f s", replayed.JCT.Mean, simulated.JCT.Mean)
	}
	t.Logf("mean completion time %.1f s, simulated %.1f s", replayed.JCT.Mean, simulated.JCT.Mean)
}

type replayOutcome struct {
	Jobs struct{ Completed int }
	JCT  struct {
		Mean float64
	} `json:"jct_seconds"`
	Preemptions int
}

func outcomeOf(t *testing.T, args ...string) (o replayOutcome) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append(args, "-q", "-o", "json"), &stdout, &stderr); code != cli.ExitOK {
		t.Fatalf("%q: exit code %d: %s", args, code, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	return o
}
