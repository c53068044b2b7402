package interference

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Filling is in how many iterations of an owner, which goes on as if it were alone, another job makes one of its own in the time in which the owner leaves
// the resource alone that it needs. It is at least 1, and +Inf where the owner leaves none of it.
//
// The job loads, computes and exchanges, one after the other, from when the owner begins to load. Computing is to be over before the owner's next iteration
// begins; only the exchange may reach into the owner's loading, which the job's own next iteration would have to wait for anyway. A stage
// that fills its last of several gaps to the end is over when the owner has used the resource once more. The job has no more
// of a resource in that many iterations than the owner leaves of it. O(1).
//
// Source: Muri's imitation of AntMan counts the iterations "needed to give enough gaps in each stage". How they are counted follows from the answers by job: see
// docs/results/sharing.md.
func Filling(owner, job core.Iteration) float64 {
	busy := [...]float64{owner.Load, owner.Compute, owner.Sync}
	needs := [...]float64{job.Load, job.Compute, job.Sync}
	span := busy[0] + busy[1] + busy[2]
	if span == 0 {
		return 1
	}
	const rounding = 1e-9
	now, computed, begins, least := 0.0, 0.0, 0.0, 1.0 // in iterations of the owner
	for i := range needs {
		uses, need := busy[i]/span, needs[i]/span
		gap := 1 - uses
		if need > 0 {
			if gap <= rounding {
				return math.Inf(1)
			}
			least = max(least, math.Ceil(need/gap-rounding)) // of no resource it has more than the owner leaves
			since := math.Mod(now-begins+1, 1)               // since the owner last began to use the resource
			if since < uses {
				now, since = now+uses-since, uses
			}
			if left := 1 - since; need > left+rounding {
				need -= left
				more := math.Ceil(need/gap+rounding) - 1 // gaps that it fills; the last to its end, too, and then it is over behind the owner
				now += left + more + uses + need - more*gap
			} else {
				now += need
			}
		}
		if i == 1 {
			computed = now
		}
		begins += uses
	}
	return max(least, math.Ceil(computed-rounding), math.Ceil(now-busy[0]/span-rounding))
}
