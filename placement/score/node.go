package score

import (
	"math/bits"

	"github.com/quartet-sched/quartet/core"
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
	CPU     int64 // thousandths
	Memory  int64 // any unit, that of the nodes
	Devices int32
	Milli   int32 // thousandths of each device; 0 for a task without devices, Whole for several
	Types   TypeSet
}

// needsDevices reports whether the task takes any device time.
func (t *Task) needsDevices() bool { return t.Devices > 0 && t.Milli > 0 }

// shares reports whether the task takes a part of one device.
func (t *Task) shares() bool { return t.Devices == 1 && t.Milli > 0 && t.Milli < Whole }

// milli is what the task takes of all its devices.
func (t *Task) milli() int64 { return int64(t.Devices) * int64(t.Milli) }

// Node is what is left of a node.
type Node struct {
	CPU         int64 // thousandths
	Memory      int64
	Left        []int32 // thousandths of each device; at most core.MaxDevicesPerNode of them
	Accelerator core.AcceleratorID

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

// holds reports whether enough devices have enough left.
func (n *Node) holds(t *Task) bool {
	switch {
	case !t.needsDevices():
		return true
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

// change takes a task (by = 1) or gives it back (by = -1); false, and nothing is changed, where that cannot be.
func (n *Node) change(t *Task, devices core.DeviceSet, by int32) bool {
	k := kind(t)
	switch {
	case k < 0 && devices != 0, k >= 0 && devices.Count() != int(t.Devices), devices&^core.FirstDevices(len(n.Left)) != 0:
		return false
	case by > 0 && (t.CPU > n.CPU || t.Memory > n.Memory), by < 0 && k >= 0 && n.running[k] == 0:
		return false
	}
	for rest := devices; rest != 0; rest &= rest - 1 {
		if left := n.Left[bits.TrailingZeros64(uint64(rest))] - by*t.Milli; left < 0 || left > Whole {
			return false
		}
	}
	n.CPU -= int64(by) * t.CPU
	n.Memory -= int64(by) * t.Memory
	if k < 0 {
		return true
	}
	n.digest = take(n.Left, n.digest, devices, by*t.Milli)
	n.measure()
	if n.running[k] == 0 {
		n.kinds++
	}
	if n.running[k] += by; n.running[k] == 0 {
		n.kinds--
	}
	return true
}

// tightest is the devices with the least left that is enough, ties to the lowest.
func (n *Node) tightest(t *Task) core.DeviceSet {
	var chosen core.DeviceSet
	if !t.needsDevices() {
		return 0
	}
	for range t.Devices {
		best, least := -1, int32(Whole+1)
		for i, left := range n.Left {
			if left >= t.Milli && left < least && chosen>>uint(i)&1 == 0 {
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
	devices, _ := firstWith(n.Left, t)
	return devices
}

// firstWith is the lowest devices with enough left, and how many are missing.
func firstWith(left []int32, t *Task) (devices core.DeviceSet, missing int32) {
	if !t.needsDevices() {
		return 0, 0
	}
	missing = t.Devices
	for i, l := range left {
		if missing > 0 && l >= t.Milli {
			devices |= 1 << uint(i)
			missing--
		}
	}
	return devices, missing
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
