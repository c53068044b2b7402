package interference

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Guarantee keeps those who were promised their devices as fast as alone, and leaves the others, which are best effort, what they do not use.
//
// Beside an owner, an opportunistic job makes an iteration in the whole number of the owner's in which its stages fit (Filling), and is never faster than
// alone. Where the stages of one of them are unknown, it has the part of the device that the owner's utilisation leaves, Least at least. Several opportunistic
// jobs divide what is left by weight, and a device without an owner. Several owners, whom no policy here seats so, take turns of equal length.
//
// Source: Xiao et al., AntMan (OSDI 2020), and its imitation in the simulator of Muri (SIGCOMM 2022).
//
// Two losses are options of ours, and none by default: what opportunistic jobs cost an owner, and what it costs them to have memory on the host
// where the memory of a device does not suffice for all on it. Owners keep theirs; the others miss the same part of what each needs.
type Guarantee struct {
	Least float64 // part of its rate that is left to a job whose stages or whose owner's are unknown
	Cost  float64 // part of its rate that an owner loses beside opportunistic jobs, 0..1
	Spill float64 // part of its rate that an opportunistic job loses all of whose memory is on the host, 0..1

	DeviceMemoryGB map[string]float64 // of a device, by accelerator type; none where it is not known
}

// UsualGuarantee leaves a twentieth beside an owner that seems to use all.
func UsualGuarantee() Guarantee { return Guarantee{Least: 0.05} }

// Rate is 1 for the owner of a device. It is 0 for a job for which no owner leaves any time of a resource that it needs.
func (m Guarantee) Rate(self *core.JobSpec, others []*core.JobSpec, accelerator string) float64 {
	if !self.BestEffort {
		owners, cost := 1, 0.0
		for _, o := range others {
			if o.BestEffort {
				cost = m.Cost
			} else {
				owners++
			}
		}
		return (1 - cost) / float64(owners)
	}
	weights, left := self.Weight, 1.0
	for _, o := range others {
		if o.BestEffort {
			weights += o.Weight
		} else {
			left = min(left, m.beside(self, o))
		}
	}
	return left * (self.Weight / weights) * (1 - m.Spill*m.missing(self, others, accelerator))
}

// missing is the part of the memory of opportunistic jobs that a device does not have, 0..1.
func (m Guarantee) missing(self *core.JobSpec, others []*core.JobSpec, accelerator string) float64 {
	size := m.DeviceMemoryGB[accelerator]
	if m.Spill == 0 || size == 0 || self.DeviceMemoryGB == 0 {
		return 0
	}
	owned, wanted := 0.0, self.DeviceMemoryGB
	for _, o := range others {
		if o.BestEffort {
			wanted += o.DeviceMemoryGB
		} else {
			owned += o.DeviceMemoryGB
		}
	}
	return max(0, 1-max(size-owned, 0)/wanted)
}

// beside is what an owner leaves of its rate to a job.
func (m Guarantee) beside(self, owner *core.JobSpec) float64 {
	if self.Iteration.Seconds() == 0 || owner.Iteration.Seconds() == 0 {
		return max(1-utilisation(owner), m.Least)
	}
	period := Filling(owner.Iteration, self.Iteration) * owner.Iteration.ExclusiveSeconds()
	if math.IsInf(period, 1) {
		return 0
	}
	return min(1, self.Iteration.ExclusiveSeconds()/period)
}
