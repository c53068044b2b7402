package admission

import (
	"fmt"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/stopping"
)

// HyperbandConfig configures NewHyperband.
type HyperbandConfig struct {
	// Metrics are names of metrics; the first that is reported is the one that counts.
	Metrics []string `config:"metrics" doc:"an experiment is judged by the first of these that its trials report"`
	// Goal says whether lower or higher values are better; auto decides by the name of the metric.
	Goal string `config:"goal" doc:"which values are better; auto knows metrics with a word such as loss, error, accuracy or score in their names" enum:"auto|minimize|maximize"`
	// First is the earliest step at which there is a rung.
	First float64 `config:"first" doc:"no rung is at an earlier step" min:"0"`
	// Reduction is how many trials at a rung there are for each that continues, and the ratio of steps from rung to rung.
	Reduction int `config:"reduction" doc:"of the trials at a rung one of so many continues, and the next rung is at so many times the step" min:"2" max:"1000"`
	// MaxStep is the step that the best trials come to.
	MaxStep float64 `config:"max_step" doc:"step that the best trials come to" min:"0"`
	// Patience is how long an experiment stays quiet before waiting trials are settled by the results so far.
	Patience time.Duration `config:"patience" doc:"how long nothing must happen in an experiment before trials that wait are settled by the results that there are; a search that submits its next trial late needs more" min:"0s"`
}

// NewHyperband divides the trials of an experiment into brackets of successive halving, which differ in how early they judge.
//
// Source: Li et al., Hyperband (JMLR 18, 2018), algorithm 1: s_max = ⌊log_η(R/r)⌋, and bracket s, from s_max down to 0, has ⌈(s_max+1)/(s+1) η^s⌉ trials with the first rung at R η^-s. Trials fill the
// brackets in the order of their jobs, and the brackets begin anew when all are full. The publication runs one bracket after the other; here all that are there compete for devices.
// Trials that ended are not waited for, and a bracket that does not fill up is decided with the results that there are once nobody is left who could
// report, and nothing happened for the time of patience. A pinned trial is not held back. O(n) a report for a bracket of n.
func NewHyperband() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "hyperband",
		Summary: "divides trials into brackets of successive halving that judge sooner or later",
		Description: "Admits every job. Trials of an experiment fill brackets in their order: the first has many trials and judges them early, at max_step divided by a power of reduction, the last one lets few run through. In a bracket a trial that comes to a rung gives back its devices and waits, with its checkpoint, until each has come there or ended; " +
			"then the best, one of reduction, continue, and the others are ended and count as completed. When no trial is left that could report, and nothing happened for the time of patience, it is decided with what there is. Jobs without an experiment are let alone, and pinned ones do not wait. It needs a backend whose jobs report: docs/early-stopping.md.",
		Source: "Li et al., Hyperband, JMLR 18, 2018",
	}, HyperbandConfig{Metrics: []string{"loss", "accuracy"}, Goal: goalAuto, First: 1, Reduction: 3, MaxStep: 81, Patience: settlesAfter}, func(c HyperbandConfig, _ core.Settings) (core.Admitter, error) {
		return newTrials(c.Metrics, c.Goal, c.Patience, fmt.Sprintf("hyperband %+v", c), func() stopping.Rule {
			return stopping.NewHyperband(ladder(c.First, c.MaxStep, c.Reduction))
		}), nil
	})
}

// Validate refuses a list without metrics, metrics without a goal, and rungs that are none.
func (c *HyperbandConfig) Validate() error {
	problems := append(checkMetrics(c.Metrics, c.Goal), checkRungs(c.First, c.MaxStep)...)
	if c.MaxStep == 0 {
		problems = append(problems, core.Diagnostic{Path: "max_step", Summary: "is 0, and the brackets follow from it", Hint: "set it to the step that trials come to, such as 81"})
	}
	return problems.Err()
}
