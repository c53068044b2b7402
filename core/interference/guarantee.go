package interference

import (
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/interleave"
)

// Guarantee keeps those who were promised their devices as fast as alone, and leaves the others, which are best effort, what they do not use.
//
// Beside an owner, an opportunistic job makes an iteration in the whole number of the owner's in which its stages fit (interleave.Filling), and is never faster than
// alone. Where the stages of one of them are not told, it has the part of the device that the owner's utilisation leaves, Least at least. Several opportunistic
// jobs divide what is left by weight, and a device without an owner. Several owners, whom no policy here seats so, take turns of equal length.
//
// Source: Xiao et al., AntMan (OSDI 2020), and its imitation in the simulator of Muri (SIGCOMM 2022).
type Guarantee struct {
	Least float64 // part of its rate that is left to a job whose stages or whose owner's are not told
}

// UsualGuarantee leaves a twentieth beside an owner that seems to use all.
func UsualGuarantee() Guarantee { return Guarantee{Least: 0.05} }

// Rate is 1 for the owner of a device. It is 0 for a job for which no owner leaves any time of a resource that it needs.
func (m Guarantee) Rate(self *core.JobSpec, others []*core.JobSpec, _ string) float64 {
	if !self.BestEffort {
		owners := 1
		for _, o := range others {
			if !o.BestEffort {
				owners++
			}
		}
		return 1 / float64(owners)
	}
	weights, left := self.Weight, 1.0
	for _, o := range others {
		if o.BestEffort {
			weights += o.Weight
		} else {
			left = min(left, m.beside(self, o))
		}
	}
	return left * (self.Weight / weights)
}

// beside is what an owner leaves of its rate to a job.
func (m Guarantee) beside(self, owner *core.JobSpec) float64 {
	if self.Iteration.Seconds() == 0 || owner.Iteration.Seconds() == 0 {
		return max(1-utilisation(owner), m.Least)
	}
	period := interleave.Filling(owner.Iteration, self.Iteration) * owner.Iteration.Alone()
	if math.IsInf(period, 1) {
		return 0
	}
	return min(1, self.Iteration.Alone()/period)
}
