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

// leastValue is the part of the largest throughput below which one adds nothing to their sum, but rounding.
const leastValue = 1e-16

func (p *maxSum) strict() bool { return false }

func (p *maxSum) divide(ctx context.Context, d *problem) error {
	most := 0.0
	for _, m := range d.jobs {
		most = max(most, m.unit)
	}
	values := make([][]float64, len(d.jobs))
	for i, m := range d.jobs {
		values[i] = make([]float64, len(m.rates))
		if unit := m.unit / most; unit >= leastValue {
			for t, rate := range m.rates {
				values[i][t] = rate * unit
			}
		}
	}
	r, err := p.solver.MaxSum(ctx, d.polytope(), values, nil)
	if err != nil {
		return err
	}
	d.take(r.Shares)
	return nil
}
