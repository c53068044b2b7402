package sim

import "github.com/quartet-sched/quartet/core"

// StartPause is how many seconds a job pauses when it first starts.
func (s *Simulator) StartPause(id core.JobID) float64 {
	if s.config.FreeFirstStart {
		return 0
	}
	return s.jobs[id].overhead
}
