package advise

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/lab/study"
)

// conclude completes the advice with the config.
func (a *adviser) conclude() error {
	ad := a.advice
	chosen := a.chosen()
	if chosen < 0 {
		return fmt.Errorf("every finalist failed on held-out windows: %w", a.allFailed())
	}
	if len(ad.Candidates) > 1 && len(ad.Finalists) > 1 {
		equal := true
		for i := range ad.Finalists {
			equal = equal && ad.Finalists[i].HeldOut.Equal
		}
		if equal {
			a.note("the finalists are equal in every held-out window: this trace does not separate them on this cluster")
		}
	}
	item := &a.Candidates[chosen]
	c, err := a.load(item.Files, append(slices.Clip(item.Set), study.Setting{Path: "sample.window", Value: settings{}, At: core.Position{File: "advise"}}))
	if err != nil {
		return err
	}
	c.Name, c.Seed = a.Name, a.Seed
	text, err := c.Resolved()
	if err != nil {
		return err
	}
	ad.Config = append([]byte(ad.comments()), text...)
	return nil
}

// comments are the evidence in short.
func (a *Advice) comments() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
	}
	line("Chosen by quartet advise: %s, for the least %s.", a.Chosen, a.Goal.Metric)
	line("Why: %s.", a.Why)
	for _, text := range a.Evidence() {
		line("%s.", text)
	}
	for _, note := range a.Notes {
		line("Note: %s.", note)
	}
	return b.String()
}

// Evidence is what the advice rests on, in sentences.
func (a *Advice) Evidence() []string {
	list := []string{fmt.Sprintf("%d candidates on %d windows of %d jobs to choose on; finalists on as many held-out windows: %d runs of %d of the full grid", len(a.Candidates), a.Windows, a.Jobs, a.Runs, a.Grid)}
	if len(a.Finalists) > 1 {
		list = append(list, "Regret on held-out windows: "+a.RegretText())
	}
	if len(a.NoDifference) > 0 {
		list = append(list, "No difference is shown there to "+strings.Join(a.NoDifference, ", "))
	}
	for _, l := range a.Limits {
		held := "Limit kept"
		if !l.Held {
			held = "LIMIT NOT KEPT"
		}
		list = append(list, fmt.Sprintf("%s: %s in %d of %d windows for choosing and %d of %d held-out windows; the worst is %.4g", held, l.Limit, l.Choosing, a.Windows, l.HeldOut, a.Windows, float64(l.Worst)))
	}
	return append(list, "Policies knew the work of a job from the source "+a.Declared.String())
}

// String words where the declared work came from, and why.
func (t DeclaredWork) String() string {
	source := t.Source
	if t.Source == workload.EstimateNoisy {
		source += fmt.Sprintf(", sigma %g", t.Sigma)
	}
	return source + ": " + t.Why
}

// RegretText words the regret.
func (a *Advice) RegretText() string {
	switch {
	case len(a.Finalists) == 1:
		return "none: there is no other finalist"
	case a.Best == a.Chosen:
		return fmt.Sprintf("none, the best of %d finalists there", len(a.Finalists))
	}
	return fmt.Sprintf("%s against %s, the best of %d finalists there", a.Regret.Text(), a.Best, len(a.Finalists))
}

// Text is a change with its interval.
func (c *Comparison) Text() string {
	switch {
	case c.Equal:
		return "equal"
	case !c.Change.Known():
		return "not comparable"
	}
	percent := func(x float64) string { return fmt.Sprintf("%+.2f %%", 100*x) }
	text := percent(float64(c.Change))
	if c.Low.Known() && !math.IsInf(float64(c.High), 0) {
		text += " [" + percent(float64(c.Low)) + " to " + percent(float64(c.High)) + "]"
	}
	return text
}

// reasonOf is an error on one line, without positions.
func reasonOf(err error) string {
	if ds, ok := errors.AsType[core.Diagnostics](err); ok && len(ds) > 0 {
		return ds[0].Summary
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
