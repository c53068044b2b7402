package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/lab/study"
)

// Runs are those of their compositions, at the seeds of these; what was run is kept, and equal runs are one.
func TestRunsAreThoseOfTheirCompositions(t *testing.T) {
	t.Chdir("../..")
	b, err := newBench("", "", t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	const first, second = "workload.config.jobs=8", "round.interval=120s"
	runs := []run{
		{config: "default.yaml", sets: []string{first}},
		{config: "default.yaml", sets: []string{first, "seed=7"}},
		{config: "default.yaml", sets: []string{first, "round.interval=60s", second}}, // the last of two counts
		{config: "default.yaml", sets: []string{first}},
	}
	got, err := b.all(runs)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range runs {
		alone, err := quartet.Simulate(t.Context(), quartet.Builtins(), quartet.Options{
			Files: []string{filepath.Join("configs", r.config)}, Sets: r.sets, Env: os.LookupEnv, OutDir: t.TempDir(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got[i].JCTSeconds != alone.Summary.JCTSeconds || got[i].Seed != alone.Summary.Seed || len(got[i].jobs) != 8 {
			t.Errorf("run %d: seed %d, times %v, %d jobs; want %d, %v, 8", i, got[i].Seed, got[i].JCTSeconds, len(got[i].jobs), alone.Summary.Seed, alone.Summary.JCTSeconds)
		}
	}
	kept, err := study.ReadKept(b.kept)
	if err != nil || len(kept.Runs) != 3 {
		t.Fatalf("kept %v, error %v; want 3 runs", kept, err)
	}
	before, err := os.Stat(filepath.Join(b.kept, ".runs", kept.Runs[0].Hash+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.all(runs[:1]); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(b.kept, ".runs", kept.Runs[0].Hash+".json"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the run was run again: %v", err)
	}
}

// What goes wrong in a run names it.
func TestAFailedRunIsNamed(t *testing.T) {
	t.Chdir("../..")
	b, err := newBench("", "", t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]run{
		"no trace":   {config: "default.yaml", sets: []string{"workload={type: csv, config: {path: missing.csv}}"}},
		"no setting": {config: "default.yaml", sets: []string{"round.interval"}},
		"no such":    {config: "default.yaml", sets: []string{"round.intervall=1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := b.all([]run{r}); err == nil {
				t.Error("no error")
			}
		})
	}
}
