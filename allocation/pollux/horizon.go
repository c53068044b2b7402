package pollux

import "github.com/quartet-sched/quartet/core"

// horizon measures the time between changes of the job list.
type horizon struct {
	times []float64  // of the last arrivals and departures
	known core.JobID // jobs below it arrived before
}

const horizonChanges = 10

func (h *horizon) observe(v *core.View) {
	for _, id := range v.Changed {
		if v.Job(id) == nil || id >= h.known {
			h.times = append(h.times, v.NowSeconds)
		}
	}
	h.known = core.JobID(len(v.Jobs))
	if extra := len(h.times) - horizonChanges; extra > 0 {
		h.times = append(h.times[:0], h.times[extra:]...)
	}
}

func (h *horizon) seconds(c Config) float64 {
	span := c.Horizon.Seconds()
	if c.AdaptiveHorizon && len(h.times) == horizonChanges {
		span = max(span, (h.times[len(h.times)-1]-h.times[0])/(horizonChanges-1))
	}
	return span
}
