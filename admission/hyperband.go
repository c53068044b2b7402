package admission

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stopping"
)

// HyperbandConfig configures NewHyperband.
type HyperbandConfig struct {
	comparing
	waiting
	First float64 `config:"first" doc:"least steps that a trial is given before it is compared" min:"1e-9"`
	Eta   float64 `config:"eta" doc:"one of eta trials goes on from a rung" min:"1"`
	Most  float64 `config:"most" doc:"steps of a trial that is not ended" min:"1e-9"`
}

// NewHyperband runs brackets of successive halving, from many trials that are compared early to few that are never.
//
// Source: Li et al., "Hyperband", JMLR 2018, algorithm 1. Trials fill the brackets in the order in which they are submitted, and the first one again when all are full; a bracket does not wait for
// that before it. O(trials) a report.
func NewHyperband() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "hyperband",
		Summary: "successive halving with several trades between many trials and long ones",
		Description: "Jobs of one experiment are trials of a search, which fill brackets in their order: ceil((m+1)/(s+1)·eta^s) trials first compared at most/eta^s, for s from m = log_eta(most/first) down to 0. Within a " +
			"bracket, trials wait for each other as with successive_halving. Jobs without an experiment are let alone. It needs jobs that report: docs/reports-of-jobs.md.",
		Source: "Li et al., JMLR 2018, algorithm 1",
	}, HyperbandConfig{comparing: usualComparing, waiting: waiting{usualPatience}, First: 1, Eta: 3, Most: 81}, func(c HyperbandConfig, _ core.Settings) (core.Admitter, error) {
		return newPruning(c.comparing, c.Patience, func(g core.Goal) stopping.Rule {
			return stopping.NewHyperband(rungs(c.First, c.Eta, c.Most), g)
		}), nil
	})
}

// Validate refuses rungs that nobody reaches.
func (c *HyperbandConfig) Validate() error {
	return append(c.check(), checkRungs(c.First, c.Eta, c.Most)...).Err()
}
