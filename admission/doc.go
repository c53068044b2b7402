// Package admission holds the built-in admitters: who may compete for devices. One file is one policy.
//
// An admitter counts a job by its demand: the replicas it requests, within its own bounds. Jobs that no verdict names
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

// onEvents marks a policy whose answer depends on which jobs are submitted, active and ended and on the health of
// nodes, never on the time.
type onEvents struct{}

// Standing is for ever: all that the answer depends on changes by events only.
func (onEvents) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }
