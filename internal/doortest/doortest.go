// Package doortest composes and simulates through the root package, for tests of the engine and of what policies come to.
package doortest

import (
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

// Small is a config of twenty jobs of one replica on four devices, by FIFO.
func Small() quartet.Spec {
	s := quartet.NewSpec()
	s.Name = "small"
	s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 2, Accelerator: "t4", Devices: 2}}
	s.Workload = quartet.Part{Type: "generated", Config: map[string]any{"jobs": 20, "span": "1h", "replicas": "one"}}
	s.Pipeline.Allocation.Type = "fifo"
	return s
}

// Compose checks a config, and fails the test where that finds something.
func Compose(t testing.TB, c quartet.Catalog, s quartet.Spec) *quartet.Composition {
	t.Helper()
	composition, err := quartet.Compose(c, s)
	if err != nil {
		t.Fatal(err)
	}
	return composition
}

// Simulate simulates a composition to its end, and fails the test where that fails.
func Simulate(t testing.TB, c *quartet.Composition) *quartet.Result {
	t.Helper()
	r, err := c.Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ObserverFunc is an observer that calls itself for each round.
type ObserverFunc func(r *core.Report)

// ObserveRound calls the function.
func (o ObserverFunc) ObserveRound(r *core.Report) error {
	o(r)
	return nil
}

// GrowingPool is a config of one pool of nodes of four devices that grows by demand. What is left open are, in this order, the nodes it
// begins with, the most it may have, the file of its jobs, whether rounds are held on events, the admission, the replicas of the elasticity,
// the scaler, and more settings of the pool in the simulator.
const GrowingPool = `version: 1
name: growing
cluster:
  pools: [{name: p, accelerator: t4, devices: 4, start: %d, max: %d, price_per_hour: 1}]
workload: {type: csv, config: {path: %q}}
round: {interval: 60s, on_events: %t}
pipeline:
  admission: [{type: %s}]
  allocation: {type: elasticflow}
  placement: {type: first_fit}
  elasticity: {job: {type: fixed, config: {replicas: %s}}, cluster: {type: %s}}
backend: {type: simulator, config: {restart_overhead: 0s, pools: [{pool: p, provisioning: 90s%s}]}}
output: {write: []}
`
