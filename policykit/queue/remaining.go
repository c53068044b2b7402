package queue

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// The measures of attained service.
const (
	DeviceTime = "device_time" // executed seconds times devices
	WallTime   = "wall_time"   // executed seconds alone
)

// EarlySeconds is how long before a computed moment a policy asks to be asked again, so that rounding cannot make the round late.
const EarlySeconds = 1e-6

// StepTimeCapabilities lists what a policy needs that orders jobs by RemainingSeconds, besides the work left.
func StepTimeCapabilities(steps bool) []core.Capability {
	if steps {
		return []core.Capability{core.CapabilityStepTimes}
	}
	return nil
}

// Requested returns the number of replicas that a candidate asks for, within what it can use.
func Requested(c *core.Candidate) int {
	return min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas)
}

// RemainingSeconds returns the seconds that a job still needs on n replicas; NaN when unknown. With steps it is read from the true step
// times, where there are any. declared says that the declared work stands in, of which less is left as time passes.
func RemainingSeconds(c *core.Candidate, now float64, n, perNode int, steps bool) (seconds float64, declared bool) {
	rate := c.Response.Rate(core.AnyAccelerator, n, perNode)
	switch {
	case rate > 0 && !math.IsNaN(c.Response.RemainingWork):
		return c.Response.RemainingWork / rate, false
	case steps && c.StepTimes != nil: // the declared work counts iterations
		return c.StepsLeft * stepTime(c.StepTimes, n, perNode), false
	case c.TotalWork > 0 && c.Sensitivity != nil && c.Sensitivity.IterationSeconds > 0:
		return c.RemainingWork(now) * c.Sensitivity.IterationSeconds, true
	case c.TotalWork > 0:
		return c.RemainingWork(now), true
	}
	return math.NaN(), false
}

// stepTime is the seconds of a step on n replicas, consolidated; NaN when they cannot run so.
func stepTime(times *core.StepTimes, n, perNode int) float64 {
	table := times.ManyNodes
	if n <= perNode {
		table = times.OneNode
	}
	if n > len(table) || !(table[n-1] > 0) {
		return math.NaN()
	}
	return table[n-1]
}
