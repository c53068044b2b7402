package admission

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stopping"
)

// SuccessiveHalvingConfig configures NewSuccessiveHalving.
type SuccessiveHalvingConfig struct {
	comparing
	waiting
	First  float64 `config:"first" doc:"step of the first rung; each next one is eta times as far" min:"1e-9"`
	Eta    float64 `config:"eta" doc:"one of eta trials goes on from a rung" min:"1"`
	Most   float64 `config:"most" doc:"there is no rung at this step or beyond; 0 for no end" min:"0"`
	Trials int     `config:"trials" doc:"how many trials are compared at the first rung; 0: those that there are when none of the search runs any more" min:"0" max:"1000000"`
}

// NewSuccessiveHalving has the trials of a search wait for each other at rungs, from which one of eta goes on.
//
// Source: Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016. A trial that comes when the first rung was decided runs to its
// end, and so does one that had not reached a rung when the patience with it was over. O(trials) a report.
func NewSuccessiveHalving() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "successive_halving",
		Summary: "has trials wait at rungs, without devices, until all are there and the best go on",
		Description: "Jobs of one experiment are trials of a search. Rungs are at the steps first, first·eta, first·eta²…: a trial that reports there keeps its checkpoint and holds no device until the others have, or " +
			"have ended. Then the best one of eta go on, and the rest are ended, and count as completed. Jobs without an experiment are let alone. It needs jobs that report: docs/reports-of-jobs.md.",
		Source: "Jamieson and Talwalkar, AISTATS 2016",
	}, SuccessiveHalvingConfig{comparing: usualComparing, waiting: waiting{usualPatience}, First: 1, Eta: 3}, func(c SuccessiveHalvingConfig, _ core.Settings) (core.Admitter, error) {
		return newPruning(c.comparing, c.Patience, func(g core.Goal) stopping.Rule {
			return stopping.NewHalving(rungs(c.First, c.Eta, c.Most), g, c.Trials)
		}), nil
	})
}

// Validate refuses rungs that nobody reaches.
func (c *SuccessiveHalvingConfig) Validate() error {
	return append(c.check(), checkRungs(c.First, c.Eta, c.Most)...).Err()
}
