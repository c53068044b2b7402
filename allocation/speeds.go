package allocation

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// How fast a job is reckoned to be that is sensitive to CPUs and memory.
const (
	baseSpeed    = "base"
	presentSpeed = "present"
)

// speeds reckons how fast jobs are by their CPUs and their memory.
//
// Source: the simulator of Synergy (OSDI'22), which takes the speed of the round before for a job that ran in it, and the best one for the others.
type speeds struct {
	present bool
	fleet   synergy.Fleet
	now     float64 // of the round
	differ  bool    // some candidate is sensitive
}

func (s *speeds) begin(v *core.View) {
	s.now, s.differ = v.NowSeconds, false
	if s.present {
		s.fleet.CountIn(v)
	}
}

// of is the speed of a candidate on so many replicas, above 0; 1 with the part of CPUs and memory that belongs to its devices.
func (s *speeds) of(c *core.Candidate, replicas int) float64 {
	if !s.present || c.Sensitivity == nil {
		return 1
	}
	s.differ = true
	speed := 0.0
	if c.State == core.Running && c.Resources != nil {
		speed = c.Sensitivity.Speed(*c.Resources)
	} else {
		speed = s.fleet.Job(c.JobSpec, replicas, core.AnyAccelerator).Demand.Speed
	}
	if speed <= 0 {
		return 1
	}
	return speed
}
