package gavel

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// NewMaxSum maximises the sum of all throughputs, in steps: jobs with many small steps win.
//
// Source: Gavel (OSDI'20), section 4.2.
func NewMaxSum() core.Factory[core.Allocator] {
	return newFactory(core.Info{
		Type:    "gavel_max_sum",
		Summary: "maximises the sum of the jobs' throughputs",
		Description: "Maximises the work done a second, summed over all jobs in the unit of each, so that jobs with many small steps win. " +
			"O(jobs × types) for each of a few prices.",
		Source: source + ", section 4.2",
	}, func(Rounds, core.Settings) policy { return new(maxSum) })
}

type maxSum struct{ solver optim.SharesSolver }

func (p *maxSum) strict() bool { return false }

func (p *maxSum) divide(ctx context.Context, d *problem) error {
	values := make([][]float64, len(d.jobs))
	for i, m := range d.jobs {
		values[i] = m.rates
	}
	r, err := p.solver.MaxSum(ctx, d.polytope(), values, nil)
	if err != nil {
		return err
	}
	d.take(r.Shares)
	return nil
}
