package placement

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// TiresiasSkewConfig configures NewTiresiasSkew.
type TiresiasSkewConfig struct {
	Skewed []string `config:"skewed" doc:"Applications whose models have few, large tensors and so suffer when spread over nodes."`
}

// NewTiresiasSkew consolidates the applications that suffer when spread, and takes whatever is free for all others.
//
// Source: Tiresias (NSDI'19), placement by the skew of tensor sizes. Tiresias measures the skew while a job runs; here
// the skewed applications are listed. A skewed job waits until it fits on as few nodes as an idle cluster would need.
// O(nodes × nodes taken) for each new seating.
func NewTiresiasSkew() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:        "tiresias_skew",
		Summary:     "consolidates skewed applications, spreads the others",
		Description: "Jobs of the listed applications are seated on the fewest nodes or wait; all other jobs take free devices node by node.",
		Source:      "Tiresias, NSDI'19",
	}, TiresiasSkewConfig{}, func(c TiresiasSkewConfig, _ core.Settings) (core.Placer, error) {
		p := &tiresiasSkew{skewed: make(map[string]bool, len(c.Skewed))}
		for _, application := range c.Skewed {
			p.skewed[application] = true
		}
		return p, nil
	})
}

type tiresiasSkew struct {
	seater
	skewed map[string]bool
}

func (p *tiresiasSkew) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	return p.seat(v, grants, func(s *seater, v *core.View, j *core.Job, t core.AcceleratorID, n int) bool {
		if p.skewed[j.Application] {
			return chooseStrict(s, v, j, t, n)
		}
		return chooseFirstFit(s, v, j, t, n)
	}), nil
}
