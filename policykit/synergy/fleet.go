package synergy

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Fleet is what the nodes of a cluster have for jobs, by accelerator type. Nodes that are not ready have nothing.
type Fleet struct {
	Capacity // of all types together; a part that no node declares is 0
	kinds    []kind

	cluster       *core.Cluster // of the last CountIn
	healthChanges int
	nodes         int
}

// kind is the nodes of a type.
type kind struct {
	devices int            // of the largest node
	fair    core.Resources // the least for a device of any node; +Inf where no node tells
	server  core.Resources // the most of any node; +Inf where some node does not tell
}

var endless = core.Resources{CPUs: math.Inf(1), MemoryGB: math.Inf(1)}

// CountIn counts the nodes of a view's cluster. It looks at them only when the health of one changed since the last time.
func (f *Fleet) CountIn(v *core.View) {
	c := v.Cluster
	if f.cluster == c && f.healthChanges == v.HealthChanges && f.nodes == len(c.Nodes) {
		return
	}
	f.cluster, f.healthChanges, f.nodes, f.Capacity = c, v.HealthChanges, len(c.Nodes), Capacity{}
	f.kinds = f.kinds[:0]
	for range c.Accelerators {
		f.kinds = append(f.kinds, kind{fair: endless})
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Health != core.Ready {
			continue
		}
		k := &f.kinds[n.Accelerator]
		has := core.Resources{CPUs: n.CPUs, MemoryGB: n.MemoryGB}
		if !c.CountsResources {
			has = core.Resources{}
		}
		f.Devices += n.Usable().Count()
		f.Resources = f.Plus(has)
		k.devices = max(k.devices, n.Devices)
		each := ofServer(has).Times(1 / float64(n.Devices))
		k.fair = k.fair.Least(each)
		k.server = core.Resources{CPUs: max(k.server.CPUs, ofServer(has).CPUs), MemoryGB: max(k.server.MemoryGB, ofServer(has).MemoryGB)}
	}
}

// ofServer is what there is of a node's CPUs and memory: of what it does not tell, without end.
func ofServer(has core.Resources) core.Resources {
	if has.CPUs == 0 {
		has.CPUs = math.Inf(1)
	}
	if has.MemoryGB == 0 {
		has.MemoryGB = math.Inf(1)
	}
	return has
}

// Server is a node as rounds see it.
func (f *Fleet) Server(n *core.Node) Server {
	has := core.Resources{CPUs: n.CPUs, MemoryGB: n.MemoryGB}
	if !f.cluster.CountsResources {
		has = core.Resources{}
	}
	return Server{Devices: n.Usable().Count(), Resources: ofServer(has), Kind: int(n.Accelerator)}
}

// Job is a job with so many replicas. Its proportional share is the least that a device of its nodes stands for, and it wants the ideal of its
// sensitivity; without one, what it asks for. What nothing declares, it neither wants nor has.
func (f *Fleet) Job(j *core.JobSpec, replicas int, on core.AcceleratorID) Job {
	job, perServer, server := Job{Devices: replicas, Mixes: j.MixesTypes}, 0, core.Resources{}
	each := endless
	for t := range f.kinds {
		k, a := &f.kinds[t], core.AcceleratorID(t)
		if k.devices == 0 || on != core.AnyAccelerator && on != a || !j.Accepts(f.cluster, a) {
			continue
		}
		job.Kinds |= 1 << uint(t)
		each, perServer = each.Least(k.fair), max(perServer, k.devices)
		server = core.Resources{CPUs: max(server.CPUs, k.server.CPUs), MemoryGB: max(server.MemoryGB, k.server.MemoryGB)}
	}
	if !f.cluster.CountsResources {
		job.Demand.Speed = 1
		return job
	}
	job.Fair, job.Demand = Want(j, replicas, perServer, each, server)
	return job
}

// Want is the proportional share of a job with so many replicas, and what it runs best with, on servers with so many devices, of which each stands
// for a share, and which have so much in all.
//
// A job larger than a server wants the proportional share. Of more CPUs than a server has it wants those of the server, and of more memory as well.
// Source: Mohan et al., Synergy (OSDI'22), and the answers of its simulator.
func Want(j *core.JobSpec, replicas, perServer int, each, server core.Resources) (fair core.Resources, best core.Demand) {
	n := float64(replicas)
	wanted := j.Asks()
	if j.Sensitivity != nil {
		wanted = j.Sensitivity.Ideal
	}
	told := func(fair, wanted float64) (float64, float64) {
		switch {
		case math.IsInf(fair, 1):
			return wanted, wanted // nobody is short of it
		case wanted == 0:
			return fair, fair
		}
		return fair, wanted
	}
	each.CPUs, wanted.CPUs = told(each.CPUs, wanted.CPUs)
	each.MemoryGB, wanted.MemoryGB = told(each.MemoryGB, wanted.MemoryGB)
	fair, best.Resources = each.Times(n), wanted.Times(n).Least(server)
	if replicas > perServer {
		best.Resources = fair
	}
	best.Speed = SpeedOf(j, best.Resources.Times(1/n))
	return fair, best
}

// SpeedOf is how fast a job is whose replicas have so much each; 1 for one that is not sensitive.
func SpeedOf(j *core.JobSpec, each core.Resources) float64 {
	if j.Sensitivity == nil {
		return 1
	}
	return j.Sensitivity.Speed(each)
}
