package core

import (
	"fmt"
	"slices"
	"strings"
)

// MissingResource is something of which a replica of a job asks for more than any device or node has that the job may run on.
type MissingResource struct {
	What              string  // "device memory", "CPUs" or "memory"; empty where nothing is lacking
	Wanted, Available float64 // for each replica, and the most that there is, in Unit
	Unit              string  // "GB" or "CPUs"
	of                string  // who has too little: "device", "slice of its profile" or "node"
}

// String is the reason as half a sentence, with both figures.
func (l MissingResource) String() string {
	if l.Unit == l.What {
		return fmt.Sprintf("%v %s for each replica, and no %s that it can run on has more than %v", l.Wanted, l.What, l.of, l.Available)
	}
	return fmt.Sprintf("%v %s of %s for each replica, and no %s that it can run on has more than %v %s", l.Wanted, l.Unit, l.What, l.of, l.Available, l.Unit)
}

// message is for a verdict, which tells the figures besides.
func (l MissingResource) message() string {
	return fmt.Sprintf("no %s that it can run on has the %s that each of its replicas asks for", l.of, l.What)
}

// MissingResource returns what keeps a replica of a job off every idle node of the types that the job names: the first of device memory, CPUs and memory that
// is counted and that none of them has enough of. A node has enough of what it does not declare. O(nodes).
func (c *Cluster) MissingResource(spec *JobSpec) MissingResource {
	asked := [...]struct{ asks, most int64 }{{asks: asks(spec.DeviceMemoryGB)}, {asks: asks(spec.CPUs)}, {asks: asks(spec.MemoryGB)}}
	any := false
	look := func(t AcceleratorID, cpus, memoryGB, deviceMemoryGB float64) {
		if len(spec.Accelerators) > 0 && !slices.Contains(spec.Accelerators, c.Accelerators[t]) {
			return
		}
		any = true
		for i, amount := range [...]int64{c.memoryFor(spec, has(deviceMemoryGB)), has(cpus), has(memoryGB)} {
			asked[i].most = max(asked[i].most, amount)
		}
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != Gone {
			look(n.Accelerator, n.CPUs, n.MemoryGB, n.DeviceMemoryGB)
		}
	}
	for i := range c.Pools {
		if p := &c.Pools[i]; c.toCome(p) > 0 {
			look(p.Accelerator, p.CPUs, p.MemoryGB, p.DeviceMemoryGB)
		}
	}
	for i, l := range [...]MissingResource{
		{What: "device memory", Wanted: spec.DeviceMemoryGB, Unit: "GB", of: "device"},
		{What: "CPUs", Wanted: spec.CPUs, Unit: "CPUs", of: "node"},
		{What: "memory", Wanted: spec.MemoryGB, Unit: "GB", of: "node"},
	} {
		counted := c.CountsResources
		if i == 0 {
			counted = c.Sharing != Exclusive
		}
		if i == 0 && c.Sharing == Mig {
			l.of = "slice of its profile"
		}
		if any && counted && asked[i].asks > asked[i].most {
			l.Available = float64(asked[i].most) / 1000
			return l
		}
	}
	return MissingResource{}
}

// Counted names what a replica of a job asks for that the cluster counts beside devices, as in "the 8 GB of device memory and the 2 CPUs"; empty for
// nothing.
func (c *Cluster) Counted(spec *JobSpec) string {
	var list []string
	if c.Sharing != Exclusive && spec.DeviceMemoryGB > 0 {
		list = append(list, fmt.Sprintf("the %v GB of device memory", spec.DeviceMemoryGB))
	}
	if c.CountsResources && spec.CPUs > 0 {
		list = append(list, fmt.Sprintf("the %v CPUs", spec.CPUs))
	}
	if c.CountsResources && spec.MemoryGB > 0 {
		list = append(list, fmt.Sprintf("the %v GB of memory", spec.MemoryGB))
	}
	if last := len(list) - 1; last > 0 {
		return strings.Join(list[:last], ", ") + " and " + list[last]
	}
	return strings.Join(list, "")
}
