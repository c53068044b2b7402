package synergy

import "github.com/quartet-sched/quartet/core"

// How fast a job is taken to be that is sensitive to CPUs and memory.
const (
	BaseSpeed    = "base"    // as with the part of them that belongs to its devices
	PresentSpeed = "present" // as with what it has if it runs, and with what it runs best with if it waits
)

// Speeds estimates how fast jobs are by their CPUs and their memory. Create one with NewSpeeds.
//
// Source: the simulator of Synergy (OSDI'22), which takes the speed of the round before for a job that ran in it, and the best one for the others.
type Speeds struct {
	present bool
	fleet   Fleet
	now     float64 // of the round
	differ  bool    // some candidate is sensitive
}

// NewSpeeds creates the speeds of a kind, BaseSpeed or PresentSpeed.
func NewSpeeds(kind string) Speeds { return Speeds{present: kind == PresentSpeed} }

// Begin starts a round.
func (s *Speeds) Begin(v *core.View) {
	s.now, s.differ = v.NowSeconds, false
	if s.present {
		s.fleet.CountIn(v)
	}
}

// Of returns the speed of a candidate on so many replicas, above 0; 1 with the part of CPUs and memory that belongs to its devices.
func (s *Speeds) Of(c *core.Candidate, replicas int) float64 {
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

// Differ reports whether the speed of some candidate of this round depends on its CPUs and memory.
func (s *Speeds) Differ() bool { return s.differ }

// Now returns the moment of this round in seconds.
func (s *Speeds) Now() float64 { return s.now }

// Wanted returns the devices, the CPUs and the memory that a job wants on so many replicas.
func (f *Fleet) Wanted(j *core.JobSpec, replicas int) State {
	return State{Devices: replicas, Demand: f.Job(j, replicas, core.AnyAccelerator).Demand.Resources}
}
