package core

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// NodeID is the index of a node in Cluster.Nodes.
type NodeID int32

// AcceleratorID is the index of an accelerator type in Cluster.Accelerators.
type AcceleratorID int16

// AnyAccelerator leaves the accelerator type to the placer.
const AnyAccelerator AcceleratorID = -1

// MaxDevicesPerNode bounds Node.Devices: a DeviceSet is one machine word.
const MaxDevicesPerNode = 64

// Health says whether a node takes part in placement.
type Health uint8

// The states of a node. A draining node is up, but nothing may be placed or left on it after the next round. One that is
// being provisioned is to become ready. One that is gone never comes back, and neither does its id.
const (
	Ready Health = iota
	Draining
	Down
	Provisioning
	Gone
)

var healthNames = [...]string{"ready", "draining", "down", "provisioning", "gone"}

// String returns the name of the state of health, such as "draining".
func (h Health) String() string { return name(healthNames[:], int(h)) }

// Node is one machine with devices of a single accelerator type.
type Node struct {
	ID          NodeID        // index of the node in Cluster.Nodes
	Name        string        // unique among the nodes that are not gone
	Accelerator AcceleratorID // type of all its devices
	Devices     int           // number of devices, from 1 to MaxDevicesPerNode
	CPUs        float64       // cores; 0 when unknown
	MemoryGB    float64       // main memory in GB; 0 when unknown
	Rack        string        // name of its rack; empty when unknown
	Health      Health        // whether jobs may run on it
	// DeviceMemoryGB is the memory of each device; 0 when unknown. It is counted where devices are shared.
	DeviceMemoryGB float64
	Unusable       DeviceSet // devices that are broken, or held by others than the jobs of this cluster
	Pool           string    // that the node belongs to; empty for none
	// ExpectedSeconds is when a node that is being provisioned should be ready, as far as the backend knows; 0 when nobody knows, and
	// of every other node.
	ExpectedSeconds float64
}

// Usable is the set of devices that may be placed on now: none of a node that is not ready.
func (n *Node) Usable() DeviceSet {
	if n.Health != Ready {
		return 0
	}
	return FirstDevices(n.Devices) &^ n.Unusable
}

// Cluster is the machines and the accelerator types they carry. Nodes that join, and their types, come last.
type Cluster struct {
	Accelerators []string // names of the types, by AcceleratorID
	Nodes        []Node   // by NodeID, those that are gone included
	// MayGrow says that nodes may still join: no job is rejected for good for being too large.
	MayGrow bool
	// Pools are the nodes that come and go as a scaler decides.
	Pools []Pool
	// Sharing says who may be on a device together.
	Sharing Sharing
	// MaxOwners is how many jobs may be on a device, where they take turns.
	MaxOwners int
	// OversubscribesMemory says that jobs which take turns need not be in the memory of the device together: that of one which waits for its
	// turn lies on the host.
	OversubscribesMemory bool
	// CountsResources says that jobs have the CPUs and the memory that they ask for, and no node gives more than it has.
	CountsResources bool
}

// CountsShares reports whether more than whole devices is counted.
func (c *Cluster) CountsShares() bool { return c.Sharing != Exclusive || c.CountsResources }

// Devices counts every device, whatever the health of its node, unless that is gone.
func (c *Cluster) Devices() int {
	total := 0
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != Gone {
			total += n.Devices
		}
	}
	return total
}

// Accelerator is the id of a type; AnyAccelerator for a type that no node ever carried.
func (c *Cluster) Accelerator(name string) AcceleratorID {
	return AcceleratorID(slices.Index(c.Accelerators, name))
}

// UsableDevices counts the usable devices of ready nodes.
func (c *Cluster) UsableDevices() int {
	total := 0
	for i := range c.Nodes {
		total += c.Nodes[i].Usable().Count()
	}
	return total
}

// LargestNode is the greatest number of devices on one node.
func (c *Cluster) LargestNode() int {
	largest := 0
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != Gone {
			largest = max(largest, n.Devices)
		}
	}
	return largest
}

// DeviceSet is a set of device indices of one node, bit i for device i.
type DeviceSet uint64

// FirstDevices is {0, …, n-1}.
func FirstDevices(n int) DeviceSet {
	if n >= MaxDevicesPerNode {
		return ^DeviceSet(0)
	}
	return DeviceSet(1)<<n - 1
}

// Count is the number of devices in the set.
func (d DeviceSet) Count() int { return bits.OnesCount64(uint64(d)) }

// First is the lowest device of a set that is not empty.
func (d DeviceSet) First() int { return bits.TrailingZeros64(uint64(d)) }

// Lowest is the subset of the n lowest devices, or all of d when it holds fewer.
func (d DeviceSet) Lowest(n int) DeviceSet {
	rest := d
	for ; n > 0 && rest != 0; n-- {
		rest &= rest - 1
	}
	return d &^ rest
}

// List returns the device indices in ascending order.
func (d DeviceSet) List() []int {
	list := make([]int, 0, d.Count())
	for rest := d; rest != 0; rest &= rest - 1 {
		list = append(list, rest.First())
	}
	return list
}

// String renders the set as "0,1,3".
func (d DeviceSet) String() string {
	var b strings.Builder
	for i, device := range d.List() {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, device)
	}
	return b.String()
}

// Seat is the devices that a job holds on one node.
type Seat struct {
	Node    NodeID    // that the devices belong to
	Devices DeviceSet // of the node; never empty
}

// Replicas counts the devices over all seats; one replica runs on one device.
func Replicas(seats []Seat) int {
	total := 0
	for _, s := range seats {
		total += s.Devices.Count()
	}
	return total
}

// SameSeats reports whether two seatings hold the same devices in the same node order.
func SameSeats(a, b []Seat) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) > 0 && &a[0] == &b[0] {
		return true // a placer that lets a job stay answers with the seats it holds
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// SameDevices reports whether two seatings, each with one seat a node, are of the same devices in whatever order.
func SameDevices(a, b []Seat) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s Seat) bool { return !slices.Contains(b, s) })
}

// Ledger keeps the free devices of every node while a placer or the pipeline seats jobs. The zero value is empty;
// Reset makes every usable device free. It allocates only when the cluster grows.
type Ledger struct {
	free  []DeviceSet
	total int
	idle  idle

	reserved []DeviceSet // by node: what Occupy alone takes; empty for none
	kept     []DeviceSet // of these, those that nobody has
}

// idle is what is free of a cluster without jobs, as of a change of health.
type idle struct {
	cluster       *Cluster
	healthChanges int
	free          []DeviceSet
	total         int
}

// Reset makes every usable device of the cluster free.
func (l *Ledger) Reset(c *Cluster) {
	l.reserved = l.reserved[:0]
	if cap(l.free) < len(c.Nodes) {
		l.free = make([]DeviceSet, len(c.Nodes))
	}
	l.free = l.free[:len(c.Nodes)]
	l.total = 0
	for i := range c.Nodes {
		l.free[i] = c.Nodes[i].Usable()
		l.total += l.free[i].Count()
	}
}

// ResetTo is Reset for the cluster of a view. It looks at the nodes only when the health of one changed since the last time.
func (l *Ledger) ResetTo(v *View) {
	if l.idle.cluster == v.Cluster && l.idle.healthChanges == v.HealthChanges {
		l.free, l.total, l.reserved = append(l.free[:0], l.idle.free...), l.idle.total, l.reserved[:0]
		return
	}
	l.Reset(v.Cluster)
	l.idle = idle{v.Cluster, v.HealthChanges, append(l.idle.free[:0], l.free...), l.total}
}

// Reserve takes what is reserved out of what is free, until the next reset: after it only Occupy gives these devices out, as to a job that stays where it is.
func (l *Ledger) Reserve(of []Reservation) {
	if len(of) == 0 {
		return
	}
	l.reserved = append(l.reserved[:0], make([]DeviceSet, len(l.free))...)
	l.kept = append(l.kept[:0], make([]DeviceSet, len(l.free))...)
	for _, r := range of {
		l.reserved[r.Node] |= r.Devices
		l.kept[r.Node] |= r.Devices & l.free[r.Node]
		l.total -= (r.Devices & l.free[r.Node]).Count()
		l.free[r.Node] &^= r.Devices
	}
}

// Reserved is the devices of a node that Reserve took out of what is free, whether somebody has them or not.
func (l *Ledger) Reserved(n NodeID) DeviceSet {
	if len(l.reserved) == 0 {
		return 0
	}
	return l.reserved[n]
}

// Free is the number of free devices on a node.
func (l *Ledger) Free(n NodeID) int { return l.free[n].Count() }

// FreeDevices is the set of free devices on a node.
func (l *Ledger) FreeDevices(n NodeID) DeviceSet { return l.free[n] }

// Total is the number of free devices in the cluster.
func (l *Ledger) Total() int { return l.total }

// Occupy takes exactly these devices. It reports false, and takes nothing, if one of them is not free or does not exist.
func (l *Ledger) Occupy(seats []Seat) bool {
	for i, s := range seats {
		if s.Node < 0 || int(s.Node) >= len(l.free) || l.lacks(s) {
			l.Release(seats[:i])
			return false
		}
		l.total -= (l.free[s.Node] & s.Devices).Count()
		l.free[s.Node] &^= s.Devices
		if len(l.reserved) > 0 {
			l.kept[s.Node] &^= s.Devices
		}
	}
	return true
}

// lacks reports whether one of the devices of a seat is taken.
func (l *Ledger) lacks(s Seat) bool {
	rest := s.Devices &^ l.free[s.Node]
	return rest != 0 && (len(l.reserved) == 0 || rest&^l.kept[s.Node] != 0)
}

// Release gives devices back.
func (l *Ledger) Release(seats []Seat) {
	for _, s := range seats {
		if len(l.reserved) > 0 {
			l.kept[s.Node] |= s.Devices & l.reserved[s.Node]
			s.Devices &^= l.reserved[s.Node]
		}
		l.total += (s.Devices &^ l.free[s.Node]).Count()
		l.free[s.Node] |= s.Devices
	}
}

// Take seats up to n replicas on the lowest free devices of a node.
func (l *Ledger) Take(node NodeID, n int) Seat {
	taken := l.free[node].Lowest(n)
	l.free[node] &^= taken
	l.total -= taken.Count()
	return Seat{Node: node, Devices: taken}
}

func name(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("unknown(%d)", i)
	}
	return names[i]
}
