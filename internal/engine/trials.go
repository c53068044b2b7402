package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// ofTrials are the admissions that judge the trials of experiments, and let all other jobs alone.
var ofTrials = []string{"asha", "hyperband", "median", "successive_halving"}

// noteTrials says that an admission judges nobody: as no job is a trial, or as trials are judged by a metric that it does not look at.
func (c *Composition) noteTrials(w *workload.Workload) {
	if c.Workload.Factory.Type == "tuning" {
		search := core.Encode(c.Workload.Config)
		metric, _ := search["metric"].(string)
		goal, _ := search["goal"].(string)
		c.noteMetrics(metric, goal)
	}
	if w.Open || w.React != nil || slices.ContainsFunc(w.Jobs, func(j workload.Job) bool { return j.Spec.Experiment != "" }) {
		return
	}
	for _, a := range c.Admission {
		if slices.Contains(ofTrials, a.Factory.Type) {
			c.note(fmt.Sprintf("%q judges no job: none of %d jobs is a trial of an experiment", a.ID, len(w.Jobs)))
		}
	}
}

// noteMetrics says that an admission judges trials by other metrics than their search does, or takes for better what is worse to that.
func (c *Composition) noteMetrics(metric, goal string) {
	for _, a := range c.Admission {
		if !slices.Contains(ofTrials, a.Factory.Type) {
			continue
		}
		settings := core.Encode(a.Config)
		by, _ := settings["metrics"].([]any)
		if !slices.Contains(by, any(metric)) {
			c.note(fmt.Sprintf("%q judges trials by %s, and not by the metric %q of the search", a.ID, named(by), metric))
			continue
		}
		wanted, _ := settings["goal"].(string)
		if its := admission.Goal(wanted, metric); its != goal {
			c.note(fmt.Sprintf("%q judges trials differently from the search: it should %s %q, and the search should %s it; set the goal of both", a.ID, its, metric, goal))
		}
	}
}

// named is a list of names as a text.
func named(list []any) string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = fmt.Sprint(list[i])
	}
	return strings.Join(texts, ", ")
}
