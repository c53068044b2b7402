package gavel

import (
	"context"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// MakespanConfig configures NewMakespan.
type MakespanConfig struct {
	Rounds
	// Tolerance is by what part the makespan may exceed the least; 0 is exact.
	Tolerance float64 `config:"tolerance" doc:"how much longer than the least the makespan may be, as a part of it: 0 is exact, 0.05 searches for it as published" min:"0" max:"1"`
}

// Validate refuses a tolerance that the search could not meet by floating-point numbers.
func (c MakespanConfig) Validate() error {
	if c.Tolerance > 0 && c.Tolerance < leastTolerance {
		return fmt.Errorf("tolerance: %v is too little to search to; give 0 for the exact makespan, or %v at least", c.Tolerance, leastTolerance)
	}
	return nil
}

const leastTolerance = 1e-9

// NewMakespan ends the last job as early as shares of time can.
//
// Source: Gavel (OSDI'20), section 4.2, which searches for the makespan. That is one max-min problem over the rates
// per work left, and so the search, whose slack leaves the longest jobs waiting now and then, is an option for
// reproductions.
func NewMakespan() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "gavel_makespan",
		OneType: true,
		Summary: "ends the last of the jobs as early as possible",
		Description: "Maximises the least progress of a job against the work that it has left, which it must know. " +
			"O(jobs × types) for each of a few prices.",
		Source:       source + ", section 4.2",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, MakespanConfig{Rounds: defaults}, func(c MakespanConfig, s core.Settings) (core.Allocator, error) {
		return newMechanism(c.Rounds, &makespan{tolerance: c.Tolerance}, s), nil
	})
}

type makespan struct {
	tolerance float64
	solver    optim.SharesSolver
}

func (p *makespan) strict() bool { return false }

func (p *makespan) divide(ctx context.Context, d *problem) error {
	if p.tolerance > 0 {
		return p.search(ctx, d)
	}
	r, err := p.solver.Makespan(ctx, d.polytope(), d.workLeft())
	if err != nil {
		return err
	}
	d.take(r.Shares)
	return nil
}

// The span of seconds in which the published search begins; the next one begins where it ends.
const (
	searchFrom = 100
	searchTo   = 1e6
)

// search halves the span of makespans until its ends are near enough, and takes the shares of the last that can be met.
func (p *makespan) search(ctx context.Context, d *problem) error {
	left, demand := d.workLeft(), make([]float64, len(d.jobs))
	polytope := d.polytope()
	met := false
	for from, to := float64(searchFrom), float64(searchTo); !met && to <= longest; from, to = to, 10*to {
		for low, high := from, to; high > (1+p.tolerance)*low; {
			middle := (low + high) / 2
			if middle == low || middle == high {
				break
			}
			for i := range demand {
				demand[i] = left[i] / middle
			}
			r, err := p.solver.Feasible(ctx, polytope, demand)
			if err != nil {
				return err
			}
			if !r.Feasible {
				low = middle
				continue
			}
			d.take(r.Shares)
			high, met = middle, true
		}
	}
	return nil
}
