package stats

import (
	"math"
	"slices"
)

// A Step is a moment at which jobs ended, and what holds from then on.
type Step struct {
	At       float64 // seconds, or whatever the times are in
	AtRisk   int     // jobs known to last until then
	Ended    int     // of those, jobs that ended then
	Survival float64 // probability that a job lasts longer
}

// KaplanMeier estimates how long jobs last from the times t at which they ended, or until which they were watched where ended is
// false: unfinished jobs count for as long as they are known. Its steps are in order of time, one for each moment at which a job
// ended; before the first, Survival is 1. A job watched until a moment at which others end was at risk then. Times that are NaN
// are left out; the shorter of t and ended counts. 1 - Survival is the distribution of the times.
//
// Source: Kaplan and Meier, Nonparametric estimation from incomplete observations, JASA 53 (1958).
func KaplanMeier(t []float64, ended []bool) []Step {
	type watched struct {
		until float64
		ended bool
	}
	var jobs []watched
	for i := range min(len(t), len(ended)) {
		if !math.IsNaN(t[i]) {
			jobs = append(jobs, watched{t[i], ended[i]})
		}
	}
	slices.SortFunc(jobs, func(a, b watched) int {
		switch {
		case a.until < b.until:
			return -1
		case a.until > b.until:
			return 1
		}
		return 0
	})
	var steps []Step
	survival := 1.0
	for first := 0; first < len(jobs); {
		s := Step{At: jobs[first].until, AtRisk: len(jobs) - first}
		end := first
		for ; end < len(jobs) && jobs[end].until == s.At; end++ {
			if jobs[end].ended {
				s.Ended++
			}
		}
		if s.Ended > 0 {
			survival *= float64(s.AtRisk-s.Ended) / float64(s.AtRisk)
			s.Survival = survival
			steps = append(steps, s)
		}
		first = end
	}
	return steps
}

// RestrictedMean is the mean of min(time, horizon) by the area under KaplanMeier's curve: a mean that unfinished jobs do not
// bias, and are not dropped from. Where the last jobs are watched to a moment before the horizon the curve stays level from there
// on, which is the most that they may come to. It is NaN without jobs, for times that are negative, and for a horizon that is
// not positive.
//
// Source: Irwin, The standard error of an estimate of expectation of life, Journal of Hygiene 47 (1949).
func RestrictedMean(t []float64, ended []bool, horizon float64) float64 {
	if len(t) == 0 || len(ended) == 0 || !(horizon > 0) || slices.ContainsFunc(t, func(v float64) bool { return !(v >= 0) }) {
		return math.NaN()
	}
	var area, from float64
	survival := 1.0
	for _, s := range KaplanMeier(t, ended) {
		if s.At >= horizon {
			break
		}
		area += survival * (s.At - from)
		from, survival = s.At, s.Survival
	}
	if survival == 0 {
		return area // also below an infinite horizon
	}
	return area + survival*(horizon-from)
}
