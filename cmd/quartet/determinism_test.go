package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// rigid is the default with jobs of known duration, a hundred times faster.
var rigid = []string{
	"--set", "workload.config.applications=false", "--set", "pipeline.elasticity.job={type: fixed}", "--set", "pipeline.placement={type: consolidated}",
}

// unlike is jobs on devices of two types, which they mix.
var unlike = []string{
	"--set", "cluster.nodes=[{name: a, count: 2, accelerator: T4, devices: 2}, {name: b, accelerator: G3, devices: 4}]",
	"--set", "workload={type: unlike_workers, config: {jobs: 30}}", "--set", "round={interval: 0s, on_events: true}",
	"--set", "pipeline.elasticity.job={type: fixed, config: {replicas: elastic, split: proportional}}",
}

// typed is the default on two accelerator types, by Sia.
var typed = []string{
	"--set", "cluster={nodes: [{name: t4, count: 8, accelerator: t4, devices: 4}, {name: a100, count: 2, accelerator: a100, devices: 8}]}",
	"--set", "pipeline.allocation={type: sia}", "--set", "pipeline.placement={type: proposed}",
}

// TestSameBytes runs compositions with every source of variation there is, over and over.
func TestSameBytes(t *testing.T) {
	for name, args := range map[string][]string{
		"default":  nil,
		"sia":      typed,
		"tiresias": append(rigid, "--set", "pipeline.allocation={type: tiresias}"),
		"failures": append(rigid, "--set", "pipeline.allocation={type: las}", "--set", "backend.config.failures={mtbf: 24h, repair: 30m}"),
		"market":   append(unlike, "--set", "pipeline.allocation={type: matching}", "--set", "pipeline.placement={type: proposed}"),
		"matching": append(unlike, "--set", "pipeline.allocation={type: optimus}", "--set", "pipeline.placement={type: matching}"),
		"events":   append(rigid, "--set", "pipeline.allocation={type: srtf}", "--set", "round={interval: 60s, on_events: true}"),
		"types": append(rigid, "--set", "cluster.nodes=[{name: a, count: 8, accelerator: t4, devices: 4}, {name: b, count: 4, accelerator: v100, devices: 4}]",
			"--set", "pipeline.allocation={type: gavel_max_min, config: {types: shuffled}}"),
	} {
		t.Run(name, func(t *testing.T) {
			var want map[string]string
			for _, procs := range []int{1, 2, 8} {
				repeats := 20
				switch {
				case name == "default" || name == "sia":
					repeats = 1
				case testing.Short():
					repeats = 2
				}
				for range repeats {
					got := digests(t, procs, args)
					if want == nil {
						want = got
					}
					for file, sum := range want {
						if got[file] != sum {
							t.Fatalf("GOMAXPROCS %d: %s differs between runs", procs, file)
						}
					}
				}
			}
		})
	}
}

func digests(t *testing.T, procs int, args []string) map[string]string {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	dir := t.TempDir()
	if code := run(t.Context(), append([]string{"simulate", "-q", "--out", dir}, args...), io.Discard, os.Stderr); code != cli.ExitOK {
		t.Fatalf("exit %d", code)
	}
	sums := map[string]string{}
	for _, file := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
		data, err := os.ReadFile(filepath.Join(dir, "default", file))
		if err != nil {
			t.Fatal(err)
		}
		sums[file] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return sums
}
