package pools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/doortest"
)

const spotPool = `version: 1
name: spot
cluster:
  pools:
    - {name: owned, accelerator: t4, devices: 4, start: 1, min: 1, max: 1, price_per_hour: 3.912}
    - {name: spot, accelerator: t4, devices: 4, min: 0, max: 6, price_per_hour: 1.369, down_cooldown: 10m}
workload: {type: csv, config: {path: %q}}
round: {interval: 60s}
pipeline:
  allocation: {type: elastic_dp}
  placement: {type: consolidated}
  elasticity: {job: {type: fixed, config: {replicas: elastic}}, cluster: {type: marginal, config: {pool: spot, value_of_time: 4}}}
backend: {type: simulator, config: {restart_overhead: 30s, pools: [{pool: spot, provisioning: 90s, provisioning_spread: 120s, evictions: 1h, notice: 2m}]}}
output: {write: []}
`

// A scaler that decides has spot nodes come for the jobs of the day, from none on, and go for the night, also where some are taken away meanwhile;
// the pool of one's own stays as it is.
func TestSpotPoolGrowsFromNoneAndShrinks(t *testing.T) {
	t.Parallel()
	var trace strings.Builder
	trace.WriteString("name,submit_s,duration_s,replicas,min_replicas,max_replicas\n")
	const days, jobs = 3, 12
	for day := range days {
		for i := range jobs {
			fmt.Fprintf(&trace, "d%dj%d,%d,7200,2,1,8\n", day, i, day*86_400+i*300)
		}
	}
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte(trace.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := quartet.Parse(quartet.Builtins(), "spot.yaml", fmt.Sprintf(spotPool, path), quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := doortest.Simulate(t, c).Summary
	if s.Jobs.Completed != days*jobs || len(s.Pools) != 2 {
		t.Fatalf("%+v, pools %+v", s.Jobs, s.Pools)
	}
	owned, spot := s.Pools[0], s.Pools[1]
	if hours := float64(s.MakespanSeconds) / 3600; owned.MostNodes != 1 || owned.Changes != 0 || float64(owned.NodeHours) < hours {
		t.Errorf("the pool of one's own: %+v in %v h", owned, hours)
	}
	// The work of a day is 48 device-hours, of which one node does a part: 12 node hours and some that are not full. A pool that stayed as large would
	// be paid for six nodes all the while. Those that are taken away count beside those that come instead.
	if most := 6 * float64(s.MakespanSeconds) / 3600; spot.MostNodes < 6 || spot.NodeHours < 8*days || spot.NodeHours > 15*days || float64(spot.NodeHours) > most/5 {
		t.Errorf("the spot pool: %+v, want at least six nodes at once, and %d to %d node hours, at most a fifth of %v", spot, 8*days, 15*days, most)
	}
}

// Nodes that are taken away without notice count as preemptions of the jobs on them, as failures do of nodes that stay.
func TestNodesThatAreTakenAwayPreempt(t *testing.T) {
	t.Parallel()
	const config = `version: 1
name: taken
cluster: {%s}
workload: {type: csv, config: {path: %q}}
round: {interval: 60s, on_events: true}
pipeline: {allocation: {type: fifo}, elasticity: {cluster: {type: queue}}}
backend: {type: simulator, config: {%s}}
output: {write: []}
`
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte("name,submit_s,duration_s,replicas\na,0,36000,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := "pools: [{name: spot, accelerator: t4, devices: 4, start: 1, min: 1, max: 2}]"
	nodes := "nodes: [{name: n, count: 2, accelerator: t4, devices: 4}]"
	for name, tc := range map[string]struct {
		cluster, world string
		preempted      bool
	}{
		"a pool, evictions": {pool, "pools: [{pool: spot, provisioning: 60s, evictions: 1h}]", true},
		"a pool, none":      {pool, "pools: [{pool: spot, provisioning: 60s}]", false},
		"a node goes down":  {nodes, "node_events: [{node: n-0, at: 10m, to: down}]", true},
		"a node is gone":    {nodes, "node_events: [{node: n-0, at: 10m, to: gone}]", true},
		"whole nodes":       {nodes, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := quartet.Parse(quartet.Builtins(), "taken.yaml", fmt.Sprintf(config, tc.cluster, path, tc.world), quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := doortest.Simulate(t, c).Summary
			if s.Jobs.Completed != 1 || (s.Preemptions > 0) != tc.preempted || (s.Restarts.Total > 0) != tc.preempted {
				t.Errorf("%+v, %d preemptions and %d restarts", s.Jobs, s.Preemptions, s.Restarts.Total)
			}
		})
	}
}
