package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// released is a state of this repository whose plugins must keep working.
const released = "726417187cecf625decd7c9f5ac1d2de80784074"

const oldPluginConfig = `version: 1
name: old
seed: 3
cluster:
  nodes: [{name: n, count: 6, accelerator: t4, devices: 4}]
workload: {type: generated, config: {jobs: 150, span: 4h, replicas: gavel}}
round: {interval: 60s}
pipeline:
  allocation: {type: easy_backfill, config: {depth: 8}}
backend:
  type: simulator
  config: {restart_overhead: 30s, failures: {mtbf: 12h, repair: 20m}}
`

// TestAPluginBuiltBeforeWorks builds the example of a plugin as it was, SDK and all, installs it, and holds its run to
// that of the plugin as it is now.
func TestAPluginBuiltBeforeWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds two plugins")
	}
	if err := exec.Command("git", "-C", "../..", "cat-file", "-e", released+"^{commit}").Run(); err != nil {
		t.Skipf("the history of the repository is not here: commit %.7s is not known (%v); a full clone has it: git fetch --unshallow", released, err)
	}
	old := t.TempDir()
	archive := filepath.Join(old, "old.tar")
	must(t, "../..", "git", "archive", "-o", archive, released)
	must(t, old, "tar", "-xf", archive)

	config := filepath.Join(t.TempDir(), "old.yaml")
	if err := os.WriteFile(config, []byte(oldPluginConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	before := runOf(t, config, filepath.Join(old, "plugins", "examples", "go-backfill"))
	now := runOf(t, config, filepath.Join("..", "..", "plugins", "examples", "go-backfill"))
	if diff := cmp.Diff(before, now); diff != "" {
		t.Errorf("(-plugin built before +plugin built now)\n%s", diff)
	}
	if strings.Count(before["jobs.csv"], "\n") != 151 {
		t.Errorf("jobs.csv has %d lines, want 151", strings.Count(before["jobs.csv"], "\n"))
	}
}

// runOf builds the plugin of a folder, installs it, and returns what a simulation with it writes.
func runOf(t *testing.T, config, source string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	plugin := filepath.Join(dir, "backfill")
	must(t, source, "go", "build", "-buildvcs=false", "-o", plugin, ".")
	must(t, dir, "quartet", "plugin", "install", "--dir", "plugins", plugin)
	must(t, dir, "quartet", "simulate", "-f", config, "--plugin-dir", "plugins", "--out", "runs")
	files := map[string]string{}
	for _, name := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
		text, err := os.ReadFile(filepath.Join(dir, "runs", "old", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

func must(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	command := exec.Command(program, args...)
	command.Dir = dir
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, said)
	}
}
