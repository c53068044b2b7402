package score

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
)

// Typical is the tasks that are expected, by which fragments are counted: what is of no use to a typical task.
//
// Source: Weng et al., Beware of Fragmentation (ATC'23), section 3: the distinct tasks of a trace, the most frequent first, up to 95 % of it.
// Memory, that of devices too, does not distinguish tasks. O(tasks log tasks) to make; Fragments is O(typical tasks + amounts × devices), and O(1) for a state that
// was asked for of late.
type Typical struct {
	tasks   []typicalTask
	amounts []int32 // distinct thousandths of a device, ascending
	cpus    []int64 // distinct, ascending
	memo    []remembered
	below   []int32 // by amount: what pieces smaller than that have in sum
	fit     []int32 // by amount: devices with that much left or more
	sliced  bool    // tasks have slices
}

type typicalTask struct {
	Task
	part   float64 // of all tasks
	amount int     // index in amounts; of slices their profile
}

type remembered struct {
	digest
	fragments float64
}

// memoBits is the size of the memory for states, 24 bytes each: 2^memoBits of them.
const memoBits = 15

// coverage is the part of the tasks that the typical ones cover.
const coverage = 0.95

// Division is how the part of a typical task is computed. Only the last bit differs, and with it who wins among nodes that are the same.
type Division uint8

// The divisions: OfAll is by that of the published curves, whose parts of all tasks are divided by the part that is covered. OfCovered divides
// counts; placements listed task by task were made with it.
const (
	OfAll Division = iota
	OfCovered
)

// NewTypical counts tasks. Written is how each of them names its types, which distinguishes and orders them; nil to go by the sets.
func NewTypical(tasks []Task, written []string, division Division) *Typical {
	distinct := count(tasks, written)
	covered, kept := 0, 0
	for kept < len(distinct) && float64(covered) < coverage*float64(len(tasks)) {
		covered += distinct[kept].n
		kept++
	}
	all := 1.0
	if division == OfAll {
		all = float64(len(tasks))
	}
	y := &Typical{memo: make([]remembered, 1<<memoBits)}
	for _, c := range distinct[:kept] {
		y.tasks = append(y.tasks, typicalTask{Task: c.Task, part: float64(c.n) / all / (float64(covered) / all)})
		y.cpus = append(y.cpus, c.CPU)
		y.sliced = y.sliced || c.Slice != 0
		if c.needsDevices() {
			y.amounts = append(y.amounts, c.Milli)
		}
	}
	slices.Sort(y.cpus)
	y.cpus = slices.Compact(y.cpus)
	slices.Sort(y.amounts)
	y.amounts = slices.Compact(y.amounts)
	for i := range y.tasks {
		y.tasks[i].amount, _ = slices.BinarySearch(y.amounts, y.tasks[i].Milli)
	}
	if y.sliced {
		y.amounts = make([]int32, len(mig.Profiles()))
		for i := range y.tasks {
			if y.tasks[i].amount = int(mig.SevenG); y.tasks[i].Slice != 0 {
				y.tasks[i].amount = int(y.tasks[i].Slice.profile())
			}
		}
	}
	y.below, y.fit = make([]int32, len(y.amounts)), make([]int32, len(y.amounts))
	return y
}

// counted is a distinct task without its memory.
type counted struct {
	Task
	written string
	n       int
}

// count lists the distinct tasks in the order of the source: by number, CPU, part of a device, devices and types, each the largest first.
func count(tasks []Task, written []string) []counted {
	var distinct []counted
	index := map[counted]int{}
	for i := range tasks {
		c := counted{Task: tasks[i]}
		c.Memory, c.DeviceMemory = 0, 0
		if written != nil {
			c.written = written[i]
		}
		at, known := index[c]
		if !known {
			at, distinct = len(distinct), append(distinct, c)
			index[c] = at
		}
		distinct[at].n++
	}
	slices.SortFunc(distinct, func(a, b counted) int {
		return cmp.Or(
			cmp.Compare(b.n, a.n), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Milli, a.Milli), cmp.Compare(b.Devices, a.Devices),
			cmp.Compare(b.written, a.written), cmp.Compare(b.Types, a.Types), cmp.Compare(b.Slice, a.Slice),
		)
	})
	return distinct
}

// level is how many of some amounts of CPU are at most cpu.
func level(amounts []int64, cpu int64) int {
	low, high := 0, len(amounts)
	for low < high {
		if mid := (low + high) / 2; amounts[mid] <= cpu {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Fragments is the thousandths of a node's devices that a typical task cannot use, on average.
func (y *Typical) Fragments(n *Node) float64 {
	return y.fragments(n.devices(), n.digest, level(y.cpus, n.CPU), n.Accelerator)
}

// fragments is those of devices whose digest is sum, with a level of the typical amounts of CPU: nothing else of that matters.
func (y *Typical) fragments(left devices, sum digest, level int, on core.AcceleratorID) float64 {
	sum.add(digestOf(nodeState<<56 | uint64(level)<<16 | uint64(on)))
	known := &y.memo[sum.low>>(64-memoBits)]
	if known.digest != sum {
		*known = remembered{sum, y.sum(left, level, on)}
	}
	return known.fragments
}

// sum adds up the fragments by their reason, and the sums in a fixed order: that of the source, whose scores tell equal states by the last bit.
func (y *Typical) sum(of devices, level int, on core.AcceleratorID) float64 {
	for i := range y.amounts {
		y.below[i], y.fit[i] = 0, 0
	}
	total := int32(0)
	for k, l := range of.left {
		total += l
		if y.sliced && k < len(of.slices) {
			y.addSlices(of.slices[k])
			continue
		}
		for i, amount := range y.amounts {
			if l < amount {
				y.below[i] += l
			} else {
				y.fit[i]++
			}
		}
	}
	cpu := int64(-1)
	if level > 0 {
		cpu = y.cpus[level-1]
	}
	var lackBoth, lackDevices, lackCPU, noneFits, noneLacks, otherType float64
	for i := range y.tasks {
		m := &y.tasks[i]
		enough := m.CPU <= cpu
		all := float64(m.part * float64(total)) // rounded here: no fused multiply and add
		switch {
		case !m.needsDevices() && enough:
			noneFits += all
		case !m.needsDevices():
			noneLacks += all
		case !m.Types.Allows(on):
			otherType += all
		case y.fit[m.amount] < m.Devices && !enough:
			lackBoth += all
		case y.fit[m.amount] < m.Devices:
			lackDevices += all
		case !enough:
			lackCPU += all
		default:
			lackDevices += float64(m.part * float64(y.below[m.amount]))
		}
	}
	return lackBoth + lackDevices + lackCPU + noneFits + noneLacks + otherType
}

// addSlices adds a device that is divided into slices: those in no place of a profile are of no use to it.
func (y *Typical) addSlices(l mig.Layout) {
	for p := range y.amounts {
		y.below[p] += int32(l.Fragment(mig.Profile(p))) * sliceMilli //nolint:gosec // there are 5
		if l.Starts(mig.Profile(p)) > 0 {                            //nolint:gosec // there are 5
			y.fit[p]++
		}
	}
}
