package main

import (
	"fmt"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
)

// checkFit refuses a workload with jobs that the cluster could not run even when it is empty and healthy: they would
// only be rejected one by one.
func checkFit(c *configs.Config, cluster *core.Cluster, w *workload.Workload) error {
	var found core.Diagnostics
	byType := make([]int, len(cluster.Accelerators))
	for i := range cluster.Nodes {
		byType[cluster.Nodes[i].Accelerator] += cluster.Nodes[i].Devices
	}
	for i := range w.Jobs {
		spec := &w.Jobs[i].Spec
		need := spec.MinReplicas
		if rigid(c) {
			need = min(max(spec.Requested, spec.MinReplicas), spec.MaxReplicas)
		}
		most := 0
		for t, devices := range byType {
			if spec.CanRunOn(cluster, core.AcceleratorID(t)) {
				most = max(most, devices)
			}
		}
		if need > most {
			found = append(found, core.Diagnostic{
				Position: w.Jobs[i].At,
				Summary:  fmt.Sprintf("job %q needs %d devices, the cluster has %d that it can run on", spec.Name, need, most),
				Hint:     "a job runs on devices of one accelerator type; enlarge the cluster or leave the job out",
			})
		}
	}
	return found.Err()
}

// rigid reports whether every job runs on its requested replicas and nothing else.
func rigid(c *configs.Config) bool {
	fixed, ok := c.Elasticity.Config.(*elasticity.FixedConfig)
	return ok && fixed.Replicas == "requested"
}
