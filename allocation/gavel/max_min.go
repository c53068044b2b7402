package gavel

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// NewMaxMin makes the job fastest that is slowest against its equal share of every device: least attained service, over
// accelerators of several types. Of two jobs that gain equally, one with twice the devices gets half the time.
//
// Source: Gavel (OSDI'20), section 4.1. The solver is ours, exact, and sees jobs with equal rates, devices and weights as one.
// Blind to types it is max-min over time alone.
func NewMaxMin() core.Factory[core.Allocator] {
	return newFactory(core.Info{
		Type:    "gavel_max_min",
		Summary: "max-min fairness over types: the slowest job against its equal share as fast as can be",
		Description: "Maximises the least throughput of a job, measured against that in an equal share of every device, by weight and devices. " +
			"What that leaves free goes to whoever can use it. O(classes of jobs × types) for each of a few prices.",
		Source: source + ", section 4.1",
	}, func(Rounds, core.Settings) policy { return new(maxMin) })
}

type maxMin struct{ solver optim.SharesSolver }

func (p *maxMin) strict() bool { return false }

func (p *maxMin) divide(ctx context.Context, d *problem) error {
	slopes := d.fairSlopes()
	small, groups := d.polytope().Group(slopes)
	r, err := p.solver.MaxMin(ctx, small, optim.Level{Slope: groups.Pick(slopes)})
	if err != nil {
		return err
	}
	d.take(groups.Spread(r.Shares))
	return nil
}

// fairSlopes is what each job must progress by for each unit of fairness.
func (p *problem) fairSlopes() []float64 {
	slopes := make([]float64, len(p.jobs))
	for i, m := range p.jobs {
		slopes[i] = m.weight * p.equal(m) / float64(m.devices)
	}
	return slopes
}
