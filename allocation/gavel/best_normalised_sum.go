package gavel

import (
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// BestNormalisedConfig configures NewBestNormalisedSum.
type BestNormalisedConfig struct {
	Rounds
	// FairnessFloor is the part of its max-min throughput that every job keeps at least; 0 for no floor.
	FairnessFloor float64 `config:"fairness_floor" doc:"part of its max-min throughput that every job keeps at least; 0 for no floor" min:"0" max:"1"`
}

// NewBestNormalisedSum gives each type to the jobs that lose most by being elsewhere: it maximises the sum of the jobs'
// throughputs, each measured against that on its best type.
//
// Of jobs that gain alike, that with the least attained service goes first, without which long jobs of a kind hold up
// its short ones. It needs to know nothing about a job's length, and hardly moves jobs. By itself it is fair to
// nobody; a fairness floor holds every job at a part of what max-min would give it.
//
// Source: none; a finding of this project's measurements of Gavel (OSDI'20), whose mechanism it uses. O(jobs × types)
// for each of a few prices.
func NewBestNormalisedSum() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "best_normalised_sum",
		OneType: true,
		Summary: "each type to the jobs that lose most elsewhere, with a floor of fairness",
		Description: "Maximises the sum of the jobs' throughputs, each as a part of that on its best type; of jobs that gain alike, the one with the least service goes first. " +
			"With a fairness_floor, every job progresses at that part of its max-min throughput at least. O(jobs × types) for each of a few prices.",
	}, BestNormalisedConfig{Rounds: defaults}, func(c BestNormalisedConfig, s core.Settings) (core.Allocator, error) {
		return newMechanism(c.Rounds, &bestNormalisedSum{floor: c.FairnessFloor}, s), nil
	})
}

type bestNormalisedSum struct {
	floor  float64
	solver optim.SharesSolver
}

// attainedTie is by how much a job without service outweighs one with a lot: enough to choose between jobs that gain
// alike, too little to choose against gain.
const attainedTie = 1e-4

func (p *bestNormalisedSum) strict() bool { return false }

func (p *bestNormalisedSum) divide(ctx context.Context, d *problem) error {
	values := make([][]float64, len(d.jobs))
	for i, m := range d.jobs {
		values[i] = slices.Clone(m.rates)
		weight := 1 + attainedTie/(1+m.attained/3600)
		for t := range values[i] {
			values[i][t] *= weight
		}
	}
	floors, err := p.floors(ctx, d)
	if err != nil {
		return err
	}
	r, err := p.solver.MaxSum(ctx, d.polytope(), values, floors)
	if err != nil {
		return err
	}
	if r.Feasible { // else the max-min shares stand, to which rounding left no room
		d.take(r.Shares)
	}
	return nil
}

// floors is the throughput that each job must keep; nil for none. The shares become those of max-min.
func (p *bestNormalisedSum) floors(ctx context.Context, d *problem) ([]float64, error) {
	if p.floor == 0 {
		return nil, nil
	}
	slopes := d.fairSlopes()
	small, groups := d.polytope().Group(slopes)
	r, err := p.solver.MaxMin(ctx, small, optim.Level{Slope: groups.Pick(slopes)})
	if err != nil {
		return nil, err
	}
	d.take(groups.Spread(r.Shares))
	return fairRates(slopes, p.floor*r.Level), nil
}
