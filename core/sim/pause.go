package sim

import (
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// LongestStart is that of the application with the longest overhead, on devices that another job has just left. Pauses for others on the same devices, as
// publications have them, come on top.
func (o *opener) LongestStart() (s backend.Start) {
	c := &o.config
	add := func(d time.Duration, key string) {
		if s.Pause += d; d > 0 {
			s.Keys = append(s.Keys, key)
		}
	}
	add(c.ReleaseDelay, "release_delay")
	add(c.StartDelay, "start_delay")
	add(c.StartDelaySpread, "start_delay_spread")
	if len(s.Keys) > 0 { // both are told as events
		s.Event, s.EventKey = c.StartDelay+c.StartDelaySpread, s.Keys[len(s.Keys)-1]
		if c.ReleaseDelay > 0 {
			s.Event, s.EventKey = c.ReleaseDelay, s.Keys[0]
		}
	}
	add(c.LongestPause())
	return s
}

// StartPause is how many seconds a job pauses when it first starts, on average.
func (s *Simulator) StartPause(id core.JobID) float64 {
	delay := s.config.StartDelay.Seconds() + s.config.StartDelaySpread.Seconds()/2
	if s.config.FreeFirstStart {
		return delay
	}
	return delay + s.overheadOf(s.jobOf(id))
}
