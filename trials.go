package quartet

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core/workload"
)

// ofTrials are the admissions that judge the trials of experiments, and let all other jobs alone.
var ofTrials = []string{"asha", "hyperband", "median", "successive_halving"}

// noteTrials says that an admission judges nobody, as no job is a trial.
func (c *Composition) noteTrials(w *workload.Workload) {
	if w.Open || w.React != nil || slices.ContainsFunc(w.Jobs, func(j workload.Job) bool { return j.Spec.Experiment != "" }) {
		return
	}
	for _, a := range c.Admission {
		if slices.Contains(ofTrials, a.Factory.Type) {
			c.note(fmt.Sprintf("%q judges nobody: none of %d jobs is a trial of an experiment", a.ID, len(w.Jobs)))
		}
	}
}
