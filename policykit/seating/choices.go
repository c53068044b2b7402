// Package seating is what placers share: a walk over grants that seats them on free devices, and choices of nodes.
package seating

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Consolidated takes n devices of a type on as few nodes as it can: the tightest that holds them, or the emptiest first.
func Consolidated(s *Seater, v *core.View, _ *core.Job, t core.AcceleratorID, n int) bool {
	for n > 0 {
		n -= s.Take(s.tightest(v, t, n), n)
	}
	return true
}

// tightest is the node of a type with the fewest free devices that still hold n, or, when none does, the one with the
// most free devices.
func (s *Seater) tightest(v *core.View, t core.AcceleratorID, n int) core.NodeID {
	best, bestFree, bestIdle := core.NodeID(-1), 0, false
	for i := range v.Cluster.Nodes {
		free := s.Ledger.Free(core.NodeID(i))
		if free == 0 {
			continue
		}
		node := &v.Cluster.Nodes[i]
		if node.Accelerator != t {
			continue
		}
		idle := free == node.Devices
		better := false
		switch {
		case free >= n:
			better = bestFree < n || free < bestFree
		case bestFree < n:
			better = free > bestFree || free == bestFree && idle && !bestIdle
		}
		if better {
			if best, bestFree, bestIdle = core.NodeID(i), free, idle; free == n {
				break // no later one is better
			}
		}
	}
	return best
}

// BlameDeviceMemory says of a job for which there are devices that each must have so many gigabytes, and how many enough of them have at most.
func BlameDeviceMemory(verdict *core.Verdict, wanted, available float64) {
	verdict.Reason, verdict.Message = core.Fragmented, "there are devices for it, and device memory is short"
	verdict.Wanted, verdict.Available, verdict.Unit = wanted, available, "GB"
}

// Least is the Least amount of the n that have most; it sorts the list.
func Least[T cmp.Ordered](amounts []T, n int) T {
	slices.Sort(amounts)
	return amounts[len(amounts)-n]
}
