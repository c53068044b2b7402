package interference

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Interleave lets jobs interleave their stages: while one loads its data, another one computes. All of them make one iteration in the period of
// their group. Where the stages of one are unknown, or there are more than MaxInterleaved, nothing is interleaved: they take turns of equal length.
type Interleave struct {
	// Model says how long an iteration of a group takes.
	Model PeriodModel
}

// MeasuredInterleave has the periods that were measured on the cluster of Muri (SIGCOMM 2022).
func MeasuredInterleave() Interleave { return Interleave{Model: MeasuredPeriods()} }

// Rate is the iteration of the job alone over the period of all.
func (m Interleave) Rate(self *core.JobSpec, others []*core.JobSpec, _ string) float64 {
	jobs := len(others) + 1
	var group [MaxInterleaved]core.Iteration
	if jobs > len(group) || self.Iteration.Seconds() == 0 {
		return 1 / float64(jobs)
	}
	own, _ := slices.BinarySearchFunc(others, self.ID, func(o *core.JobSpec, id core.JobID) int { return int(o.ID - id) })
	group[own] = self.Iteration
	for i, o := range others {
		if o.Iteration.Seconds() == 0 {
			return 1 / float64(jobs)
		}
		if i >= own {
			i++
		}
		group[i] = o.Iteration
	}
	return self.Iteration.ExclusiveSeconds() / m.Model.Period(group[:jobs])
}
