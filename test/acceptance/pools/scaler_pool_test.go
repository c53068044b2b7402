package pools_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
)

// A scaler is held to the pools of the cluster before a run, with the nearest of them.
func TestScalersOfUnknownPoolsAreRefused(t *testing.T) {
	const config = `version: 1
cluster: {%s}
workload: {type: generated}
round: {interval: 60s}
pipeline:
  allocation: {type: fifo}
  elasticity: {cluster: {type: %s, config: {pool: %q}}}
`
	pools := "pools: [{name: owned, accelerator: t4, devices: 4, start: 1, max: 1}, {name: spot, accelerator: t4, devices: 4, max: 6}]"
	nodes := "nodes: [{name: n, count: 1, accelerator: t4, devices: 4}]"
	for name, tc := range map[string]struct{ cluster, pool, want string }{
		"unknown": {pools, "spott", `pool.yaml:7:`},
		"all":     {pools, "", ""},
		"known":   {pools, "spot", ""},
		"no pool": {nodes, "spot", ""}, // a cluster without pools is not sized at all
	} {
		for _, scaler := range []string{"queue", "throughput", "goodput", "marginal"} {
			_, err := quartet.Parse(quartet.Builtins(), "pool.yaml", fmt.Sprintf(config, tc.cluster, scaler, tc.pool), quartet.Options{})
			const say = `pipeline.elasticity.cluster.config.pool: unknown pool "spott"; did you mean "spot"? valid pools: owned, spot`
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), say)) {
				t.Errorf("%s, %s: %v", scaler, name, err)
			}
		}
	}
}
