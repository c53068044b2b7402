package goodput

import "github.com/quartet-sched/quartet/core"

// SplitBatch divides a total batch over replicas: the batch of one device and the accumulation steps, so that
// replicas × perDevice × (accumulation+1) comes as near to total as whole samples allow, from above, unless that
// would exceed b.Max. A job on a single replica with more than its initial batch accumulates at least once, as one
// pass alone cannot estimate the variance of its gradient. Bounds of b that are 0 do not bind; b.MinPerDevice is the
// caller's to check. Without samples or replicas both results are 0.
//
// Source: Pollux, OSDI 2021, the rule that its artifact splits a fixed batch by.
func SplitBatch(total, replicas int, b core.BatchSpec) (perDevice, accumulation int) {
	if total < 1 || replicas < 1 {
		return 0, 0
	}
	share := ceilDiv(total, replicas)
	if b.MaxPerDevice > 0 {
		accumulation = ceilDiv(share, b.MaxPerDevice) - 1
	}
	if replicas == 1 && b.Initial > 0 && total > b.Initial {
		accumulation = max(accumulation, 1)
	}
	perDevice = ceilDiv(share, accumulation+1)
	if b.Max > 0 {
		perDevice = min(perDevice, b.Max/replicas/(accumulation+1))
	}
	return perDevice, accumulation
}

// ceilDiv is a/b rounded up, for positive a and b.
func ceilDiv(a, b int) int { return (a-1)/b + 1 }
