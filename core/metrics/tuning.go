package metrics

import (
	"fmt"
	"strings"
)

// Tuning is what a search for hyper-parameters came to.
type Tuning struct {
	Experiment string     `json:"experiment"` // name of the experiment
	Metric     string     `json:"metric"`     // metric that trials are judged by
	Goal       string     `json:"goal"`       // minimize or maximize
	Trials     int        `json:"trials"`     // that were submitted
	Finished   int        `json:"finished"`   // trials that ran to their end
	Stopped    int        `json:"stopped"`    // ended early
	Failed     int        `json:"failed"`     // trials that failed
	Unfinished int        `json:"unfinished"` // trials that had not ended when the run did
	Best       *BestTrial `json:"best"`       // null where none reported
	// Others are metrics that trials reported, by name, where none reported the one they are judged by.
	Others []string `json:"other_metrics,omitempty"`
}

// Unheard says what trials reported that have ended without a word of the metric they are judged by; nothing where some reported that.
func (t *Tuning) Unheard() string {
	switch {
	case t.Best != nil || t.Finished+t.Stopped == 0 && len(t.Others) == 0:
		return ""
	case len(t.Others) == 0:
		return fmt.Sprintf("no trial reported the metric %q, nor any other", t.Metric)
	default:
		return fmt.Sprintf("no trial reported the metric %q; they reported %s", t.Metric, strings.Join(t.Others, ", "))
	}
}

// BestTrial is the trial with the best value, and of those the first.
type BestTrial struct {
	Trial     int          `json:"trial"`      // number of the trial, from 0
	Job       string       `json:"job"`        // name of its job
	Params    []TrialParam `json:"params"`     // hyper-parameters of the trial
	Value     Number       `json:"value"`      // best value of the metric that it reported
	Step      Number       `json:"step"`       // at which it reported that
	AtSeconds Number       `json:"at_seconds"` // and when: the seconds to the best
}

// TrialParam is a hyper-parameter with its value, as a text.
type TrialParam struct {
	Name  string `json:"name"`  // name of the hyper-parameter
	Value string `json:"value"` // its value, as text
}
