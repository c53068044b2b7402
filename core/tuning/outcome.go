package tuning

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// mostOthers is how many metrics are told where the one that counts was not reported.
const mostOthers = 8

// ObserveRound notes since when trials ran and what they used, and what else they reported.
func (r *Run) ObserveRound(report *core.Report) error {
	for i := range report.Events {
		if e := &report.Events[i]; e.Kind == core.JobReported && e.Metric != r.plan.Metric {
			r.noteOther(e, report)
		}
	}
	r.account(report.Ended, report.View.NowSeconds)
	return nil
}

func (r *Run) noteOther(e *core.Event, report *core.Report) {
	j := report.View.Job(e.Job)
	if at, ended := slices.BinarySearchFunc(report.Ended, e.Job, func(j *core.Job, id core.JobID) int { return cmp.Compare(j.ID, id) }); j == nil && ended {
		j = report.Ended[at]
	}
	if j == nil || j.Experiment != r.Experiment {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if at, known := slices.BinarySearch(r.others, e.Metric); !known && len(r.others) < mostOthers {
		r.others = slices.Insert(r.others, at, e.Metric)
	}
}

// account notes what jobs used up to a moment. It may be called while a search is told what happened.
func (r *Run) account(jobs []*core.Job, now float64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, j := range jobs {
		if j.Experiment == r.Experiment {
			r.used[j.Name] = usage{j.FirstStart, j.AttainedService(now)}
		}
	}
}

// usage is what a job used.
type usage struct{ startedSeconds, deviceSeconds float64 }

// usageOf is that of a job; NaN and 0 for one that never ran.
func (r *Run) usageOf(job string) usage {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if u, known := r.used[job]; known {
		return u
	}
	return usage{startedSeconds: math.NaN()}
}

// Finish takes in what has not ended when the run does.
func (r *Run) Finish(unfinished []*core.Job, endSeconds float64) { r.account(unfinished, endSeconds) }

// Summary is what the search has come to.
func (r *Run) Summary() *metrics.Tuning {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s := &metrics.Tuning{Experiment: r.Experiment, Metric: r.plan.Metric, Goal: r.Goal, Trials: len(r.trials)}
	var best *trial
	for _, t := range r.trials {
		switch t.state {
		case finished:
			s.Finished++
		case stopped:
			s.Stopped++
		case failed:
			s.Failed++
		default:
			s.Unfinished++
		}
		if !math.IsNaN(t.best) && (best == nil || r.goal().Better(t.best, best.best)) {
			best = t
		}
	}
	if best == nil {
		s.Others = slices.Clone(r.others)
	} else {
		s.Best = &metrics.BestTrial{
			Trial: best.ID, Job: best.job, Params: []metrics.TrialParam{}, Value: metrics.Number(best.best), Step: metrics.Number(best.bestStep), AtSeconds: metrics.Number(best.bestAt),
		}
		for _, p := range best.Params {
			s.Best.Params = append(s.Best.Params, metrics.TrialParam{Name: p.Name, Value: p.Value.String()})
		}
	}
	return s
}

// Table is a row for each trial.
func (r *Run) Table() (header []string, rows [][]string) {
	var names []string
	for _, t := range r.trials {
		for _, p := range t.Params {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	header = []string{"trial", "job"}
	for _, name := range names {
		header = append(header, "param."+name)
	}
	header = append(header, "state", "submit_s", "start_s", "end_s", "steps", "best_value", "best_step", "last_value", "device_seconds")
	for _, t := range r.trials {
		row := []string{strconv.Itoa(t.ID), t.job}
		for _, name := range names {
			value := ""
			if v, given := t.Params.Get(name); given {
				value = v.String()
			}
			row = append(row, value)
		}
		row = append(row, states[t.state])
		used := r.usageOf(t.job)
		for _, x := range [...]float64{t.submitted, used.startedSeconds, t.ended, t.step, t.best, t.bestStep, t.last, used.deviceSeconds} {
			row = append(row, number(x))
		}
		rows = append(rows, row)
	}
	return header, rows
}

// number writes a number; nothing for one that is not known.
func number(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}
