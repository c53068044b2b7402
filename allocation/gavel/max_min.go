package gavel

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// MaxMinConfig configures NewMaxMin.
type MaxMinConfig struct {
	Rounds
	// Spare says what happens to time that the fairest shares leave.
	Spare string `config:"spare" doc:"what becomes of time that the fairest shares leave: throughput divides it so that the jobs are fastest, each against its best type; rounds leaves it to any job that fits, as published" enum:"throughput|rounds"`
}

// The values of MaxMinConfig.Spare.
const (
	spareThroughput = "throughput"
	spareRounds     = "rounds"
)

// NewMaxMin makes the job fastest that is slowest against its equal share of every device: least attained service, over
// accelerators of several types. Of two jobs that gain equally, one with twice the devices gets half the time.
//
// Source: Gavel (OSDI'20), section 4.1. The solver is ours, exact, and sees jobs with equal rates, devices and
// weights as one. Dividing what is left over is ours, too: it costs nobody the fairness, and lowers the mean
// completion time. Blind to types it is max-min over time alone. O(classes of jobs × types) for each of a few prices.
func NewMaxMin() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "gavel_max_min",
		OneType: true,
		Summary: "max-min fairness over types: the slowest job against its equal share as fast as can be",
		Description: "Maximises the least throughput of a job, measured against that in an equal share of every device, by weight and devices; " +
			"what that leaves over makes the others faster. O(classes of jobs × types) for each of a few prices.",
		Source: source + ", section 4.1",
	}, MaxMinConfig{Rounds: defaults, Spare: spareThroughput}, func(c MaxMinConfig, s core.Settings) (core.Allocator, error) {
		return newMechanism(c.Rounds, &maxMin{spare: c.Spare == spareThroughput}, s), nil
	})
}

type maxMin struct {
	spare  bool // divide what is left over
	solver optim.SharesSolver
}

func (p *maxMin) strict() bool { return false }

func (p *maxMin) divide(ctx context.Context, d *problem) error {
	slopes := d.fairSlopes()
	small, groups := d.polytope().Group(slopes)
	slopes = groups.Pick(slopes)
	r, err := p.solver.MaxMin(ctx, small, optim.Level{Slope: slopes})
	if err != nil {
		return err
	}
	shares := r.Shares
	if p.spare {
		if shares, err = p.fastest(ctx, small, fairRates(slopes, r.Level), shares); err != nil {
			return err
		}
	}
	d.take(groups.Spread(shares))
	return nil
}

// fastest are the shares of the largest sum of throughputs, each against that on the best type, of those that keep
// the fair ones.
func (p *maxMin) fastest(ctx context.Context, d optim.Polytope, fair []float64, shares [][]float64) ([][]float64, error) {
	values := make([][]float64, len(d.Jobs))
	for i, j := range d.Jobs {
		values[i] = j.Rates
	}
	r, err := p.solver.MaxSum(ctx, d, values, fair)
	if err != nil || !r.Feasible {
		return shares, err
	}
	return r.Shares, nil
}

// fairSlopes is what each job must progress by for each unit of fairness.
func (p *problem) fairSlopes() []float64 {
	slopes := make([]float64, len(p.jobs))
	for i, m := range p.jobs {
		slopes[i] = m.weight * p.equal(m) / float64(m.devices)
	}
	return slopes
}

// fairRates are the throughputs at a level of fairness, less what rounding may have added to it.
func fairRates(slopes []float64, level float64) []float64 {
	const rounding = 1e-9
	rates := make([]float64, len(slopes))
	for i, slope := range slopes {
		rates[i] = level * (1 - rounding) * slope
	}
	return rates
}
