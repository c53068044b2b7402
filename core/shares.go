package core

import "math"

// Shares keeps what is left of every node while jobs are seated that share devices, or have CPUs and memory of their own: what Ledger is to
// whole devices. The zero value is empty; Reset leaves everything free. It allocates only when the cluster grows.
//
// Amounts are whole numbers, so that what is given back is what was taken: thousandths of a CPU, and of a gigabyte. What a job asks for is
// rounded up, and what a node has down.
type Shares struct {
	cluster *Cluster
	nodes   []nodeLeft
	devices []deviceLeft
}

// nodeLeft is what is left of a node. One of which it is not known what it has is never short of it.
type nodeLeft struct {
	first        int // of its devices
	usable       DeviceSet
	cpus, memory int64
}

// deviceLeft is what is left of the compute of a device, and how many jobs have some of it.
type deviceLeft struct {
	milli  int32
	owners int32
	memory int64
}

// unknown is more than anybody takes.
const unknown = math.MaxInt64 / 4

// Reset leaves everything free that is usable.
func (l *Shares) Reset(c *Cluster) {
	l.cluster, l.nodes, l.devices = c, l.nodes[:0], l.devices[:0]
	for i := range c.Nodes {
		n := &c.Nodes[i]
		l.nodes = append(l.nodes, nodeLeft{first: len(l.devices), usable: n.Usable(), cpus: has(n.CPUs), memory: has(n.MemoryGB)})
		for range n.Devices {
			l.devices = append(l.devices, deviceLeft{milli: WholeDevice, memory: has(n.DeviceMemoryGB)})
		}
	}
}

// has is how much there is of something, in thousandths.
func has(amount float64) int64 {
	if amount == 0 {
		return unknown
	}
	return int64(math.Floor(min(amount*1000*(1+1e-12), unknown)))
}

// asks is how much somebody asks for, in thousandths.
func asks(amount float64) int64 { return int64(math.Ceil(amount * 1000 * (1 - 1e-12))) }

// Milli is the compute that is left of a device, in thousandths.
func (l *Shares) Milli(n NodeID, device int) int {
	return int(l.devices[l.nodes[n].first+device].milli)
}

// Owners is how many jobs have some of a device.
func (l *Shares) Owners(n NodeID, device int) int {
	return int(l.devices[l.nodes[n].first+device].owners)
}

// DeviceMemoryLeft is the memory in gigabytes that is left of a device; +Inf where nobody knows what it has.
func (l *Shares) DeviceMemoryLeft(n NodeID, device int) float64 {
	return amountLeft(l.devices[l.nodes[n].first+device].memory)
}

// Usable is the devices of a node that may be placed on, taken or not.
func (l *Shares) Usable(n NodeID) DeviceSet { return l.nodes[n].usable }

// Left is the CPUs and the memory in gigabytes that are left of a node; +Inf where nobody knows what it has.
func (l *Shares) Left(n NodeID) (cpus, memoryGB float64) {
	return amountLeft(l.nodes[n].cpus), amountLeft(l.nodes[n].memory)
}

func amountLeft(thousandths int64) float64 {
	if thousandths > unknown/2 {
		return math.Inf(1)
	}
	return float64(thousandths) / 1000
}

// FitsOn reports whether a replica of a job can have its part of a device.
func (l *Shares) FitsOn(j *JobSpec, n NodeID, device int) bool {
	d := &l.devices[l.nodes[n].first+device]
	switch milli := j.milli(); {
	case l.nodes[n].usable&(1<<device) == 0:
		return false
	case milli == 0:
		return true
	case l.cluster.Sharing != Exclusive && asks(j.DeviceMemoryGB) > d.memory:
		return false
	case l.cluster.Sharing == TimeSlice:
		return int(d.owners) < l.cluster.MaxOwners
	case l.cluster.Sharing == Exclusive || j.Share == nil:
		return d.owners == 0
	default:
		return milli <= d.milli
	}
}

// FitsAt reports whether a node has the CPUs and the memory of so many replicas of a job.
func (l *Shares) FitsAt(j *JobSpec, n NodeID, replicas int) bool {
	at := &l.nodes[n]
	return !l.cluster.CountsResources || asks(j.CPUs)*int64(replicas) <= at.cpus && asks(j.MemoryGB)*int64(replicas) <= at.memory
}

// FitTogether reports whether jobs that take turns can have a device of a type together: no more of them than may be on one, with the memory that
// they need of it. Of devices of a type the least memory counts. O(nodes) where memory is counted.
func (c *Cluster) FitTogether(t AcceleratorID, jobs ...*JobSpec) bool {
	if len(jobs) > 1 && (c.Sharing != TimeSlice || len(jobs) > c.MaxOwners) {
		return false
	}
	needed, most := int64(0), int64(0)
	for _, j := range jobs {
		needed += asks(j.DeviceMemoryGB)
		most = max(most, asks(j.DeviceMemoryGB))
	}
	if c.OversubscribesMemory {
		needed = most
	}
	if c.Sharing == Exclusive || needed == 0 {
		return true
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Accelerator == t && n.Health != Gone && has(n.DeviceMemoryGB) < needed {
			return false
		}
	}
	return true
}

// milli is the compute that a replica takes of its device.
func (s *JobSpec) milli() int32 {
	if s.Share == nil {
		return WholeDevice
	}
	return int32(s.Share.Milli)
}

// Occupy takes the seats of a job. It reports false, and takes nothing, if something of them does not exist or is not left.
func (l *Shares) Occupy(j *JobSpec, seats []Seat) bool {
	for i, s := range seats {
		if !l.fits(j, s) {
			l.Release(j, seats[:i])
			return false
		}
		l.add(j, s, 1)
	}
	return true
}

func (l *Shares) fits(j *JobSpec, s Seat) bool {
	if s.Node < 0 || int(s.Node) >= len(l.nodes) || s.Devices&^l.nodes[s.Node].usable != 0 || !l.FitsAt(j, s.Node, s.Devices.Count()) {
		return false
	}
	for rest := s.Devices; rest != 0; rest &= rest - 1 {
		if !l.FitsOn(j, s.Node, rest.First()) {
			return false
		}
	}
	return true
}

// Release gives the seats of a job back.
func (l *Shares) Release(j *JobSpec, seats []Seat) {
	for _, s := range seats {
		l.add(j, s, -1)
	}
}

func (l *Shares) add(j *JobSpec, s Seat, owners int32) {
	milli := j.milli()
	at := &l.nodes[s.Node]
	for rest := s.Devices; milli > 0 && rest != 0; rest &= rest - 1 {
		d := &l.devices[at.first+rest.First()]
		d.owners += owners
		if l.cluster.Sharing != TimeSlice {
			d.milli -= owners * milli
		}
		if !l.cluster.OversubscribesMemory {
			d.memory -= int64(owners) * asks(j.DeviceMemoryGB)
		}
	}
	if l.cluster.CountsResources {
		replicas := int64(owners) * int64(s.Devices.Count())
		at.cpus -= asks(j.CPUs) * replicas
		at.memory -= asks(j.MemoryGB) * replicas
	}
}
