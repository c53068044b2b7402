package score

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Fragmentation looks one task ahead, and packs on purpose among nodes that are about as good.
//
// The score is by how much the fragments of the node fall, and half of what they will be after the next typical task if that comes here, to
// the place on the node where it does the least harm; less a little of what the node will have left. It is counted in hundredths of a device:
// what differs by less is the same, and ties go to the lowest node and the tightest device.
//
// Source: this project, on the measure of FGD (ATC'23), where the steps of the logistic scale are the tolerance, and the order of the nodes is
// all that packs. Of what was tried, rounding to a tenth of a device and then taking the fuller node was as good on average, and worse than FGD
// on one workload of seventeen; a weight of 0.01 or a whole next task lose where all tasks share. O(typical tasks × devices²) for each score
// that is not remembered.
type Fragmentation struct {
	typical *Typical
	groups  []group
	cpus    []int64 // typical amounts of CPU and their sums: nothing else of an amount matters; nil for too many
	levels  []curve // those remembered, a power of two
	ahead   []remembered
	memo    memo

	left, next, trial devices

	levelOf []int32   // by typical amount of CPU: the level once a task took it; -1 where it cannot
	least   []float64 // by task of a group: the fragments after it
}

// group is typical tasks that differ in CPU only.
type group struct {
	Task
	parts []float64 // of all tasks
	cpus  []int32   // indices of amounts of CPU, ascending
}

// curve is the fragments of some devices by level of CPU.
type curve struct {
	digest
	fragments []float64
}

const (
	nextTask  = 0.5   // how much the fragments after the next task count
	emptiness = 0.015 // how much what is left of the node counts
	tolerance = 10    // thousandths of a device
	zero      = 1 << 20
	curves    = 1 << 13 // that are remembered, if their points are fewer than
	points    = 1 << 22
	fewCPUs   = 256 // typical amounts of CPU, up to which their sums are listed
)

// NewFragmentation scores by the fragments of typical tasks.
func NewFragmentation(y *Typical) *Fragmentation {
	n := curves
	for n > 1 && n*(len(y.cpus)+1) > points {
		n /= 2
	}
	f := &Fragmentation{
		typical: y, levels: make([]curve, n), ahead: make([]remembered, 1<<memoBits), memo: newMemo(),
		levelOf: make([]int32, len(y.cpus)), least: make([]float64, len(y.cpus)),
	}
	room := make([]float64, len(f.levels)*(len(y.cpus)+1))
	for i := range f.levels {
		f.levels[i].fragments, room = room[:len(y.cpus)+1], room[len(y.cpus)+1:]
	}
	f.group()
	if len(y.cpus) > fewCPUs {
		return f
	}
	f.cpus = slices.Clone(y.cpus)
	for _, a := range y.cpus {
		for _, b := range y.cpus {
			f.cpus = append(f.cpus, a+b)
		}
	}
	slices.Sort(f.cpus)
	f.cpus = slices.Compact(f.cpus)
	return f
}

// group sorts the typical tasks by CPU, and by what else they need, in the order in which that is met first.
func (f *Fragmentation) group() {
	y := f.typical
	for i, cpu := range y.cpus {
		for k := range y.tasks {
			m := &y.tasks[k]
			if m.CPU != cpu {
				continue
			}
			kind := Task{Devices: m.Devices, Milli: m.Milli, Types: m.Types, Slice: m.Slice}
			at := slices.IndexFunc(f.groups, func(g group) bool { return g.Task == kind })
			if at < 0 {
				at, f.groups = len(f.groups), append(f.groups, group{Task: kind})
			}
			g := &f.groups[at]
			if last := len(g.cpus) - 1; last >= 0 && g.cpus[last] == int32(i) { // types written in another way
				g.parts[last] += m.part
				continue
			}
			g.parts, g.cpus = append(g.parts, m.part), append(g.cpus, int32(i))
		}
	}
}

// cpu is what matters of an amount of CPU.
func (f *Fragmentation) cpu(amount int64) uint64 {
	if f.cpus == nil {
		return uint64(amount)
	}
	return uint64(level(f.cpus, amount))
}

// Score is counted in tolerances from a number that no node falls short of.
func (f *Fragmentation) Score(n *Node, t *Task) int32 {
	return f.memo.score(n, t, f.cpu(n.CPU), f.cpu(n.CPU-t.CPU), f.best)
}

// Devices is those of the score.
func (f *Fragmentation) Devices(n *Node, t *Task) core.DeviceSet { return devicesOf(n, t, f.best) }

// best is the score of a node, and the device that gives it to a task that takes a part of one.
func (f *Fragmentation) best(n *Node, t *Task) (score int32, device int) {
	all := n.devices()
	before, cpu := f.outlook(all, n.digest, n.CPU, n.Accelerator), n.CPU-t.CPU
	rate := func(devices core.DeviceSet) int32 {
		f.left.copy(all)
		sum := f.left.take(n.digest, devices, t)
		after := f.outlook(f.left, sum, cpu, n.Accelerator)
		gain := before - after - float64(emptiness*float64(int64(n.total)-t.milli()))
		return zero + int32(math.Floor(gain/tolerance))
	}
	if !t.shares() {
		return rate(n.first(t)), -1
	}
	score, device = -1, -1
	for i, left := range n.Left {
		if !all.enough(i, t) || all.again(i) {
			continue
		}
		if s := rate(1 << uint(i)); s > score || s == score && left < n.Left[device] {
			score, device = s, i
		}
	}
	return score, device
}

// outlook is the fragments of a node, and nextTask times those after the next typical task.
func (f *Fragmentation) outlook(left devices, sum digest, cpu int64, on core.AcceleratorID) float64 {
	key := sum
	key.add(digestOf(aheadState<<56 | f.cpu(cpu)<<16 | uint64(on)))
	known := &f.ahead[key.low>>(64-memoBits)]
	if known.digest == key {
		return known.fragments
	}
	y := f.typical
	for i, amount := range y.cpus {
		if f.levelOf[i] = -1; amount <= cpu {
			f.levelOf[i] = int32(level(y.cpus, cpu-amount))
		}
	}
	f.next.copy(left)
	now := f.curve(&f.next, sum, on)[level(y.cpus, cpu)]
	ahead := 0.0
	for i := range f.groups {
		g := &f.groups[i]
		f.after(g, sum, on)
		for k, of := range g.cpus {
			after := f.least[k]
			if f.levelOf[of] < 0 || math.IsInf(after, 1) { // it does not fit
				after = now
			}
			ahead += float64(g.parts[k] * after)
		}
	}
	*known = remembered{key, now + float64(nextTask*ahead)}
	return known.fragments
}

// after finds the fragments of the node that next tells of once a task of the group took the place where that makes the fewest; infinite where
// no devices have enough left.
func (f *Fragmentation) after(g *group, sum digest, on core.AcceleratorID) {
	least := f.least[:len(g.cpus)]
	for k := range least {
		least[k] = math.Inf(1)
	}
	if f.levelOf[g.cpus[0]] < 0 || !g.Types.Allows(on) {
		return
	}
	try := func(devices core.DeviceSet) {
		f.trial.copy(f.next)
		fragments := f.curve(&f.trial, f.trial.take(sum, devices, &g.Task), on)
		for k, of := range g.cpus {
			if level := f.levelOf[of]; level >= 0 {
				least[k] = min(least[k], fragments[level])
			}
		}
	}
	if !g.shares() {
		if devices, missing := f.next.first(&g.Task); missing == 0 {
			try(devices)
		}
		return
	}
	for i := range f.next.left {
		if f.next.enough(i, &g.Task) && !f.next.again(i) {
			try(1 << uint(i))
		}
	}
}

// curve is the fragments of devices of which sum is the digest.
func (f *Fragmentation) curve(left *devices, sum digest, on core.AcceleratorID) []float64 {
	key := sum
	key.add(digestOf(curveState<<56 | uint64(on)))
	known := &f.levels[key.low&uint64(len(f.levels)-1)]
	if known.digest == key {
		return known.fragments
	}
	known.digest = key
	total := int32(0)
	for _, l := range left.left {
		total += l
	}
	for i := range known.fragments {
		known.fragments[i] = 0
	}
	for i := range f.groups {
		g := &f.groups[i]
		used := g.use(left, on)
		for k, of := range g.cpus {
			known.fragments[of+1] += float64(g.parts[k] * float64(used))
		}
	}
	used := 0.0
	for i, more := range known.fragments {
		used += more
		known.fragments[i] = float64(total) - used
	}
	return known.fragments
}

// use is how much of devices a task of the group can use.
func (g *group) use(of *devices, on core.AcceleratorID) int32 {
	if !g.needsDevices() || !g.Types.Allows(on) {
		return 0
	}
	fit, sum := int32(0), int32(0)
	for i, l := range of.left {
		if of.enough(i, &g.Task) {
			fit++
			if sum += l; g.Slice != 0 {
				sum -= int32(of.slices[i].Fragment(g.Slice.profile())) * sliceMilli
			}
		}
	}
	if fit < g.Devices {
		return 0
	}
	return sum
}
