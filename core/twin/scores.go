package twin

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// scale is how the scores of one kind of moment were.
type scale struct {
	scores   []score // of forecasts that were made since a moment
	since    float64
	resolved int
	inside   int
	rank     float64 // of the scores that bands reach to
}

// adaption is by how much the rank follows a band that held, or did not; within leastRank and mostRank.
const (
	adaption            = 0.01
	leastRank, mostRank = 0.5, 0.97
)

// score is how a forecast was.
type score struct {
	at     float64 // when it was made
	job    core.JobID
	value  float64
	known  bool    // the value: draws without a median have none
	error  float64 // of the median that was shown, over the time that it took
	weight int
}

// open are forecasts that are not resolved at a moment.
type open struct {
	now  float64
	list []*shown
}

func (o *open) add(list []shown) {
	for i := range list {
		o.list = append(o.list, &list[i])
	}
}

// resolve judges forecasts of a job by what happened.
func (s *scale) resolve(job core.JobID, list []shown, seconds float64) {
	for i := range list {
		f := &list[i]
		s.resolved += f.weight
		held := f.band.Holds(seconds)
		if held {
			s.inside += f.weight
		}
		s.adapt(held, f.weight)
		if f.at < s.since {
			continue
		}
		value, known := f.score(seconds)
		s.scores = append(s.scores, score{f.at, job, value, known, math.Abs(f.band.Median-seconds) / f.ahead(seconds), f.weight})
	}
	if len(s.scores) > 2*mostScores {
		s.forget()
	}
}

// adapt has bands reach less far after one that held, and farther after one that did not.
func (s *scale) adapt(held bool, weight int) {
	off := BandRatio
	if held {
		off--
	}
	s.rank = min(max(s.rank+adaption*float64(weight)*off, leastRank), mostRank)
}

// forget drops the scores of the forecasts that were made first.
func (s *scale) forget() {
	slices.SortStableFunc(s.scores, func(a, b score) int { return cmp.Compare(a.at, b.at) })
	s.scores = slices.Delete(s.scores, 0, len(s.scores)-mostScores)
	s.since = s.scores[0].at
}

// jobs is how many jobs the scores are of.
func (s *scale) jobs() int {
	known := map[core.JobID]bool{}
	for i := range s.scores {
		known[s.scores[i].job] = true
	}
	return len(known)
}

// coverage is the coverage as of now.
func (s *scale) coverage(o open) Coverage {
	c := Coverage{Resolved: s.resolved, Inside: s.inside, ErrorRatio: math.NaN()}
	for _, f := range o.list {
		if o.now > f.band.High {
			c.Resolved += f.weight
		}
	}
	errors := make([]weighted, len(s.scores))
	for i := range s.scores {
		errors[i] = weighted{s.scores[i].error, float64(s.scores[i].weight), true}
	}
	if len(errors) > 0 {
		c.ErrorRatio = survived(errors, 0.5)[0]
	}
	return c
}

// reach is how far the scores, and the prior that the draws are right, have bands reach. The prior is scores at even distances, BandRatio of which lie within
// priorReach, and counts as much as priorJobs jobs do. The median stays that of the draws. O(n log n) of the scores and the open forecasts.
func (s *scale) reach(o open) float64 {
	all := make([]weighted, 0, len(s.scores)+len(o.list)+priorJobs)
	total, jobs := 0.0, s.jobs()
	for i := range s.scores {
		if c := &s.scores[i]; c.known {
			all = append(all, weighted{math.Abs(c.value), float64(c.weight), true})
			total += float64(c.weight)
		}
	}
	each := 1.0
	if jobs > 0 && total > 0 {
		each = total / float64(jobs)
	}
	for i := range priorJobs {
		all = append(all, weighted{priorReach * (float64(i) + 0.5) / priorJobs / BandRatio, each, true})
	}
	for _, f := range o.list {
		if f.at < s.since {
			continue
		}
		if value, known := f.score(o.now); known {
			all = append(all, weighted{max(value, 0), float64(f.weight), false})
		}
	}
	return survived(all, s.rank)[0]
}

// weighted is a value with a weight. Of one that is not final it is known that it will be more.
type weighted struct {
	value, weight float64
	final         bool
}

// survived are quantiles of values, of which some are not final (the product-limit estimate of Kaplan and Meier, with weights); for one that no final value reaches it
// is the largest of all. The ranks of the quantiles ascend. It sorts the values. O(n log n).
func survived(values []weighted, ranks ...float64) []float64 {
	slices.SortFunc(values, func(a, b weighted) int {
		switch {
		case a.value != b.value:
			return cmp.Compare(a.value, b.value)
		case a.final == b.final:
			return cmp.Compare(a.weight, b.weight)
		case a.final:
			return -1
		}
		return 1
	})
	risk := 0.0
	for i := range values {
		risk += values[i].weight
	}
	found := make([]float64, 0, len(ranks))
	alive := 1.0
	for i := range values {
		v := &values[i]
		if v.final {
			alive *= 1 - min(v.weight/risk, 1)
		}
		risk -= v.weight
		for v.final && len(found) < len(ranks) && 1-alive >= ranks[len(found)]-1e-9 {
			found = append(found, v.value)
		}
	}
	for len(found) < len(ranks) {
		found = append(found, values[len(values)-1].value)
	}
	return found
}
