package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/cmd/internal/program"
)

// A policy that decides CPUs and memory is refused on Kubernetes, which gives a job what it asks for; also as the one that takes over.
func TestConfigsThatKubernetesCannotRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"cluster.yaml": `version: 1
name: resources
cluster:
  count_resources: true
  nodes: [{name: n, accelerator: t4, devices: 4, cpus: 8, memory_gb: 40}]
workload: {type: csv, config: {path: jobs.csv}}
round: {interval: 0s, on_events: true}
pipeline:
  allocation: {type: fifo, config: {queue: all}}
  placement: {type: synergy}
backend: {type: kubernetes}
`,
		"fallback.yaml": `pipeline:
  placement: {type: best_fit, config: null, isolate: true, plugin: {on_failure: fallback, fallback: {type: synergy}}}
`,
		"jobs.csv": "name,submit_s,duration_s,replicas\nfirst,0,120,1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const needs = `"placement/synergy" needs capability "resources", which "backend/kubernetes" does not give`
	for want, args := range map[string][]string{
		"pipeline.placement.type: " + needs:                 {"-f", "cluster.yaml"},
		"pipeline.placement.plugin.fallback.type: " + needs: {"-f", "cluster.yaml", "-f", "fallback.yaml"},
	} {
		code, _, stderr := invoke(t, append([]string{"config", "validate"}, args...)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, %s, want %s", code, stderr, want)
		}
	}
}

// Both programs list the same components, and have the same commands.
func TestBothProgramsLookTheSame(t *testing.T) {
	for _, args := range [][]string{{"policy", "list"}, {"--help"}, {"kube", "--help"}} {
		var stdout, stderr bytes.Buffer
		if code := program.Run(t.Context(), args, &stdout, &stderr, program.Light()); code != 0 {
			t.Fatalf("%s: exit code %d, %s", args, code, &stderr)
		}
		if code, got, _ := invoke(t, args...); code != 0 || got != stdout.String() {
			t.Errorf("%s: exit code %d\n%s, without Kubernetes:\n%s", args, code, got, &stdout)
		}
	}
}
