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

// beforeShares is the last state of this repository whose plugins say nothing of shared devices: their descriptions have neither counts nor sharing.
const beforeShares = "4e2e1848f84e58b3a32d52bee981ab34cba34ff8"

// wholeDevices is a plugin with a placement and an allocation of the tree that it is built in.
const wholeDevices = `package main

import (
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/placement"
	"github.com/quartet-sched/quartet/plugins/sdk"
)

func main() {
	seats := placement.NewFirstFit()
	seats.Type = "old_fit"
	order := allocation.NewFIFO()
	order.Type = "old_fifo"
	sdk.Main(seats, order)
}
`

const wholeDevicesConfig = `version: 1
name: old
seed: 3
cluster:
  sharing: none
  count_resources: false
  nodes: [{name: n, count: 6, accelerator: t4, devices: 4, cpus: 32, memory_gb: 256, device_memory_gb: 16}]
workload: {type: generated, config: {jobs: 150, span: 4h, replicas: gavel}}
round: {interval: 60s, settle: {passes: 1}} # a plugin built before rounds were settled is asked once
pipeline:
  allocation: {type: old_fifo, config: {queue: backfill}}
  placement: {type: old_fit}
backend:
  type: simulator
  config: {restart_overhead: 30s, failures: {mtbf: 12h, repair: 20m}}
`

// A plugin that was built before devices were shared seats whole devices as it did; where more is counted its placement is refused with the place, the
// reason and the placements that count it, and its allocation, which counts replicas, still serves.
func TestAPluginBuiltBeforeSharesKnowsWholeDevices(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds two plugins")
	}
	if err := exec.Command("git", "-C", "../..", "cat-file", "-e", beforeShares+"^{commit}").Run(); err != nil {
		t.Skipf("the history of the repository is not here: commit %.7s is not known (%v); a full clone has it: git fetch --unshallow", beforeShares, err)
	}
	dir, tree := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"main.go": wholeDevices, "old.yaml": wholeDevicesConfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(tree, "old.tar")
	must(t, "../..", "git", "archive", "-o", archive, beforeShares)
	must(t, tree, "tar", "-xf", archive)
	for folder, source := range map[string]string{"before": tree, "now": "../.."} {
		plugin := filepath.Join(dir, folder, "whole")
		must(t, source, "go", "build", "-trimpath", "-buildvcs=false", "-o", plugin, filepath.Join(dir, "main.go"))
		must(t, dir, "quartet", "plugin", "install", "--dir", folder+".d", plugin)
	}
	// simulate runs the plugin of a folder with values set, and returns what the program says, and jobs, rounds and decisions if it got so far.
	simulate := func(folder string, set ...string) (said string, files map[string]string) {
		out := t.TempDir()
		args := []string{"simulate", "-f", "old.yaml", "--plugin-dir", folder + ".d", "--out", out}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		command := exec.Command("quartet", args...)
		command.Dir = dir
		text, err := command.CombinedOutput()
		if err != nil {
			return string(text), nil
		}
		files = map[string]string{}
		for _, name := range []string{"jobs.csv", "rounds.csv", "decisions.jsonl"} {
			text, err := os.ReadFile(filepath.Join(out, "old", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(text)
		}
		return "", files
	}

	for name, set := range map[string][]string{
		"whole devices":                    nil,
		"its allocation, parts of devices": {"pipeline.placement.type=fgd", "cluster.sharing=fractional"},
		"its allocation, slices":           {"pipeline.placement.type=best_fit", "cluster.sharing=mig"},
		"its allocation, turns":            {"pipeline.placement.type=antman", "cluster.sharing=timeslice", "cluster.nodes[0].devices=8"},
		"its allocation, CPUs":             {"pipeline.placement.type=best_fit", "cluster.count_resources=true"},
	} {
		said, before := simulate("before", set...)
		if before == nil {
			t.Errorf("%s: refused: %s", name, said)
			continue
		}
		if strings.Count(before["jobs.csv"], "\n") != 151 {
			t.Errorf("%s: jobs.csv has %d lines, want 151", name, strings.Count(before["jobs.csv"], "\n"))
		}
		_, now := simulate("now", set...)
		if diff := cmp.Diff(before, now); diff != "" {
			t.Errorf("%s: (-plugin built before +plugin built now)\n%s", name, diff)
		}
	}

	for set, want := range map[string]string{
		"cluster.sharing=fractional":   `does not go with cluster.sharing: fractional: its plugin does not say that it counts that; placements that do: fgd, fragmentation, best_fit, `,
		"cluster.sharing=mig":          `does not go with cluster.sharing: mig: its plugin does not say that it counts that; placements that do: fgd, fragmentation, best_fit, `,
		"cluster.sharing=timeslice":    `does not go with cluster.sharing: timeslice: its plugin does not say that it counts that; placements that do: first_fit, consolidated, `,
		"cluster.count_resources=true": `does not go with cluster.count_resources: its plugin does not say that it counts that; placements that do: fgd, fragmentation, best_fit, `,
	} {
		said, files := simulate("before", set)
		const place = `old.yaml:12:15: pipeline.placement.type: "placement/old_fit" `
		if files != nil || !strings.Contains(said, place+want) {
			t.Errorf("--set %s: said %q, want %q", set, said, place+want)
		}
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
