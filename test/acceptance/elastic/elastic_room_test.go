package elastic_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// whereFree are nodes of which none has as many free devices as an elastic job is granted.
const whereFree = `version: 1
name: where-free
cluster: {%s}
workload: {type: csv, config: {path: %q}}
round: {interval: 60s, on_events: true, settle: {passes: 1}}
pipeline:
  allocation: {type: %s}
  placement: {type: %s, config: {%s}}
  elasticity: {job: {type: fixed, config: {replicas: elastic}}}
backend: {type: simulator, config: {restart_overhead: 0s%s}}
output: {write: []}
`

// scoredPlacements are the placements by score.
func scoredPlacements() (types []string) {
	for _, p := range quartet.Builtins().Placement {
		if p.Counts && slices.Contains(p.Sharing, core.Fractional) && p.Type != "synergy" {
			types = append(types, p.Type)
		}
	}
	return types
}

// An elastic job that is granted more devices than any node has free runs on several nodes, rather than to wait for one; a rigid one waits.
func TestElasticJobsAreSpreadWhereNoNodeHasRoom(t *testing.T) {
	t.Parallel()
	const header = "name,submit_s,duration_s,replicas,min_replicas,max_replicas\n"
	for name, tc := range map[string]struct {
		nodes, rows, config, world string
		queued                     float64 // for how long the last job has no devices
	}{
		"beside others": {
			"nodes: [{name: n, count: 2, accelerator: t4, devices: 4}]", "a,0,9000,3,3,3\nb,0,9000,3,3,3\nwide,60,1000,2,1,2\n", "", "", 0,
		},
		"beside others, one who only spreads what is larger than a node": {
			"nodes: [{name: n, count: 2, accelerator: t4, devices: 4}]", "a,0,9000,3,3,3\nb,0,9000,3,3,3\nwide,60,1000,2,1,2\n", "spread: larger", "", 8940,
		},
		"beside others, a rigid one": {
			"nodes: [{name: n, count: 2, accelerator: t4, devices: 4}]", "a,0,9000,3,3,3\nb,0,9000,3,3,3\nwide,60,1000,2,2,2\n", "", "", 8940,
		},
		"beside a node that is down": {
			"nodes: [{name: big, count: 1, accelerator: t4, devices: 8}, {name: n, count: 2, accelerator: t4, devices: 4}]", "wide,60,1000,8,1,8\n", "",
			", node_events: [{at: 0s, node: big, to: down}]", 0,
		},
	} {
		for _, placer := range scoredPlacements() {
			t.Run(name+"/"+placer, func(t *testing.T) {
				t.Parallel()
				trace := filepath.Join(t.TempDir(), "jobs.csv")
				if err := os.WriteFile(trace, []byte(header+tc.rows), 0o600); err != nil {
					t.Fatal(err)
				}
				c, err := quartet.Parse(quartet.Builtins(), "room.yaml", fmt.Sprintf(whereFree, tc.nodes, trace, "elastic_fifo", placer, tc.config, tc.world), quartet.Options{})
				if err != nil {
					t.Fatal(err)
				}
				r := doortest.Simulate(t, c)
				if want := strings.Count(tc.rows, "\n"); r.Summary.Jobs.Completed != want {
					t.Fatalf("%d of %d jobs completed", r.Summary.Jobs.Completed, want)
				}
				if wide := r.Jobs[len(r.Jobs)-1]; float64(wide.QueueingSeconds) != tc.queued {
					t.Errorf("job %s had no devices for %v s, want %v", wide.Name, wide.QueueingSeconds, tc.queued)
				}
			})
		}
	}
}
