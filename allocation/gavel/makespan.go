package gavel

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// NewMakespan ends the last job as early as shares of time can.
//
// Source: Gavel (OSDI'20), section 4.2, whose search over the makespan is one max-min over rates per remaining work here.
func NewMakespan() core.Factory[core.Allocator] {
	return newFactory(core.Info{
		Type:    "gavel_makespan",
		Summary: "ends the last of the jobs as early as possible",
		Description: "Maximises the least progress of a job against the work that it has left, which it must know. " +
			"O(jobs × types) for each of a few prices.",
		Source:       source + ", section 4.2",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, func(Rounds, core.Settings) policy { return new(makespan) })
}

type makespan struct{ solver optim.SharesSolver }

func (p *makespan) strict() bool { return false }

func (p *makespan) divide(ctx context.Context, d *problem) error {
	r, err := p.solver.Makespan(ctx, d.polytope(), d.workLeft())
	if err != nil {
		return err
	}
	d.take(r.Shares)
	return nil
}

// workLeft is the work each job has left; one whose work is unknown counts as having done it.
func (p *problem) workLeft() []float64 {
	left := make([]float64, len(p.jobs))
	for i, m := range p.jobs {
		left[i] = max(m.remaining, 0) // 0 of NaN, too
	}
	return left
}
