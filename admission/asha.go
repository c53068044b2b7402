package admission

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stopping"
)

const (
	variantStop    = "stop"
	variantPromote = "promote"
)

// ASHAConfig configures NewASHA.
type ASHAConfig struct {
	comparing
	waiting
	First   float64 `config:"first" doc:"step of the first rung; each next one is eta times as far" min:"1e-9"`
	Eta     float64 `config:"eta" doc:"one of eta trials goes on from a rung" min:"1"`
	Most    float64 `config:"most" doc:"there is no rung at this step or beyond; 0 for no end" min:"0"`
	Variant string  `config:"variant" doc:"stop: a trial goes on from a rung or is ended at once; promote: it waits, without devices, until it is one of the best" enum:"stop|promote"`
}

// NewASHA ends the trials of a search that are worse than others at the same rung, and waits for nobody.
//
// Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020. The first trial of a rung goes on in the stopping variant; in the promoting one nobody
// is promoted from a rung that fewer than eta reached. O(trials) a report.
func NewASHA() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "asha",
		Summary: "ends trials that are not among the best of a rung, without waiting for stragglers",
		Description: "Jobs of one experiment are trials of a search. Rungs are at the steps first, first·eta, first·eta²…: a trial that reports there is compared with all that did so far, and goes on if it is " +
			"among the best of eta. With variant promote the others keep their checkpoints, hold no device, and go on once they are; with stop they are ended, and count as completed. Jobs without an experiment are let " +
			"alone. It needs jobs that report: docs/reports-of-jobs.md.",
		Source: "Li et al., MLSys 2020, algorithm 2",
	}, ASHAConfig{comparing: usualComparing, waiting: waiting{usualPatience}, First: 1, Eta: 4, Variant: variantStop}, func(c ASHAConfig, _ core.Settings) (core.Admitter, error) {
		return newPruning(c.comparing, c.Patience, func(g core.Goal) stopping.Rule {
			return stopping.NewASHA(rungs(c.First, c.Eta, c.Most), g, c.Variant == variantPromote)
		}), nil
	})
}

// Validate refuses rungs that nobody reaches.
func (c *ASHAConfig) Validate() error {
	return append(c.check(), checkRungs(c.First, c.Eta, c.Most)...).Err()
}
