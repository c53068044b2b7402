package admission

import (
	"fmt"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/stopping"
)

// SuccessiveHalvingConfig configures NewSuccessiveHalving.
type SuccessiveHalvingConfig struct {
	// Metrics are names of metrics; the first that is reported is the one that counts.
	Metrics []string `config:"metrics" doc:"an experiment is judged by the first of these that its trials report"`
	// Goal says whether lower or higher values are better; auto decides by the name of the metric.
	Goal string `config:"goal" doc:"which values are better; auto knows metrics with a word such as loss, error, accuracy or score in their names" enum:"auto|minimize|maximize"`
	// First is the step of the first rung.
	First float64 `config:"first" doc:"step of the first rung; each further one is at reduction times the step" min:"0"`
	// Reduction is how many trials at a rung there are for each that continues.
	Reduction int `config:"reduction" doc:"of the trials at a rung one of so many continues" min:"2" max:"1000"`
	// MaxStep is the last step of a trial; there is no rung from there on. 0 when unknown.
	MaxStep float64 `config:"max_step" doc:"step that trials come to at most: there is no rung from there on; 0 for not known" min:"0"`
	// Trials is the size of a cohort where a search submits trials one by one; 0 for those that are there first.
	Trials int `config:"trials" doc:"how many trials a cohort has, where a search submits them one after the other; 0 for those that are there before the first rung is decided" min:"0" max:"1000000"`
	// Patience is how long an experiment stays quiet before waiting trials are settled by the results so far.
	Patience time.Duration `config:"patience" doc:"how long nothing must happen in an experiment before trials that wait are settled by the results that there are; a search that submits its next trial late needs more" min:"0s"`
}

// NewSuccessiveHalving has trials wait at rungs, without devices, until each of their cohort has come there, and lets the best go on.
//
// Source: Karnin et al. (ICML'13) and Jamieson and Talwalkar (AISTATS'16), with rungs as in Hyperband (JMLR 18, 2018). Trials that ended are not waited for; those that failed or were cancelled
// hold no place. When no trial of an experiment can report any more as long as others wait, it is decided with the results that there are, after nothing happened
// for the time of patience, so that a search can submit more. A pinned trial is not held back. O(n) a report for a cohort of n.
func NewSuccessiveHalving() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "successive_halving",
		Summary: "has trials wait at rungs for the others of their experiment, and ends all but the best",
		Description: "Admits every job. A trial that comes to a rung gives back its devices and waits, with its checkpoint, until each of its cohort has come there or ended. Then the best of them, one of reduction, continue, and the others are ended and count as completed. " +
			"When no trial is left that could report, and nothing happened for the time of patience, it is decided with what there is. Jobs without an experiment are let alone, and pinned ones do not wait. It needs a backend whose jobs report: docs/early-stopping.md.",
		Source: "Jamieson and Talwalkar, AISTATS'16",
	}, SuccessiveHalvingConfig{Metrics: []string{"loss", "accuracy"}, Goal: goalAuto, First: 1, Reduction: 3, Patience: settlesAfter}, func(c SuccessiveHalvingConfig, _ core.Settings) (core.Admitter, error) {
		return newTrials(c.Metrics, c.Goal, c.Patience, fmt.Sprintf("successive_halving %+v", c), func() stopping.Rule {
			return stopping.NewSuccessiveHalving(ladder(c.First, c.MaxStep, c.Reduction), c.Trials)
		}), nil
	})
}

// Validate refuses a list without metrics, metrics without a goal, and rungs that are none.
func (c *SuccessiveHalvingConfig) Validate() error {
	return append(checkMetrics(c.Metrics, c.Goal), checkRungs(c.First, c.MaxStep)...).Err()
}
