package sim

import "github.com/quartet-sched/quartet/core"

// StartPause is how many seconds a job pauses when it first starts, on average.
func (s *Simulator) StartPause(id core.JobID) float64 {
	delay := s.config.StartDelay.Seconds() + s.config.StartDelaySpread.Seconds()/2
	if s.config.FreeFirstStart {
		return delay
	}
	return delay + s.overheadOf(&s.workload[id])
}
