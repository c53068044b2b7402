package twin

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

// mostArrivals bounds the jobs that come in a world; leastArrivals may come at least in one that goes on until its jobs have ended. There, no more come than jobs are
// there already: a cluster that has more to do than it can would have no end, and what comes after those is of little account for these.
const (
	mostArrivals  = 2000
	leastArrivals = 50
)

// submissions are the latest ones, in order.
type submissions struct{ list []submission }

// submission is a job as it came.
type submission struct {
	*core.JobSpec
	steps float64 // that policies were told of; NaN for none
}

func (s *submissions) clone() submissions { return submissions{slices.Clone(s.list)} }

func (s *submissions) add(spec *core.JobSpec, steps float64, window int) {
	if spec == nil {
		return
	}
	at := len(s.list)
	for at > 0 && s.list[at-1].SubmitSeconds > spec.SubmitSeconds { // those of jobs that have ended are told first
		at--
	}
	if s.list = slices.Insert(s.list, at, submission{spec, steps}); len(s.list) > window {
		s.list = slices.Delete(s.list, 0, len(s.list)-window)
	}
}

// moment is the submissions of one moment, which come together.
type moment struct{ first, count int }

func (s *submissions) moments() (list []moment) {
	for i, spec := range s.list {
		if i > 0 && spec.SubmitSeconds == s.list[i-1].SubmitSeconds {
			list[len(list)-1].count++
			continue
		}
		list = append(list, moment{i, 1})
	}
	return list
}

// coming are arrivals: for each a submission like which it is, and when, up to a moment or a number. With r, which is nil for what is expected, they come at random,
// as often as those since the first that is remembered did. Expected ones come in the order and at the mean distance of these. The longer nothing came, the fewer are believed in; and none after a single
// moment of submissions.
func (s *submissions) coming(now, until float64, most int, r *rand.Rand) (like []int, at []float64) {
	moments := s.moments()
	gaps := len(moments) - 1
	if gaps < 1 {
		return nil, nil
	}
	mean := s.gap(now, gaps, r)
	if !(mean > 0) || math.IsInf(mean, 1) {
		return nil, nil
	}
	t := now
	for i := 0; len(like) < most; i++ {
		m, gap := moments[(1+i)%len(moments)], mean
		if r != nil {
			m, gap = moments[r.IntN(len(moments))], mean*r.ExpFloat64()
		}
		if t = max(t+gap, math.Nextafter(t, math.Inf(1))); t > until {
			break
		}
		for k := range m.count {
			like, at = append(like, m.first+k), append(at, t)
		}
	}
	return like, at
}

// gap is the mean distance of the moments to come, after so many gaps: that of those, or, where it is silent for longer than they let expect, a longer one, of which nobody knows
// but that nothing came since the last. That arrivals change so is believed, beforehand, as if it had been seen once.
func (s *submissions) gap(now float64, gaps int, r *rand.Rand) float64 {
	first, last, n := s.list[0].SubmitSeconds, s.list[len(s.list)-1].SubmitSeconds, float64(gaps)
	silence := now - last
	same := n * math.Pow((last-first)/(now-first), n) // to 1 that they changed
	usual := (now - first) / n
	if r == nil {
		if same < 1 {
			return max(usual, silence)
		}
		return usual
	}
	sum := 0.0
	for range gaps {
		sum += r.ExpFloat64()
	}
	usual *= n / sum
	if r.Float64()*(same+1) < 1 {
		return max(usual, silence/r.ExpFloat64())
	}
	return usual
}

// arrival is the name of a job that is believed to come. No job that is submitted has a name with a space.
func arrival(i int) string { return "arrival " + strconv.Itoa(i+1) }
