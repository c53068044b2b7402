package study

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
)

// Metrics that two runs of the same jobs have together, and neither has alone.
const (
	CommonMean     = "jct_seconds.common_mean"     // over the jobs that completed in both
	RestrictedMean = "jct_seconds.restricted_mean" // over all jobs, each up to a horizon
)

// PairMetrics lists them.
var PairMetrics = []string{CommonMean, RestrictedMean}

func ofPair(metric string) bool { return slices.Contains(PairMetrics, metric) }

// Ended is a run that is over: its summary and its jobs, nil where they are not known.
type Ended struct {
	Summary *metrics.Summary // content of summary.json of the run
	Jobs    []metrics.Job    // jobs of the run
}

// Ends says how the same jobs ended in two runs, the baseline first.
type Ends struct {
	Known bool              // the runs are of the same jobs, which are known; otherwise only Left is set
	Both  [][2]*metrics.Job // jobs that completed in both runs, as they were given
	Only  [2][]string       // names of the jobs that completed in one run only
	Left  [2]int            // jobs of each run that did not complete

	means      [2]float64
	restricted [2]float64
}

// pairOf is what stays of a pair of runs when its rows have been looked at.
type pairOf struct {
	same   bool
	values map[string][2]float64 // of PairMetrics: baseline, other
}

// pair drops the rows.
func (e *Ends) pair() pairOf {
	p := pairOf{same: e.Same(), values: map[string][2]float64{}}
	for _, metric := range PairMetrics {
		baseline, other := e.Value(metric)
		p.values[metric] = [2]float64{baseline, other}
	}
	return p
}

const completed = "completed" // outcome of a job

// NewEnds looks at the jobs that two runs measure.
func NewEnds(baseline, other Ended) *Ends {
	runs := [2]Ended{baseline, other}
	e := &Ends{restricted: [2]float64{nan, nan}}
	for i, r := range runs {
		e.Left[i] = r.Summary.Jobs.Submitted - r.Summary.Jobs.Completed
		e.means[i] = float64(r.Summary.JCTSeconds.Mean)
	}
	if len(baseline.Jobs) == 0 || !SameJobs(baseline.Jobs, other.Jobs) {
		return e
	}
	e.Known = true
	window := metrics.AllJobs
	if w := baseline.Summary.Measured; w != nil {
		window = *w
	}
	var rows [2][]*metrics.Job
	for i := range baseline.Jobs {
		a, b := &baseline.Jobs[i], &other.Jobs[i]
		if !window.Holds(a.ID) {
			continue
		}
		rows[0], rows[1] = append(rows[0], a), append(rows[1], b)
		switch inBaseline, inOther := a.Outcome == completed, b.Outcome == completed; {
		case inBaseline && inOther:
			e.Both = append(e.Both, [2]*metrics.Job{a, b})
		case inBaseline:
			e.Only[0] = append(e.Only[0], a.Name)
		case inOther:
			e.Only[1] = append(e.Only[1], b.Name)
		}
	}
	e.restrict(runs, rows)
	return e
}

// restrict computes the restricted means up to the longest time that a job was watched in both runs. A job that failed, was rejected
// or cancelled never completes; one that is unfinished was watched until the end of the run.
func (e *Ends) restrict(runs [2]Ended, rows [2][]*metrics.Job) {
	if e.Left == [2]int{} {
		return
	}
	var times [2][]float64
	var ended [2][]bool
	horizon := math.Inf(1)
	for side := range runs {
		end := runs[side].end()
		longest := math.Inf(-1)
		for i := range rows[side] {
			j := rows[side][i]
			t := math.Inf(1)
			switch j.Outcome {
			case completed:
				t = float64(j.JCTSeconds)
			case "unfinished":
				t = math.Max(end-j.SubmitSeconds, 0)
			}
			times[side], ended[side] = append(times[side], t), append(ended[side], j.Outcome == completed)
			if !math.IsInf(t, 0) {
				longest = math.Max(longest, t)
			}
		}
		horizon = math.Min(horizon, longest)
	}
	for side := range times {
		e.restricted[side] = stats.RestrictedMean(times[side], ended[side], horizon)
	}
}

// end is the moment until which the run was watched: its makespan counts from the first submission.
func (r *Ended) end() float64 {
	first, last := math.Inf(1), 0.0
	for i := range r.Jobs {
		j := &r.Jobs[i]
		first = math.Min(first, j.SubmitSeconds)
		if j.FinishSeconds.Known() {
			last = math.Max(last, float64(j.FinishSeconds))
		}
	}
	if span := r.Summary.MakespanSeconds; span.Known() {
		last = math.Max(last, first+float64(span))
	}
	return last
}

// Same reports whether the same jobs completed in both runs. Where jobs are not known, that is so if all of them did.
func (e *Ends) Same() bool {
	if !e.Known {
		return e.Left == [2]int{}
	}
	return len(e.Only[0])+len(e.Only[1]) == 0
}

// Times are the completion times of the jobs that completed in both runs.
func (e *Ends) Times() (baseline, other []float64) {
	for i := range e.Both {
		baseline, other = append(baseline, float64(e.Both[i][0].JCTSeconds)), append(other, float64(e.Both[i][1].JCTSeconds))
	}
	return baseline, other
}

// Value is one of PairMetrics in both runs; NaN where it is not known.
func (e *Ends) Value(metric string) (baseline, other float64) {
	if metric == RestrictedMean {
		if e.Known && e.Left == [2]int{} {
			return e.means[0], e.means[1]
		}
		return e.restricted[0], e.restricted[1]
	}
	a, b := e.Times()
	if len(a) == 0 {
		return nan, nan
	}
	return stat.Mean(a, nil), stat.Mean(b, nil)
}
