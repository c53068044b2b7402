package placement

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// TiresiasSkewConfig configures NewTiresiasSkew.
type TiresiasSkewConfig struct {
	// Skewed are applications that suffer when spread over nodes.
	Skewed []string `config:"skewed" doc:"applications whose models have few, large tensors and so suffer when spread over nodes"`
}

// NewTiresiasSkew consolidates the applications that suffer when spread, and takes whatever is free for all others.
//
// Source: Tiresias (NSDI'19), placement by the skew of tensor sizes. Tiresias measures the skew while a job runs; here
// the skewed applications are listed. A skewed job is seated like consolidated with strict, any other like first_fit.
// O(nodes × nodes taken) for each new seating.
func NewTiresiasSkew() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "tiresias_skew",
		Sharing: []core.Sharing{core.TimeSlice},
		Summary: "consolidates skewed applications, spreads the others",
		Description: "Jobs of the listed applications are seated like consolidated with strict, on the fewest nodes, or wait; all other jobs are seated like first_fit. " +
			"Tiresias measures the skew of tensor sizes while a job runs; here the skewed applications are listed. O(nodes × nodes taken) for each new seating.",
		Source: "Tiresias, NSDI'19",
	}, TiresiasSkewConfig{}, func(c TiresiasSkewConfig, _ core.Settings) (core.Placer, error) {
		p := &tiresiasSkew{skewed: make(map[string]bool, len(c.Skewed))}
		for _, application := range c.Skewed {
			p.skewed[application] = true
		}
		return p, nil
	})
}

type tiresiasSkew struct {
	seating.Seater
	skewed map[string]bool
}

func (p *tiresiasSkew) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	return p.SeatAll(v, grants, func(g *core.Grant) bool {
		if p.skewed[v.Jobs[g.Job].Application] {
			return p.OnFewestNodes(v, g, chooseStrict)
		}
		return p.OnLowestType(v, g, chooseFirstFit)
	}), nil
}
