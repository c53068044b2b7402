package main

import (
	"context"
	"slices"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/workload"
)

// noteMisfits tells of jobs that were handed in and need more devices than the cluster has: the next round rejects them,
// and `jobs` lists them no more.
func (a *app) noteMisfits(ctx context.Context, client orders, files []backend.JobFile) {
	if _, is := client.(cluster); is {
		return // who submits there need not see nodes
	}
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return // they were taken in all the same
	}
	cluster := listedCluster(nodes)
	for _, f := range files {
		jobs, err := workload.DecodeJobs(f.Name, f.Text)
		if err != nil {
			continue // the scheduler reads another form
		}
		for i := range jobs {
			spec := &jobs[i].Spec
			if capacity := cluster.CapacityFor(spec); spec.MinReplicas > capacity {
				a.note("%s; the next round will reject it, unless nodes are to join", quartet.Misfit(&jobs[i], cluster, spec.MinReplicas, capacity).Summary)
			}
		}
	}
}

// listedCluster is a cluster as a scheduler lists it.
func listedCluster(nodes []*controlv1.Node) *core.Cluster {
	c := &core.Cluster{}
	for i, n := range nodes {
		at := slices.Index(c.Accelerators, n.GetAccelerator())
		if at < 0 {
			at = len(c.Accelerators)
			c.Accelerators = append(c.Accelerators, n.GetAccelerator())
		}
		c.Nodes = append(c.Nodes, core.Node{
			ID: core.NodeID(i), Name: n.GetName(), Accelerator: core.AcceleratorID(at), Devices: int(n.GetDevices()), Rack: n.GetRack(),
		})
	}
	return c
}
