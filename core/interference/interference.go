package interference

import "github.com/quartet-sched/quartet/core"

// Model is how fast a job is on a device that it shares.
type Model interface {
	// Rate is the part of its rate alone that a job has beside others on a device of an accelerator type, at most a little above 1, and 0
	// only where they do not fit or leave it nothing (Guarantee): it is there, and gets no further until one of them leaves. The others are at least one, in JobID order. The same jobs always come to the same.
	Rate(self *core.JobSpec, others []*core.JobSpec, accelerator string) float64
}

// None is for devices of which jobs have parts of their own: what a job takes on its part is what it takes.
type None struct{}

// Rate is 1.
func (None) Rate(*core.JobSpec, []*core.JobSpec, string) float64 { return 1 }

// Turns lets jobs take turns: each has the device for a quantum, by weight, and a switch to the next costs a part of it.
type Turns struct {
	SwitchRatio float64 // of a quantum, 0..1
}

// Rate is the part of the turns that a job has, less the switches.
func (m Turns) Rate(self *core.JobSpec, others []*core.JobSpec, _ string) float64 {
	sum := self.Weight
	for _, o := range others {
		sum += o.Weight
	}
	return self.Weight / sum * (1 - m.SwitchRatio)
}

// Hinge slows all jobs on a device down alike once they want more of it together than it has: by Slope for each whole device of utilisation above
// Knee. A job of unknown utilisation counts as 1.
//
// Source: fitted to 1,388 pairs measured on the RTX 3090 (Hu et al., Lucid, ASPLOS'23), where it is off by 0.068 of the mean speed of a pair
// (root mean square).
type Hinge struct {
	Knee, Slope, Least float64 // utilisation, loss of speed for each whole device above it, and the least speed (0 to 1)
}

// UsualHinge is the fitted one.
func UsualHinge() Hinge { return Hinge{Knee: 0.85, Slope: 0.306, Least: 0.05} }

// Rate is 1 - Slope × max(0, Σ utilisation - Knee), and no less than Least.
func (m Hinge) Rate(self *core.JobSpec, others []*core.JobSpec, _ string) float64 {
	sum := utilisation(self)
	for _, o := range others {
		sum += utilisation(o)
	}
	return max(1-m.Slope*max(0, sum-m.Knee), m.Least)
}

func utilisation(j *core.JobSpec) float64 {
	if j.Utilisation == 0 {
		return 1
	}
	return j.Utilisation
}
