package quartet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// ofTrials are the admissions that judge the trials of experiments, and let all other jobs alone.
var ofTrials = []string{"asha", "hyperband", "median", "successive_halving"}

// noteTrials says that an admission judges nobody: as no job is a trial, or as trials are judged by a metric that it does not look at.
func (c *Composition) noteTrials(w *workload.Workload) {
	if c.Workload.Factory.Type == "tuning" {
		metric, _ := core.Encode(c.Workload.Config)["metric"].(string)
		c.noteMetrics(metric)
	}
	if w.Open || w.React != nil || slices.ContainsFunc(w.Jobs, func(j workload.Job) bool { return j.Spec.Experiment != "" }) {
		return
	}
	for _, a := range c.Admission {
		if slices.Contains(ofTrials, a.Factory.Type) {
			c.note(fmt.Sprintf("%q judges nobody: none of %d jobs is a trial of an experiment", a.ID, len(w.Jobs)))
		}
	}
}

// noteMetrics says that an admission judges trials by other metrics than their search does.
func (c *Composition) noteMetrics(metric string) {
	for _, a := range c.Admission {
		if !slices.Contains(ofTrials, a.Factory.Type) {
			continue
		}
		if by, _ := core.Encode(a.Config)["metrics"].([]any); !slices.Contains(by, any(metric)) {
			c.note(fmt.Sprintf("%q judges trials by %s, and not by the metric %q of the search", a.ID, named(by), metric))
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
