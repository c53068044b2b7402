package score

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// FGD places a task where it makes the fewest new fragments: fragmentation gradient descent.
//
// The score is the gradient, fragments before less those after, in devices, on a logistic scale in hundredths, rounded down. A task that takes
// a part of a device takes that with the best score, the lowest of such; others the lowest idle ones.
//
// Where devices are divided into slices, a task needs a place for one, fragments are the memory slices from which no place of its profile is left, and
// it takes the device that is best with the slice where mig.Layout.Place puts it.
//
// Source: Weng et al., Beware of Fragmentation (ATC'23), section 4. No deviation known but for the slices, which it does not cover. O(devices) for each score that is not remembered.
type FGD struct {
	typical *Typical
	memo    memo
	after   devices
}

// NewFGD scores by the fragments of typical tasks.
func NewFGD(y *Typical) *FGD { return &FGD{typical: y, memo: newMemo()} }

// Score is 0 to 100.
func (f *FGD) Score(n *Node, t *Task) int32 {
	y := f.typical
	return f.memo.score(n, t, uint64(level(y.cpus, n.CPU)), uint64(level(y.cpus, n.CPU-t.CPU)), f.best)
}

// Devices is those of the score.
func (f *FGD) Devices(n *Node, t *Task) core.DeviceSet { return devicesOf(n, t, f.best) }

// best is the score of a node, and the device that gives it to a task that takes a part of one.
func (f *FGD) best(n *Node, t *Task) (score int32, device int) {
	y := f.typical
	before, after := y.Fragments(n), level(y.cpus, n.CPU-t.CPU)
	rate := func(devices core.DeviceSet) int32 {
		f.after.copy(n.devices())
		return logistic(before - y.fragments(f.after, f.after.take(n.digest, devices, t), after, n.Accelerator))
	}
	if !t.shares() {
		return rate(n.first(t)), -1
	}
	score, device = -1, -1
	all := n.devices()
	for i := range n.Left {
		if !all.enough(i, t) || all.again(i) {
			continue
		}
		if s := rate(1 << uint(i)); s > score {
			score, device = s, i
		}
	}
	return score, device
}

// logistic is a gradient in thousandths of a device on a scale from 0 to 100.
func logistic(gradient float64) int32 {
	return int32(math.Floor(100 * (1 / (1 + math.Exp(-gradient/1000)))))
}
