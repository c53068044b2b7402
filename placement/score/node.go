package score

import (
	"math/bits"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
)

// Whole is a device nobody has a part of, in thousandths.
const Whole = 1000

// TypeSet is accelerator types by bit of their AcceleratorID, below MaxTypes; empty for any.
type TypeSet uint64

// MaxTypes bounds the accelerator types of a cluster.
const MaxTypes = 64

// Allows reports whether the set holds a type, or is empty.
func (s TypeSet) Allows(t core.AcceleratorID) bool { return s == 0 || s>>uint(t)&1 == 1 }

// Task is what is placed: all of it on one node. Tasks that are equal share their cached scores.
type Task struct {
	CPU    int64 // thousandths of a CPU core
	Memory int64 // any unit, that of the nodes
	// Devices is how many devices the task takes a part of.
	Devices int32
	Milli   int32 // thousandths of each device; 0 for a task without devices, Whole for several
	// Types are the accelerator types that it can run on.
	Types TypeSet
	Slice Slice // of each device, where those of the nodes are divided so; Milli is then that of the profile
	// DeviceMemory is the memory that it needs of each device, in the unit of the nodes. Where what tasks take of it is not added up, it is what the
	// device is to have, so that the part of the task has enough.
	DeviceMemory int64
}

// Slice is a MIG profile plus 1; 0 for none. It is as wide as the other fields, so that a task is hashed as one block.
type Slice uint64

// SliceOf is the slice of a profile, and what it has of a device in thousandths: of its memory, by which fragments are counted.
func SliceOf(p mig.Profile) (s Slice, milli int32) {
	return Slice(p) + 1, int32(mig.Of(p).Memory) * sliceMilli
}

// sliceMilli is a memory slice, in thousandths of a device.
const sliceMilli = Whole / mig.Slices

// profile is the one of a slice that is not none.
func (s Slice) profile() mig.Profile { return mig.Profile(s - 1) }

// needsDevices reports whether the task takes any device time.
func (t *Task) needsDevices() bool { return t.Devices > 0 && t.Milli > 0 }

// shares reports whether the task takes a part of one device.
func (t *Task) shares() bool { return t.Devices == 1 && t.Milli > 0 && t.Milli < Whole }

// milli is what the task takes of all its devices.
func (t *Task) milli() int64 { return int64(t.Devices) * int64(t.Milli) }

// Node is what is left of a node.
type Node struct {
	CPU int64 // thousandths of a CPU core
	// Memory is what is left of the memory, in the unit of the tasks.
	Memory int64
	Left   []int32 // thousandths of each device; at most core.MaxDevicesPerNode of them
	// Accelerator is the type of its devices.
	Accelerator core.AcceleratorID
	// Slices is the slices of each device that are taken, where they are divided so; nil otherwise. Left follows from them.
	Slices []mig.Layout
	// DeviceMemory is the memory that is left of each device, any unit; nil where it does not matter. FixedMemory says that tasks take nothing of it.
	DeviceMemory []int64
	// FixedMemory says that tasks take nothing of the memory of devices.
	FixedMemory bool

	closed  bool
	total   int32   // sum of Left
	most    int32   // largest of Left
	idle    int32   // how many are Whole
	running []int32 // tasks by kind
	kinds   int32   // how many of running are not 0
	digest  digest  // of Left, in any order
}

// kind is the affinity class of a task: 0 for parts of a device, otherwise the number of devices; -1 for a task without.
func kind(t *Task) int {
	switch {
	case !t.needsDevices():
		return -1
	case t.shares():
		return 0
	}
	return int(t.Devices)
}

// HasDevice reports whether some device has so much left.
func (n *Node) HasDevice(milli int32) bool { return n.most >= milli }

// measure sums up the devices anew.
func (n *Node) measure() {
	n.total, n.most, n.idle = 0, 0, 0
	for _, left := range n.Left {
		n.total += left
		n.most = max(n.most, left)
		if left == Whole {
			n.idle++
		}
	}
}

// Fits reports whether a task can run on what is left of the node.
func (n *Node) Fits(t *Task) bool {
	if n.closed || t.CPU > n.CPU || t.Memory > n.Memory || !t.Types.Allows(n.Accelerator) {
		return false
	}
	return n.holds(t)
}

// countsMemory reports whether the memory of its devices matters to the task.
func (n *Node) countsMemory(t *Task) bool { return n.DeviceMemory != nil && t.DeviceMemory > 0 }

// holds reports whether enough devices have enough left.
func (n *Node) holds(t *Task) bool {
	switch {
	case !t.needsDevices():
		return true
	case t.Slice != 0, n.countsMemory(t):
		_, missing := n.devices().first(t)
		return missing == 0
	case t.Devices == 1:
		return n.most >= t.Milli
	case t.Milli == Whole:
		return n.idle >= t.Devices
	}
	fit := int32(0)
	for _, left := range n.Left {
		if left >= t.Milli {
			fit++
		}
	}
	return fit >= t.Devices
}

// change takes a task (by = 1) or gives it back (by = -1); false, and nothing is changed, where that cannot be. Starts is where its slices begin, device by
// device; nil for where they are placed, of one that is taken.
func (n *Node) change(t *Task, devices core.DeviceSet, by int32, starts []uint8) bool {
	k := kind(t)
	switch {
	case k < 0 && devices != 0, k >= 0 && devices.Count() != int(t.Devices), devices&^core.FirstDevices(len(n.Left)) != 0:
		return false
	case by > 0 && (t.CPU > n.CPU || t.Memory > n.Memory), by < 0 && k >= 0 && n.running[k] == 0:
		return false
	case k >= 0 && (t.Slice != 0) != (n.Slices != nil), k >= 0 && by > 0 && !n.remembers(t, devices):
		return false
	case k < 0:
	case t.Slice != 0:
		if by < 0 && len(starts) != devices.Count() || !n.changeSlices(t.Slice.profile(), devices, by, starts) {
			return false
		}
	default:
		for rest := devices; rest != 0; rest &= rest - 1 {
			if left := n.Left[bits.TrailingZeros64(uint64(rest))] - by*t.Milli; left < 0 || left > Whole {
				return false
			}
		}
		n.digest = take(n.Left, n.digest, devices, by*t.Milli)
	}
	n.CPU -= int64(by) * t.CPU
	n.Memory -= int64(by) * t.Memory
	if k < 0 {
		return true
	}
	for rest := devices; rest != 0 && !n.FixedMemory && n.countsMemory(t); rest &= rest - 1 {
		n.DeviceMemory[rest.First()] -= int64(by) * t.DeviceMemory
	}
	n.measure()
	if n.running[k] == 0 {
		n.kinds++
	}
	if n.running[k] += by; n.running[k] == 0 {
		n.kinds--
	}
	return true
}

// remembers reports whether devices have the memory that a task needs.
func (n *Node) remembers(t *Task, devices core.DeviceSet) bool {
	for rest := devices; rest != 0 && n.countsMemory(t); rest &= rest - 1 {
		if n.DeviceMemory[rest.First()] < t.DeviceMemory {
			return false
		}
	}
	return true
}

// changeSlices takes or gives back a slice of each device; false, and nothing is changed, where that cannot be.
func (n *Node) changeSlices(p mig.Profile, devices core.DeviceSet, by int32, starts []uint8) bool {
	at := func(k, device int) (start int, possible bool) {
		on := n.Slices[device]
		switch {
		case starts == nil:
			return on.Place(p)
		case by > 0:
			return int(starts[k]), on.Fits(p, int(starts[k]))
		}
		start = int(starts[k])
		return start, mig.Layout(0).Fits(p, start) && on&mig.At(p, start) == mig.At(p, start)
	}
	if starts != nil && len(starts) != devices.Count() {
		return false
	}
	for rest, k := devices, 0; rest != 0; rest, k = rest&(rest-1), k+1 {
		if _, possible := at(k, rest.First()); !possible {
			return false
		}
	}
	for rest, k := devices, 0; rest != 0; rest, k = rest&(rest-1), k+1 {
		device := rest.First()
		start, _ := at(k, device)
		n.digest.sub(sliceDigests[n.Slices[device]])
		n.Slices[device] ^= mig.At(p, start)
		n.digest.add(sliceDigests[n.Slices[device]])
		n.Left[device] = leftOf(n.Slices[device])
	}
	return true
}

// tightest is the devices with the least left that is enough, ties to the lowest.
func (n *Node) tightest(t *Task) core.DeviceSet {
	var chosen core.DeviceSet
	if !t.needsDevices() {
		return 0
	}
	all := n.devices()
	for range t.Devices {
		best, least := -1, int32(Whole+1)
		for i, left := range n.Left {
			if left < least && all.enough(i, t) && chosen>>uint(i)&1 == 0 {
				best, least = i, left
			}
		}
		if best < 0 {
			return 0
		}
		chosen |= 1 << uint(best)
	}
	return chosen
}

// first is the lowest devices with enough left.
func (n *Node) first(t *Task) core.DeviceSet {
	devices, _ := n.devices().first(t)
	return devices
}

// devices is what is left of those of the node.
func (n *Node) devices() devices { return devices{n.Left, n.Slices, n.DeviceMemory} }

// devices is what is left of some devices, and which slices of them are taken, where they are divided so.
type devices struct {
	left   []int32
	slices []mig.Layout
	memory []int64 // nil where it does not matter
}

// leftOf is what is left of a device with slices taken, in thousandths.
func leftOf(l mig.Layout) int32 { return int32(l.Free()) * sliceMilli }

// copy makes them those of others, for tasks to which their memory does not matter.
func (d *devices) copy(of devices) {
	d.left, d.slices, d.memory = append(d.left[:0], of.left...), append(d.slices[:0], of.slices...), nil
}

// enough reports whether a device has enough left for a task.
func (d *devices) enough(i int, t *Task) bool {
	if t.DeviceMemory > 0 && d.memory != nil && d.memory[i] < t.DeviceMemory {
		return false
	}
	if t.Slice == 0 {
		return d.left[i] >= t.Milli
	}
	return i < len(d.slices) && d.slices[i].Starts(t.Slice.profile()) > 0
}

// again reports whether a device is as one before it.
func (d *devices) again(i int) bool {
	if d.memory != nil {
		return false
	}
	if i < len(d.slices) {
		return slices.Contains(d.slices[:i], d.slices[i])
	}
	return slices.Contains(d.left[:i], d.left[i])
}

// first is the lowest devices with enough left, and how many are missing.
func (d devices) first(t *Task) (set core.DeviceSet, missing int32) {
	if !t.needsDevices() {
		return 0, 0
	}
	missing = t.Devices
	for i := range d.left {
		if missing > 0 && d.enough(i, t) {
			set |= 1 << uint(i)
			missing--
		}
	}
	return set, missing
}

// take gives some devices to a task for which they have enough left, and returns the digest of what is left.
func (d *devices) take(sum digest, set core.DeviceSet, t *Task) digest {
	if t.Slice == 0 {
		return take(d.left, sum, set, t.Milli)
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		i := rest.First()
		start, _ := d.slices[i].Place(t.Slice.profile())
		sum.sub(sliceDigests[d.slices[i]])
		d.slices[i] |= mig.At(t.Slice.profile(), start)
		sum.add(sliceDigests[d.slices[i]])
		d.left[i] = leftOf(d.slices[i])
	}
	return sum
}

// take takes so much of some devices, and returns the digest of what is left.
func take(left []int32, sum digest, devices core.DeviceSet, milli int32) digest {
	for rest := devices; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(uint64(rest))
		sum.sub(leftDigests[left[i]])
		left[i] -= milli
		sum.add(leftDigests[left[i]])
	}
	return sum
}
