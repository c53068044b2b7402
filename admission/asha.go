package admission

import (
	"fmt"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/stopping"
)

// ASHAConfig configures NewASHA.
type ASHAConfig struct {
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
	// Variant says what happens to a trial that is not among the best at its rung: stop ends it, promote lets it wait.
	Variant string `config:"variant" doc:"what becomes of a trial that is not among the best at its rung: stop ends it, promote has it wait until it is" enum:"stop|promote"`
	// Patience is how long an experiment stays quiet before waiting trials are settled by the results so far.
	Patience time.Duration `config:"patience" doc:"how long nothing must happen in an experiment before trials that wait are settled by the results that there are; a search that submits its next trial late needs more" min:"0s"`
}

// The values of ASHAConfig.
const (
	variantStop    = "stop"
	variantPromote = "promote"
)

// NewASHA lets trials go on that are among the best at their rung by what was reported so far, and waits for no straggler.
//
// Source: Li et al., A System for Massively Parallel Hyperparameter Tuning (MLSys'20): ASHA. promote is its algorithm 2: a trial is promoted as soon as it is among the best 1/reduction of its rung, and waits until
// then without devices. stop judges a trial once, when it comes to the rung, by the rule of the reference experiment on tuning (docs/results/tuning.md): as long as fewer than reduction results are there, its own included,
// every trial goes on; then one goes on if fewer than ⌊n/reduction⌋ of the n values there are better than its own, so that equal values go on together. The publication has no such variant; by its rule of promotion nobody
// goes on from a rung to which fewer than reduction came, and those who came first would be ended for that. In the publication a
// free worker takes a promotable trial before a new one; here all that may go on compete for devices under the allocation. When no trial of an experiment can
// report any more as long as others wait, and nothing happened for the time of patience, the best at each rung, at least one, go on and the others are ended. A pinned trial is not held back. O(log n) a report and O(n)
// a decision for n trials.
func NewASHA() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "asha",
		Summary: "ends trials, or has them wait, that are not among the best at their rung so far",
		Description: "Admits every job. A trial that comes to a rung continues if it is among the best there by what was reported so far, one of reduction. With variant: stop any other one is ended at once, and counts as completed; all that come before there are so many continue; " +
			"with promote it gives back its devices and waits, with its checkpoint, until results of others make it one of the best. Jobs without an experiment are let alone, and pinned ones do not wait. It needs a backend whose jobs report: docs/early-stopping.md.",
		Source: "Li et al., ASHA, MLSys'20",
	}, ASHAConfig{Metrics: []string{"loss", "accuracy"}, Goal: goalAuto, First: 1, Reduction: 3, Variant: variantStop, Patience: settlesAfter}, func(c ASHAConfig, _ core.Settings) (core.Admitter, error) {
		return newTrials(c.Metrics, c.Goal, c.Patience, fmt.Sprintf("asha %+v", c), func() stopping.Rule {
			return stopping.NewASHA(ladder(c.First, c.MaxStep, c.Reduction), c.Variant == variantStop)
		}), nil
	})
}

// Validate refuses a list without metrics, metrics without a goal, and rungs that are none.
func (c *ASHAConfig) Validate() error {
	return append(checkMetrics(c.Metrics, c.Goal), checkRungs(c.First, c.MaxStep)...).Err()
}
