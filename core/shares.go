package core

import (
	"math"

	"github.com/quartet-sched/quartet/core/mig"
)

// Shares keeps what is left of every node while jobs are seated that share devices, or have CPUs and memory of their own: what Ledger is to
// whole devices. The zero value is empty; Reset leaves everything free. It allocates only when the cluster grows.
//
// Amounts are whole numbers, so that what is given back is what was taken: thousandths of a CPU, and of a gigabyte. What a job asks for is
// rounded up, and what a node has down.
type Shares struct {
	cluster *Cluster
	nodes   []nodeLeft
	devices []deviceLeft
	slices  []slicesOf // of each device; none where devices are not divided so
}

// slicesOf is who has which slices of a device.
type slicesOf struct {
	layout mig.Layout
	owners [mig.Slices]JobID // of a slice plus 1, by where it begins; 0 for nobody
}

// NoSlice stands for the slice of a replica of which it is not known where it begins, or that has none.
const NoSlice = 0xff

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
	l.cluster, l.nodes, l.devices, l.slices = c, l.nodes[:0], l.devices[:0], l.slices[:0]
	for i := range c.Nodes {
		n := &c.Nodes[i]
		l.nodes = append(l.nodes, nodeLeft{first: len(l.devices), usable: n.Usable(), cpus: has(n.CPUs), memory: has(n.MemoryGB)})
		for range n.Devices {
			l.devices = append(l.devices, deviceLeft{milli: WholeDevice, memory: has(n.DeviceMemoryGB)})
			if c.Sharing == Mig {
				l.slices = append(l.slices, slicesOf{})
			}
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

// Milli is what is left of a device, in thousandths: of its compute, and of its memory slices where it is divided into slices.
func (l *Shares) Milli(n NodeID, device int) int {
	if len(l.slices) > 0 {
		return l.Layout(n, device).Free() * WholeDevice / mig.Slices
	}
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

// Layout is the slices of a device that jobs have, where devices are divided so.
func (l *Shares) Layout(n NodeID, device int) mig.Layout {
	return l.slices[l.nodes[n].first+device].layout
}

// SliceOf is where the slice of a job on a device begins; NoSlice where it has none.
func (l *Shares) SliceOf(j *JobSpec, n NodeID, device int) uint8 {
	if d := l.nodes[n].first + device; d < len(l.slices) {
		for start, owner := range l.slices[d].owners {
			if owner == j.ID+1 {
				return uint8(start)
			}
		}
	}
	return NoSlice
}

// Slices is where the slices of a job on its seats begin, device by device; nil where devices are not divided so.
func (l *Shares) Slices(j *JobSpec, seats []Seat) []uint8 {
	if l.cluster.Sharing != Mig {
		return nil
	}
	var starts []uint8
	for _, s := range seats {
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			starts = append(starts, l.SliceOf(j, s.Node, rest.First()))
		}
	}
	return starts
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
	case l.cluster.Sharing == Mig:
		of := &l.slices[l.nodes[n].first+device]
		return of.layout.Starts(j.Slice()) > 0 && asks(j.DeviceMemoryGB) <= l.cluster.memoryFor(j, d.memory) && l.SliceOf(j, n, device) == NoSlice
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

// FitOn is FitTogether for the type of every seat.
func (c *Cluster) FitOn(seats []Seat, jobs ...*JobSpec) bool {
	last := AnyAccelerator
	for _, s := range seats {
		t := c.Nodes[s.Node].Accelerator
		if t != last && !c.FitTogether(t, jobs...) {
			return false
		}
		last = t
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

// Occupy takes the seats of a job. It reports false, and takes nothing, if something of them does not exist or is not left. Slices are those of
// mig.Layout.Place.
func (l *Shares) Occupy(j *JobSpec, seats []Seat) bool { return l.OccupySlices(j, seats, nil) }

// OccupySlices is Occupy for one whose slices begin there, as Slices gives them; nil for wherever there is room.
func (l *Shares) OccupySlices(j *JobSpec, seats []Seat, starts []uint8) bool {
	for i, s := range seats {
		own := starts[:min(s.Devices.Count(), len(starts))]
		if starts = starts[len(own):]; !l.fits(j, s) || !l.take(j, s, own) {
			l.Release(j, seats[:i])
			return false
		}
		l.add(j, s, 1)
	}
	return true
}

// take takes slices of a seat on which there is room. It reports false, and takes nothing, where one cannot begin as asked.
func (l *Shares) take(j *JobSpec, s Seat, starts []uint8) bool {
	if len(l.slices) == 0 || j.milli() == 0 {
		return true
	}
	p := j.Slice()
	for rest, k := s.Devices, 0; rest != 0; rest, k = rest&(rest-1), k+1 {
		of := &l.slices[l.nodes[s.Node].first+rest.First()]
		start, room := of.layout.Place(p)
		if k < len(starts) && starts[k] != NoSlice {
			start = int(starts[k])
			room = of.layout.Fits(p, start)
		}
		if !room {
			l.giveBack(j, Seat{s.Node, s.Devices &^ rest})
			return false
		}
		of.layout |= mig.At(p, start)
		of.owners[start] = j.ID + 1
	}
	return true
}

// giveBack gives the slices of a seat back.
func (l *Shares) giveBack(j *JobSpec, s Seat) {
	for rest := s.Devices; rest != 0; rest &= rest - 1 {
		if start := l.SliceOf(j, s.Node, rest.First()); start != NoSlice {
			of := &l.slices[l.nodes[s.Node].first+rest.First()]
			of.layout &^= mig.At(j.Slice(), int(start))
			of.owners[start] = 0
		}
	}
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
		l.giveBack(j, s)
	}
}

func (l *Shares) add(j *JobSpec, s Seat, owners int32) {
	milli := j.milli()
	at := &l.nodes[s.Node]
	for rest := s.Devices; milli > 0 && rest != 0; rest &= rest - 1 {
		d := &l.devices[at.first+rest.First()]
		d.owners += owners
		if l.cluster.Sharing == Mig {
			continue
		}
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
