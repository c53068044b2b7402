package pollux

import (
	"math"
	"time"

	"github.com/quartet-sched/quartet/core"
)

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

// usualOverhead is the restart overhead up to which the horizon is as configured.
const usualOverhead = 30 * time.Second

// span is the horizon in seconds before it adapts. A restart that costs more has to last longer: with a fixed span hardly
// any change would be worth its price. Any power between 1/2 and 1 does; 2/3 is in the middle of a flat region.
func (c Config) span() float64 {
	return c.Horizon.Seconds() * max(1, math.Pow(c.RestartOverhead.Seconds()/usualOverhead.Seconds(), 2.0/3))
}

func (h *horizon) seconds(c Config) float64 {
	span := c.span()
	if c.AdaptiveHorizon && len(h.times) == horizonChanges {
		span = max(span, (h.times[len(h.times)-1]-h.times[0])/(horizonChanges-1))
	}
	return span
}
