package score

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// The node that BestFit and DotProduct measure by: the largest of openb, in thousandths.
const (
	largestCPU     = 128_000
	largestDevices = 8 * Whole
)

// BestFit takes the node with the least left after the task, CPUs and devices counting the same.
//
// Source: baseline of FGD (ATC'23). Deviation: there the scores of the nodes on which a task fits are stretched to 0..100, which changes no
// choice while they differ by at most 100, as on nodes of up to 128 CPUs and 8 devices. O(1) for each score; the tightest devices.
type BestFit struct{ tightest }

// tightest chooses the devices with the least left.
type tightest struct{}

// Devices is those with the least left that is enough, ties to the lowest.
func (tightest) Devices(n *Node, t *Task) core.DeviceSet { return n.tightest(t) }

// Score is 0 to 100 on nodes of up to 128 CPUs and 8 devices; larger ones do not differ below that.
func (BestFit) Score(n *Node, t *Task) int32 {
	cpu := float64(n.CPU-t.CPU) / largestCPU
	devices := float64(int64(n.total)-t.milli()) / largestDevices
	return hundredths(1 - float64(0.5*cpu) - float64(0.5*devices))
}

// hundredths of a score, rounded down.
func hundredths(score float64) int32 { return int32(max(0, math.Floor(100*score))) }
