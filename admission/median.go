package admission

import (
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/stopping"
)

// MedianConfig configures NewMedian.
type MedianConfig struct {
	// Metrics are names of metrics; the first that is reported is the one that counts.
	Metrics []string `config:"metrics" doc:"an experiment is judged by the first of these that its trials report"`
	// Goal says whether lower or higher values are better; auto decides by the name of the metric.
	Goal string `config:"goal" doc:"which values are better; auto knows metrics with a word such as loss, error, accuracy or score in their names" enum:"auto|minimize|maximize"`
	// Grace is the first step at which trials are judged.
	Grace float64 `config:"grace" doc:"the first step at which trials are judged" min:"0"`
	// Others is how many other trials must have come to a step before one is judged there.
	Others int `config:"others" doc:"how many other trials must have come to the step" min:"1" max:"100000"`
}

// NewMedian ends trials of an experiment that do worse than half of the others did at the same step.
//
// Source: Golovin et al., Google Vizier (KDD'17), median stopping rule: the best value of a trial up to a step against the median of the running means of the others. The publication
// counts completed trials only; here those that still run and have come to the step, and those that were ended, count as well, for otherwise the first trials of a search
// that runs all at once would be judged by nobody. Trials that failed or were cancelled do not. A trial without an experiment is let alone. O(n log n) a report for n trials.
func NewMedian() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "median",
		Summary: "ends trials that are worse than the median of their experiment at the same step",
		Description: "Admits every job. A trial that reports is ended, and counts as completed, when its best value up to the step is worse than the median, over the other trials of its experiment that have come so far, " +
			"of the mean of what they reported up to it. Trials that failed or were cancelled do not count. Jobs without an experiment are let alone. It needs a backend whose jobs report: docs/early-stopping.md.",
		Source: "Golovin et al., Google Vizier, KDD'17: median stopping rule",
	}, MedianConfig{Metrics: []string{"loss", "accuracy"}, Goal: goalAuto, Grace: 1, Others: 3}, func(c MedianConfig, _ core.Settings) (core.Admitter, error) {
		return newTrials(c.Metrics, c.Goal, 0, fmt.Sprintf("median %+v", c), func() stopping.Rule {
			return stopping.NewMedian(stopping.Median{Grace: c.Grace, Others: c.Others})
		}), nil
	})
}

// Validate refuses a list without metrics, metrics without a goal.
func (c *MedianConfig) Validate() error { return checkMetrics(c.Metrics, c.Goal).Err() }
