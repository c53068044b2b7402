package configs

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// defaultMaxOwners is how many jobs may be on a device where they take turns and the config does not say.
const defaultMaxOwners = 2

// Cluster is the machines of a config.
type Cluster struct {
	// Nodes: the machines, one item for each group of equal nodes.
	Nodes []NodeGroup `config:"nodes" doc:"the machines, one item for each group of equal nodes; may be left out where there are pools"`
	// Pools: groups of equal nodes that come and go as pipeline.elasticity.cluster decides.
	Pools []Pool `config:"pools" doc:"groups of equal nodes that come and go as pipeline.elasticity.cluster decides"`

	// Sharing: who may be on a device together: none, fractional, timeslice or mig.
	Sharing string `config:"sharing" doc:"who may be on a device together: none: each is one job's at a time; fractional: jobs have the shares that they ask for, together at most the device; timeslice: jobs take turns on devices, max_owners of them at most; mig: devices are divided into slices, 7 for compute and 8 of memory, of which each replica has one" enum:"none|fractional|timeslice|mig"`
	// MaxOwners: with timeslice: how many jobs may be on a device.
	MaxOwners int `config:"max_owners" doc:"with timeslice: how many jobs may be on a device" min:"1"`
	// OversubscribeMemory: with timeslice: jobs need not be in the memory of a device together, for that of one which waits for its turn lies on the host.
	OversubscribeMemory bool `config:"oversubscribe_memory" doc:"with timeslice: jobs need not be in the memory of a device together, for that of one which waits for its turn lies on the host"`
	// CountResources: jobs have the CPUs and the memory that they ask for, and no node gives more than it has.
	CountResources bool `config:"count_resources" doc:"jobs have the CPUs and the memory that they ask for, and no node gives more than it has; one that says nothing of its own is short of nothing"`
}

// Pool is equal nodes that come and go.
type Pool struct {
	// Name: name of the pool.
	Name string `config:"name" doc:"name of the pool; its nodes are called name-0, name-1, …" required:"true"`
	// Accelerator: accelerator type of the devices.
	Accelerator string `config:"accelerator" doc:"accelerator type of the devices" required:"true"`
	// Devices: devices on each node, 1 to 64.
	Devices int `config:"devices" doc:"devices on each node, 1 to 64"`
	// Start: nodes at the beginning.
	Start int `config:"start" doc:"nodes at the beginning" min:"0"`
	// Min: fewest nodes.
	Min int `config:"min" doc:"fewest nodes" min:"0"`
	// Max: most nodes.
	Max int `config:"max" doc:"most nodes" min:"0"`
	// PricePerHour: what an hour of a node costs, from when it is ready until it is gone.
	PricePerHour float64 `config:"price_per_hour" doc:"what an hour of a node costs, from when it is ready until it is gone; 1 counts node hours" min:"0" max:"1e9"`
	// Prices: later prices of a node, in order of their moments.
	Prices []Price `config:"prices" doc:"later prices of a node, in order of their moments"`
	// UpCooldown: least time between two changes upwards.
	UpCooldown time.Duration `config:"up_cooldown" doc:"least time between two changes upwards" min:"0s"`
	// DownCooldown: least time from any change to one downwards.
	DownCooldown time.Duration `config:"down_cooldown" doc:"least time from any change to one downwards" min:"0s"`
	// CPUs: CPU cores of each node, counted with count_resources.
	CPUs float64 `config:"cpus" doc:"CPU cores of each node, counted with count_resources; 0: not known" min:"0"`
	// MemoryGB: memory of each node, counted with count_resources.
	MemoryGB float64 `config:"memory_gb" doc:"memory of each node, counted with count_resources; 0: not known" min:"0"`
	// DeviceMemoryGB: memory of each device, counted where devices are shared.
	DeviceMemoryGB float64 `config:"device_memory_gb" doc:"memory of each device, counted where devices are shared; 0: not known" min:"0"`
}

// Price is what a node of a pool costs from a moment on.
type Price struct {
	// From: time in the run from which the price holds.
	From time.Duration `config:"from" doc:"time in the run from which the price holds" min:"0s"`
	// PerHour: what an hour of a node costs.
	PerHour float64 `config:"per_hour" doc:"what an hour of a node costs" min:"0" max:"1e9"`
}

// prices are those of the pool after the first.
func (p *Pool) prices() (list []core.Price) {
	for _, price := range p.Prices {
		list = append(list, core.Price{FromSeconds: price.From.Seconds(), PerHour: price.PerHour})
	}
	return list
}

// group is the nodes that a pool begins with.
func (p *Pool) group() NodeGroup {
	return NodeGroup{Name: p.Name, Count: p.Start, Accelerator: p.Accelerator, Devices: p.Devices, CPUs: p.CPUs, MemoryGB: p.MemoryGB, DeviceMemoryGB: p.DeviceMemoryGB}
}

// names reports whether a node of the pool may have a name.
func (p *Pool) names(name string) bool {
	number, of := strings.CutPrefix(name, p.Name+"-")
	return of && number != "" && strings.Trim(number, "0123456789") == ""
}

// NodeGroup is a number of equal nodes.
type NodeGroup struct {
	// Name: name of the node.
	Name string `config:"name" doc:"name of the node; more than one are called name-0, name-1, …" required:"true"`
	// Count: number of nodes, 1 if left out.
	Count int `config:"count" doc:"number of nodes, 1 if left out"`
	// Accelerator: accelerator type of its devices.
	Accelerator string `config:"accelerator" doc:"accelerator type of its devices" required:"true"`
	// Devices: devices on each node.
	Devices int `config:"devices" doc:"devices on each node" min:"1" max:"64"`
	// CPUs: CPU cores of each node, counted with count_resources.
	CPUs float64 `config:"cpus" doc:"CPU cores of each node, counted with count_resources; 0: not known" min:"0"`
	// MemoryGB: memory of each node, counted with count_resources.
	MemoryGB float64 `config:"memory_gb" doc:"memory of each node, counted with count_resources; 0: not known" min:"0"`
	// DeviceMemoryGB: memory of each device, counted where devices are shared.
	DeviceMemoryGB float64 `config:"device_memory_gb" doc:"memory of each device, counted where devices are shared; 0: not known" min:"0"`
	// Rack: rack that the nodes stand in: a level of cells, of the placement cells.
	Rack string `config:"rack" doc:"rack that the nodes stand in: a level of cells, of the placement cells; no other policy reads it"`
}

// nodeName names the i-th node of the group.
func (g *NodeGroup) nodeName(i int) string {
	if g.Count == 1 {
		return g.Name
	}
	return fmt.Sprintf("%s-%d", g.Name, i)
}

// sized are the groups with as many nodes as a load by nodes leaves, rounded such that the sum over the groups is the nearest, and
// one at least of each. A group of several nodes keeps their names when one is left.
func sized(groups []NodeGroup, l workload.Load) []NodeGroup {
	if l.By != workload.ByNodes || !(l.Factor > 0) {
		return groups
	}
	list := make([]NodeGroup, len(groups))
	before, sum := 0.0, 0
	for i := range groups {
		g := groups[i]
		sum += g.Count
		upTo := math.RoundToEven(math.Min(float64(sum)/l.Factor, maxNodes+1))
		count := max(int(upTo-before), 1)
		before = upTo
		if count == 1 && g.Count > 1 {
			g.Name = g.nodeName(0)
		}
		g.Count = count
		list[i] = g
	}
	return list
}

// BuildCluster makes the cluster: nodes in the order of the config, accelerator types in order of first
// appearance. A load by nodes makes it larger or smaller than the config says. Pools that nobody sizes may have their least number of nodes at most,
// whatever they begin with: that is what the pipeline holds.
func (c *Config) BuildCluster() *core.Cluster {
	sharing, _ := core.SharingOf(c.Cluster.Sharing) // the file was checked
	cluster := &core.Cluster{
		Sharing: sharing, MaxOwners: c.Cluster.MaxOwners, OversubscribesMemory: c.Cluster.OversubscribeMemory, CountsResources: c.Cluster.CountResources,
	}
	types := map[string]core.AcceleratorID{}
	typeOf := func(name string) core.AcceleratorID {
		accelerator, known := types[name]
		if !known {
			accelerator = core.AcceleratorID(len(cluster.Accelerators))
			types[name] = accelerator
			cluster.Accelerators = append(cluster.Accelerators, name)
		}
		return accelerator
	}
	add := func(g *NodeGroup, name, pool string) {
		cluster.Nodes = append(cluster.Nodes, core.Node{
			ID: core.NodeID(len(cluster.Nodes)), Name: name, Accelerator: typeOf(g.Accelerator), Devices: g.Devices,
			CPUs: g.CPUs, MemoryGB: g.MemoryGB, DeviceMemoryGB: g.DeviceMemoryGB, Rack: g.Rack, Pool: pool,
		})
	}
	groups := sized(c.Cluster.Nodes, c.Sample.Load)
	for i := range groups {
		g := &groups[i]
		for k := range g.Count {
			add(g, g.nodeName(k), "")
		}
	}
	for i := range c.Cluster.Pools {
		p := &c.Cluster.Pools[i]
		most := p.Max
		if c.Scaler.Factory.Type == noScaler { // nobody is to wait, or to be told, of nodes that nobody asks for
			most = p.Min
		}
		cluster.Pools = append(cluster.Pools, core.Pool{
			Name: p.Name, Accelerator: typeOf(p.Accelerator), Devices: p.Devices, CPUs: p.CPUs, MemoryGB: p.MemoryGB, DeviceMemoryGB: p.DeviceMemoryGB, Min: p.Min, Max: most,
			PricePerHour: p.PricePerHour, Prices: p.prices(), UpCooldownSeconds: p.UpCooldown.Seconds(), DownCooldownSeconds: p.DownCooldown.Seconds(),
		})
		g := p.group()
		for k := range p.Start {
			add(&g, fmt.Sprintf("%s-%d", p.Name, k), p.Name)
		}
	}
	return cluster
}
