package admission

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stopping"
)

// MedianConfig configures NewMedian.
type MedianConfig struct {
	comparing
	Grace  float64 `config:"grace" doc:"no trial is ended before this step" min:"0"`
	Others int     `config:"others" doc:"how many others are to have reached a step before one is ended at it" min:"1" max:"1000000"`
}

// NewMedian ends the trials of a search that are worse than the median of the others.
//
// Source: Golovin et al., "Google Vizier", KDD 2017, section 3.2.2: the best value so far against the median of the averages of the others up to the same step. Trials that still run count,
// as they do in tuners. O(reports of the search) a report.
func NewMedian() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "median",
		Summary: "ends trials whose best value is worse than the median of what others had on average",
		Description: "Jobs of one experiment are trials of a search. At each report, a trial whose best value so far is worse than the median of the averages of the others up to the same step is ended, and counts as " +
			"completed. Jobs without an experiment are let alone. It needs jobs that report: docs/reports-of-jobs.md.",
		Source: "Golovin et al., KDD 2017, section 3.2.2",
	}, MedianConfig{comparing: usualComparing, Grace: 1, Others: 3}, func(c MedianConfig, _ core.Settings) (core.Admitter, error) {
		return newPruning(c.comparing, 0, func(g core.Goal) stopping.Rule { return stopping.NewMedian(g, c.Grace, c.Others) }), nil
	})
}

// Validate refuses metrics by which nobody could be compared.
func (c *MedianConfig) Validate() error { return c.check().Err() }
