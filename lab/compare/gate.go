package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/lab/study"
)

// Threshold is how much worse a metric may become.
type Threshold struct {
	Metric string  // metric, by path
	Limit  float64 // largest change for the worse that passes
	Part   bool    // of the base; otherwise in the unit of the metric
	Text   string  // as it was given
}

// ParseThreshold reads METRIC=2%, METRIC=0.5 in the unit of the metric, or METRIC=30s for one in seconds.
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{Text: text}
	name, limit, ok := strings.Cut(text, "=")
	if !ok {
		return t, fmt.Errorf("%q is not of the form METRIC=LIMIT, such as jct_seconds.mean=2%%", text)
	}
	t.Metric, limit = strings.TrimSpace(name), strings.TrimSpace(limit)
	if !slices.Contains(Metrics(), t.Metric) {
		return t, fmt.Errorf("unknown metric %q; %s", t.Metric, core.SuggestHint(t.Metric, "metrics", judgeable()))
	}
	if sense(t.Metric) == 0 {
		return t, fmt.Errorf("%q: more of it is neither better nor worse; valid metrics: %s", t.Metric, strings.Join(judgeable(), ", "))
	}
	number, part := strings.CutSuffix(limit, "%")
	var err error
	t.Part = part
	if t.Limit, err = strconv.ParseFloat(strings.TrimSpace(number), 64); err != nil && !part && strings.Contains(t.Metric, "_seconds") {
		var d time.Duration
		d, err = time.ParseDuration(limit)
		t.Limit = d.Seconds()
	}
	if err != nil || math.IsNaN(t.Limit) || math.IsInf(t.Limit, 0) || t.Limit < 0 {
		return t, fmt.Errorf("%q: %q is no limit; write a part of the base such as 2%%, or an amount of at least 0 in the unit of the metric", text, limit)
	}
	if part {
		t.Limit /= 100
	}
	return t, nil
}

// judgeable lists the metrics of which more is better or worse.
func judgeable() []string {
	return slices.DeleteFunc(Metrics(), func(name string) bool { return sense(name) == 0 })
}

func sense(metric string) int { return metrics.Sense(metric) }

// Verdict is what a threshold comes to on one row.
type Verdict struct {
	Threshold
	Row    *Row    // row that was checked; nil where there is none
	Worse  float64 // by how much, in the terms of the threshold; negative for better
	Failed bool    // the change is above the threshold
	Why    string  // it failed, or did not although the change is above
}

// Judge holds the headline rows to thresholds. A change fails that is above its threshold, unless its interval holds 0 or it is not
// shown among several comparisons; strict judges by the change alone. What cannot be judged is an error, a core.Diagnostics, or
// fails: it never passes.
func (r *Result) Judge(thresholds []Threshold, strict bool) ([]Verdict, error) {
	if len(thresholds) == 0 {
		return nil, nil
	}
	var found core.Diagnostics
	for _, s := range r.sides() {
		for _, run := range s.Runs {
			if run.Interrupted {
				found = append(found, core.Diagnostic{Position: core.Position{File: clean(run.Label)}, Summary: "the run was interrupted: it cannot be judged", Hint: "let it run to its end"})
			}
		}
	}
	var list []Verdict
	for _, t := range thresholds {
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Metric != t.Metric || !row.Headline {
				continue
			}
			if len(row.Missing) > 0 {
				found = append(found, core.Diagnostic{Position: core.Position{File: clean(row.Missing[0])}, Summary: t.Metric + " is not known, and cannot be judged"})
				continue
			}
			list = append(list, row.judge(t, strict))
		}
	}
	return list, found.Err()
}

func (r *Result) sides() []*Side {
	list := []*Side{r.Base}
	for i := range r.Others {
		list = append(list, r.Others[i].Side)
	}
	return list
}

// aboutCompleted are metrics that leave out jobs which did not complete, or count them in part.
var aboutCompleted = []string{"jct_seconds.", "queueing_seconds.", "makespan_seconds", "fairness."}

func (r *Row) judge(t Threshold, strict bool) Verdict {
	v := Verdict{Threshold: t, Row: r}
	if v.Worse = -float64(sense(t.Metric)) * r.amount(t.Part); v.Worse == 0 {
		v.Worse = 0 // without a sign
	}
	left := func(prefix string) bool { return strings.HasPrefix(t.Metric, prefix) }
	switch {
	case !slices.Contains(study.PairMetrics, t.Metric) && slices.ContainsFunc(aboutCompleted, left) &&
		slices.ContainsFunc(r.judged, func(p *pair) bool { return !p.jobEnds().Same() }):
		v.Failed, v.Why = true, "other jobs completed, so that it cannot be judged: judge "+study.RestrictedMean+" or "+study.CommonMean
	case !(v.Worse > t.Limit):
	case !strict && r.Why == HoldsZero:
		v.Why = "above, but its interval holds 0"
	case !strict && r.Why == Corrected:
		v.Why = "above, but may be chance among so many comparisons"
	default:
		v.Failed, v.Why = true, "above"
	}
	return v
}

// amount is the change as a part of the base, or in the unit of the metric.
func (r *Row) amount(part bool) float64 {
	switch {
	case !part:
		return r.Other - r.Base
	case !r.Difference:
		return r.Change
	case r.Other == r.Base:
		return 0
	case r.Base == 0:
		return math.Copysign(math.Inf(1), r.Other)
	default:
		return r.Other/r.Base - 1
	}
}
