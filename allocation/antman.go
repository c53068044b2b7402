package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// NewAntMan serves two classes: guaranteed jobs first, in submission order, then opportunistic ones, which are those of best effort, in submission order.
//
// Everyone is granted what he requests, within what elasticity lets him have, and the placement finds out who fits: antman has opportunistic jobs on the devices of
// guaranteed ones, and takes them away from no guaranteed job. Nobody is preempted but opportunistic jobs, where they cannot share. With a placement that
// does not share, opportunistic jobs that run keep their devices until they end.
//
// Source: Xiao et al., AntMan (OSDI 2020), as far as Muri's simulator imitates it. A quota for each tenant is the admission's matter (quota). Deviation: guaranteed jobs
// that wait for long are not started as opportunistic ones. O(candidates) a round.
func NewAntMan() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "antman",
		Summary: "guaranteed jobs in submission order, and opportunistic ones on what they leave",
		Description: "Jobs that are not best effort are served first, in submission order; those of best effort follow, in submission order. Everyone is granted what he requests; the placement antman finds " +
			"out who fits, and seats opportunistic jobs beside guaranteed ones. O(candidates) a round.",
		Source: "Xiao et al., AntMan, OSDI'20, and its imitation in the simulator of Muri",
	}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
		return &antMan{walk: queue.Walk{Discipline: queue.All}}, nil
	})
}

type antMan struct{ walk queue.Walk }

func (p *antMan) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	for _, opportunistic := range [...]bool{false, true} {
		for i := range candidates {
			if c := &candidates[i]; c.BestEffort == opportunistic {
				p.walk.Take(v, c)
			}
		}
	}
	return p.walk.Grants(), nil
}

// Standing is for ever: the order is the same whoever runs, and nothing here depends on the time.
func (p *antMan) Standing() core.Standing {
	return core.Standing{UntilSeconds: math.Inf(1), IfSeated: p.walk.Kept()}
}
