package core

import (
	"fmt"
	"math"

	"github.com/quartet-sched/quartet/core/mig"
)

// Capacity is how many devices each accelerator type has, whatever the health of their nodes that are not gone, and with all nodes that
// growing pools may have: what a job could get of an idle, healthy cluster.
type Capacity struct {
	// OneType leaves out that jobs may mix types, for an allocator that puts each on devices of one.
	OneType bool
	byType  []int
	forOne  []int // scratch: what a single job could get of each type, where more than whole devices is counted
}

// Count counts the devices of a cluster. O(nodes × pools), allocating only when there are other types than before.
func (k *Capacity) Count(c *Cluster) {
	if len(k.byType) != len(c.Accelerators) {
		k.byType = make([]int, len(c.Accelerators))
	}
	clear(k.byType)
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != Gone {
			k.byType[n.Accelerator] += n.Devices
		}
	}
	for i := range c.Pools { // a scaler can only grow one for a job that it is shown, so none is held back that fits then
		k.byType[c.Pools[i].Accelerator] += c.toCome(&c.Pools[i])
	}
}

// For is the greatest number of devices of the cluster counted that a job can run on at once. They are of one
// accelerator type, the widest, unless the job mixes types. 0 and AnyAccelerator when no node carries a type it can run
// on. O(types).
func (k *Capacity) For(c *Cluster, spec *JobSpec) (devices int, widest AcceleratorID) {
	byType := k.byType
	if c.CountsShares() {
		byType = k.seatsFor(c, spec)
	}
	most, all, widest := widestOf(c, spec, byType, (*JobSpec).Accepts)
	if spec.MixesTypes && !k.OneType {
		return all, widest
	}
	return most, widest
}

// seatsFor is how many replicas of a job idle nodes could have, by type. O(nodes).
func (k *Capacity) seatsFor(c *Cluster, spec *JobSpec) []int {
	if len(k.forOne) != len(c.Accelerators) {
		k.forOne = make([]int, len(c.Accelerators))
	}
	clear(k.forOne)
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != Gone {
			k.forOne[n.Accelerator] += c.SeatsOn(spec, n)
		}
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		k.forOne[p.Accelerator] += c.seatsToCome(spec, p)
	}
	return k.forOne
}

// SeatsOn is how many replicas of a job a node could have if it were idle.
func (c *Cluster) SeatsOn(spec *JobSpec, n *Node) int {
	return c.seatsOn(spec, n.Devices, n.CPUs, n.MemoryGB, n.DeviceMemoryGB)
}

// Holds is what so many devices of a node, with all of its CPUs and memory, hold of jobs like one: the seats that a single one could have, no two on a device, and the replicas
// of several together, by whatever they run out of first; +Inf where replicas take nothing that is counted.
func (c *Cluster) Holds(spec *JobSpec, n *Node, devices int) (seats int, replicas float64) {
	return c.holdsOn(spec, devices, n.CPUs, n.MemoryGB, n.DeviceMemoryGB)
}

// PoolHolds is Holds for an idle node of a pool.
func (c *Cluster) PoolHolds(spec *JobSpec, p *Pool) (seats int, replicas float64) {
	return c.holdsOn(spec, p.Devices, p.CPUs, p.MemoryGB, p.DeviceMemoryGB)
}

func (c *Cluster) holdsOn(spec *JobSpec, devices int, cpus, memoryGB, deviceMemoryGB float64) (seats int, replicas float64) {
	if seats = c.seatsOn(spec, devices, cpus, memoryGB, deviceMemoryGB); seats == 0 {
		return 0, 0
	}
	replicas = float64(devices) * c.perDevice(spec, deviceMemoryGB)
	if c.CountsResources {
		for _, of := range [...]struct{ asks, has float64 }{{spec.CPUs, cpus}, {spec.MemoryGB, memoryGB}} {
			if one, all := asks(of.asks), has(of.has); one > 0 && all != unknown {
				replicas = min(replicas, float64(all/one))
			}
		}
	}
	return seats, replicas
}

// perDevice is how many replicas like those of a job a device holds that has room for one.
func (c *Cluster) perDevice(spec *JobSpec, memoryGB float64) float64 {
	switch {
	case c.Sharing == Exclusive || c.Sharing == TimeSlice: // who takes turns would have devices of his own
		return 1
	case spec.milli() == 0:
		return math.Inf(1)
	case c.Sharing == Mig:
		slice := mig.Of(spec.Slice())
		return float64(min(mig.ComputeSlices/slice.Compute, mig.Slices/slice.Memory))
	}
	each := int64(WholeDevice / spec.milli())
	if one, all := asks(spec.DeviceMemoryGB), has(memoryGB); one > 0 && all != unknown {
		each = min(each, all/one)
	}
	return float64(each)
}

// seatsOn is how many replicas of a job an idle node could have.
func (c *Cluster) seatsOn(spec *JobSpec, devices int, cpus, memoryGB, deviceMemoryGB float64) int {
	if c.Sharing != Exclusive && asks(spec.DeviceMemoryGB) > c.memoryFor(spec, has(deviceMemoryGB)) {
		return 0
	}
	if !c.CountsResources {
		return devices
	}
	for _, of := range [...]struct{ asks, has float64 }{{spec.CPUs, cpus}, {spec.MemoryGB, memoryGB}} {
		if one := asks(of.asks); one > 0 {
			devices = int(min(int64(devices), has(of.has)/one))
		}
	}
	return devices
}

// holds reports whether idle nodes of a type, and those that pools may still get, hold so many replicas of a job.
func (c *Cluster) holds(spec *JobSpec, t AcceleratorID, replicas int) bool {
	missing := max(replicas, 1)
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Accelerator == t && n.Health != Gone {
			if missing -= c.SeatsOn(spec, n); missing <= 0 {
				return true
			}
		}
	}
	for i := range c.Pools {
		if p := &c.Pools[i]; p.Accelerator == t {
			missing -= c.seatsToCome(spec, p)
		}
	}
	return missing <= 0
}

// seatsToCome is how many replicas of a job the nodes that a pool may still get could have.
func (c *Cluster) seatsToCome(spec *JobSpec, p *Pool) int {
	if p.Devices == 0 {
		return 0
	}
	return c.toCome(p) / p.Devices * c.seatsOn(spec, p.Devices, p.CPUs, p.MemoryGB, p.DeviceMemoryGB)
}

// memoryFor is how much of the memory of a device, in thousandths, a replica of a job could have at most: that of its slice where devices are divided so.
func (c *Cluster) memoryFor(spec *JobSpec, memory int64) int64 {
	if c.Sharing != Mig || spec.milli() == 0 || memory == unknown {
		return memory
	}
	return memory / mig.Slices * int64(mig.Of(spec.Slice()).Memory)
}

// widestOf is how many of devices, by type, a job can have of one type, of which, and of all that are for it.
func widestOf(c *Cluster, spec *JobSpec, devices []int, isFor func(*JobSpec, *Cluster, AcceleratorID) bool) (one, all int, widest AcceleratorID) {
	widest = AnyAccelerator
	for t, n := range devices {
		if !isFor(spec, c, AcceleratorID(t)) {
			continue
		}
		if all += n; n > one {
			one, widest = n, AcceleratorID(t)
		}
	}
	return one, all, widest
}

// CapacityFor is Capacity.For a single job on the nodes that there are, under an allocator that mixes types. O(types × nodes), without allocating.
func (c *Cluster) CapacityFor(spec *JobSpec) int {
	most, all := 0, 0
	for t := range c.Accelerators {
		if accelerator := AcceleratorID(t); spec.Accepts(c, accelerator) {
			n := c.devicesOf(accelerator)
			most, all = max(most, n), all+n
		}
	}
	if spec.MixesTypes {
		return all
	}
	return most
}

func (c *Cluster) devicesOf(accelerator AcceleratorID) int {
	total := 0
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Accelerator == accelerator && n.Health != Gone {
			total += n.Devices
		}
	}
	return total
}

// MayHave is how many devices the cluster may ever have: those of all nodes that are not gone, and of those that growing pools may still get.
func (c *Cluster) MayHave() int {
	most := c.Devices()
	for i := range c.Pools {
		most += c.toCome(&c.Pools[i])
	}
	return most
}

// toCome is how many devices a pool may still get: none where nobody has it grow.
func (c *Cluster) toCome(p *Pool) int {
	if !c.MayGrow {
		return 0
	}
	nodes := 0 // those that leave included
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Pool == p.Name && n.Health != Gone {
			nodes++
		}
	}
	return max(p.Max-nodes, 0) * p.Devices
}

// NotMixed says why an allocator of one type a job cannot serve a job that mixes types and is wider than any.
func NotMixed(allocator, widest string) string {
	return fmt.Sprintf("%s puts a job on devices of one type, and %s has most of them", allocator, widest)
}
