// Package admission holds the built-in admitters: who may compete for devices. One file is one policy.
//
// An admitter counts a job by its demand: the replicas it requests, within its own bounds, each with the part of a device that it has. Jobs that no verdict names
// are admitted, so an admitter that holds nobody back answers with nothing.
package admission

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// demand is the number of devices a job counts for, whatever it may hold at the moment.
func demand(j *core.JobSpec) int {
	least := max(j.MinReplicas, 1)
	return min(max(j.Requested, least), max(j.MaxReplicas, least))
}

// taken is what so many replicas of a job take of devices, in core.PartUnits of one: parts where jobs have parts.
func taken(c *core.Cluster, j *core.JobSpec, replicas int) int { return replicas * c.PartUnits(j) }

// devices is how many devices that is.
func devices(taken int) float64 { return float64(taken) / core.PartUnits }

// onEvents marks a policy whose answer depends on which jobs are submitted, active and ended and on the health of
// nodes, never on the time.
type onEvents struct{}

// Standing is for ever: all that the answer depends on changes by events only.
func (onEvents) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }
