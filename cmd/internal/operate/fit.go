package operate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
)

// noteMisfits tells of jobs that were handed in and need more devices than the nodes have: they wait for nodes of pools, or the next
// round rejects them, and `jobs` lists them no more.
func (a *app) noteMisfits(ctx context.Context, client cluster.Orders, files []backend.JobFile) {
	scheduler, is := client.(*control.Client)
	if !is {
		return // who submits to a cluster need not see nodes
	}
	listed, err := scheduler.Cluster(ctx)
	if err != nil {
		return // they were taken in all the same
	}
	cluster := listedCluster(listed)
	for _, f := range files {
		jobs, err := workload.DecodeJobs(f.Name, f.Text)
		if err != nil {
			continue // the scheduler reads another form
		}
		for i := range jobs {
			if text := misfit(&jobs[i], cluster); text != "" {
				a.Note("%s", text)
			}
		}
	}
}

// misfit is what there is to tell of a job that no nodes can seat that are there; empty for another one.
func misfit(job *workload.Job, c *core.Cluster) string {
	spec := &job.Spec
	there := *c
	there.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), comesToPool)
	present := there.CapacityFor(spec)
	if spec.MinReplicas <= present {
		return ""
	}
	var all core.Capacity
	all.Count(c)
	if capacity, _ := all.For(c, spec); spec.MinReplicas > capacity {
		return engine.Misfit(job, c, spec.MinReplicas, capacity).Summary + "; the next round will reject it, unless nodes will join"
	}
	return fmt.Sprintf("job %q needs %d devices, and the nodes that are there have %d that it can run on; it waits for nodes of a pool%s",
		spec.Name, spec.MinReplicas, present, whenEnough(spec, &there, c))
}

// comesToPool reports whether a node of a pool is on its way.
func comesToPool(n core.Node) bool { return n.Pool != "" && n.Health == core.Provisioning }

// whenEnough says when the nodes on their way should be ready that a job needs, and where more must be asked for, how long these take
// as a rule; empty where nobody knows. It adds the nodes to those that are there.
func whenEnough(spec *core.JobSpec, there, all *core.Cluster) string {
	var coming []core.Node
	for _, n := range all.Nodes {
		if comesToPool(n) {
			coming = append(coming, n)
		}
	}
	moment := func(n core.Node) float64 { return cmp.Or(n.ExpectedSeconds, math.Inf(1)) }
	slices.SortStableFunc(coming, func(a, b core.Node) int { return cmp.Compare(moment(a), moment(b)) })
	for _, n := range coming {
		if there.Nodes = append(there.Nodes, n); there.CapacityFor(spec) < spec.MinReplicas {
			continue
		}
		if n.ExpectedSeconds == 0 {
			return ""
		}
		return ", which should be ready at " + render.Span(n.ExpectedSeconds)
	}
	for i := range all.Pools {
		if p := &all.Pools[i]; p.ProvisioningSeconds > 0 && spec.CanRunOn(all, p.Accelerator) {
			return fmt.Sprintf(", and one of pool %q takes %s as a rule once it is asked for", p.Name, render.Span(p.ProvisioningSeconds))
		}
	}
	return ""
}

// listedCluster is a cluster as a scheduler lists it.
func listedCluster(listed *controlv1.NodesResponse) *core.Cluster {
	c := &core.Cluster{MayGrow: listed.GetMayGrow()}
	accelerator := func(name string) core.AcceleratorID {
		if c.Accelerator(name) == core.AnyAccelerator {
			c.Accelerators = append(c.Accelerators, name)
		}
		return c.Accelerator(name)
	}
	for i, n := range listed.GetNodes() {
		node := core.Node{
			ID: core.NodeID(i), Name: n.GetName(), Accelerator: accelerator(n.GetAccelerator()), Devices: int(n.GetDevices()), Rack: n.GetRack(),
			Pool: n.GetPool(), ExpectedSeconds: n.GetExpectedSeconds(),
		}
		if n.GetHealth() == core.Provisioning.String() {
			node.Health = core.Provisioning
		}
		c.Nodes = append(c.Nodes, node)
	}
	for _, p := range listed.GetPools() {
		c.Pools = append(c.Pools, core.Pool{
			Name: p.GetName(), Accelerator: accelerator(p.GetAccelerator()), Devices: int(p.GetDevices()), Max: int(p.GetMaxNodes()),
			ProvisioningSeconds: p.GetProvisioningSeconds(),
		})
	}
	return c
}
