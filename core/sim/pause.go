package sim

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// StartPause is how many seconds a job pauses when it first starts, on average.
func (s *Simulator) StartPause(id core.JobID) float64 {
	delay := s.config.StartDelay.Seconds() + s.config.StartDelaySpread.Seconds()/2
	if s.config.FreeFirstStart {
		return delay
	}
	return delay + s.overheadOf(&s.workload[id])
}

// overheadOf is how many seconds a job pauses at a start or move.
func (s *Simulator) overheadOf(j *workload.Job) float64 {
	if own, ok := s.overheads[j.Spec.Application]; ok {
		return own
	}
	return s.config.RestartOverhead.Seconds()
}
