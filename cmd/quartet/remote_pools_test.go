package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/plugins/loopback"
)

const pooledConfig = `version: 1
name: pooled
seed: 5
cluster:
  pools:
    - {name: t4, accelerator: t4, devices: 4, start: 1, min: 1, max: 8, price_per_hour: 3, down_cooldown: 10m}
workload: {type: generated, config: {jobs: 40, span: 3h}}
round: {interval: 60s}
pipeline:
  allocation: {type: elastic_dp}
  placement: {type: consolidated}
  elasticity:
    job: {type: goodput, config: {knowledge: oracle}}
    cluster: {type: %s}
backend:
  type: simulator
  config:
    restart_overhead: 30s
    pools: [{pool: t4, provisioning: 90s, provisioning_spread: 60s, fails: 0.2, evictions: 4h, notice: 2m}]
`

// A scaler in another process sees pools, nodes on their way and what jobs make of devices, and its sizes are carried out: it decides as it
// does built in.
func TestScalersThroughTheWire(t *testing.T) {
	for _, f := range catalog().Scaler {
		if f.Type == "none" {
			continue
		}
		t.Run(f.Type, func(t *testing.T) {
			c, err := configs.Parse(catalog(), f.Type+".yaml", fmt.Appendf(nil, pooledConfig, f.Type), configs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := quartet.LoadWorkload(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			direct, err := engine.BuildStages(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := filesOf(t, c, jobs, direct)
			if n := strings.Count(want[2], "node_added"); n < 5 || strings.Count(want[2], "node_removed") < 3 || !strings.Contains(want[2], "expected_s") ||
				!strings.Contains(want[2], `"pool":"t4","action":"scale","nodes":`) || !strings.Contains(want[2], `,"message":"`) {
				t.Fatalf("%d nodes joined: the test shows nothing", n)
			}
			for label, by := range map[string]way{"in memory": loopback.Dial, "own process": ownProcess} {
				stages, err := engine.BuildStages(c, nil)
				if err != nil {
					t.Fatal(err)
				}
				stages.Scaler = remoteStages(t, by, c).Scaler
				for i, got := range filesOf(t, c, jobs, stages) {
					if got != want[i] {
						t.Errorf("%s: file %d differs from that of the built-in", label, i)
					}
				}
			}
		})
	}
}
