package gavel

import (
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Rounds configures the mechanism of every policy.
type Rounds struct {
	// RecomputeInterval is the least time between two computations of the shares.
	RecomputeInterval time.Duration `config:"recompute_interval" doc:"least time between two computations of the shares, which a job that comes or ends calls for; 0s computes them at once" min:"0s"`
	// Lease is the least time that a job keeps the type it started on or was moved to.
	Lease time.Duration `config:"lease" doc:"least time that a job keeps the type it started on or was moved to, longer while it restarts; what makes short rounds bearable where a restart costs time" min:"0s"`
	// NewJobs says what a job gets before its first shares are computed.
	NewJobs string `config:"new_jobs" doc:"what a job gets before its first shares are computed: share is an equal share of each type; wait is nothing, though devices are set aside for it that then idle, as published" enum:"share|wait"`
	// Types is the order in which accelerator types choose among the jobs.
	Types string `config:"types" doc:"order in which accelerator types choose among the jobs: as in the cluster, or shuffled each round" enum:"in_order|shuffled"`
	// GlobalQueue makes one queue of jobs and types together, instead of one for each type.
	GlobalQueue bool `config:"global_queue" doc:"one queue of jobs and types together, instead of one for each type"`
	// Accounts says which time a job's share is weighed against when shares are computed anew.
	Accounts string `config:"accounts" doc:"time that a job's share is weighed against, when shares are computed anew: settled starts with what the job is short of or ahead, up to a round; reset starts at nothing, as published, so that the largest share wins every round while jobs come and go; kept is all that it ever received" enum:"settled|reset|kept"`
	// TypeBlind takes a job to be as fast on every type as on the first that it can run on.
	TypeBlind bool `config:"type_blind" doc:"take a job to be as fast on every type that it can run on as on the first of these types in the order of the cluster, whichever that is"`
}

// LeastTurn is the lease.
func (c Rounds) LeastTurn() (seconds float64, setting string, turns bool) {
	return c.Lease.Seconds(), "lease", true
}

// wholeRounds are those of a policy that shares no device out by time: who has it keeps it.
type wholeRounds struct{ Rounds }

// LeastTurn is false.
func (wholeRounds) LeastTurn() (seconds float64, setting string, turns bool) { return 0, "", false }

// The values of Rounds.
const (
	share    = "share"
	wait     = "wait"
	inOrder  = "in_order"
	shuffled = "shuffled"
	settled  = "settled"
	reset    = "reset"
	kept     = "kept"
)

// defaults compute at once: the published interval spared a slow solver. Accounts are settled since events can be as
// frequent as rounds. The lease is the published round.
var defaults = Rounds{Lease: 6 * time.Minute, NewJobs: share, Types: inOrder, Accounts: settled}

const source = "Gavel, OSDI 2020"

// newFactory makes the factory of a policy whose only settings are those of the mechanism.
func newFactory(info core.Info, newPolicy func(Rounds, core.Settings) policy) core.Factory[core.Allocator] {
	info.OneType = true
	return core.NewFactory(info, defaults, func(c Rounds, s core.Settings) (core.Allocator, error) {
		return newMechanism(c, newPolicy(c, s), s), nil
	})
}
