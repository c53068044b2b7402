package gpufraction

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// attainment is what a job had of what it requested, over time: a second with all of it is a second, one with half of it half a second.
type attainment struct {
	spans          []span  // from the last that began before the window; the last one goes on
	asOf, attained float64 // of the job, as last seen: when what it holds last changed, and its device-seconds until then
	held           int     // what it holds since
	known          bool
	behind         bool // it fell behind its guarantee and has not made up for it
}

// span is a time of one rate, up to the next.
type span struct {
	From   float64
	Rate   float64 // seconds a second, 0 to 1
	Before float64 // seconds up to From
}

func (s span) until(t float64) float64 { return s.Before + s.Rate*(t-s.From) }

// partOf is the rate of a job that holds so many devices.
func partOf(held float64, demand int) float64 { return min(held/float64(demand), 1) }

// see takes in what a job had up to now. What it holds changes between two rounds only where it loses devices; what it had before
// that follows from its device-seconds, of which a replica has its part, and so does what it had before it was first seen.
func (a *attainment) see(j *core.Job, demand int, now, window float64) {
	from := now
	if !a.known {
		*a = attainment{known: true, behind: true, asOf: j.SubmitSeconds, spans: []span{{From: j.SubmitSeconds}}}
		from = j.SubmitSeconds
	}
	at := j.AsOfSeconds
	if at > a.asOf {
		const fine = 1e6 // a mean of whole numbers is one, whatever the rounding
		held := float64(a.held)
		if part := j.Part(); part > 0 { // one that takes nothing of its devices attains nothing
			held = math.Round((j.Attained-a.attained)/part/(at-a.asOf)*fine) / fine
		}
		a.have(a.asOf, partOf(held, demand))
		a.asOf, a.attained, from = at, j.Attained, at
	} else if j.Held != a.held {
		from = at
	}
	a.held = j.Held
	a.have(from, partOf(float64(j.Held), demand))
	over := 0
	for over+1 < len(a.spans) && a.spans[over+1].From <= now-window {
		over++
	}
	a.spans = slices.Delete(a.spans, 0, over)
}

// have sets the rate from a moment on, which is not before that of the last span.
func (a *attainment) have(from, rate float64) {
	last := &a.spans[len(a.spans)-1]
	switch {
	case from <= last.From:
		last.Rate = rate
	case rate != last.Rate:
		a.spans = append(a.spans, span{From: from, Rate: rate, Before: last.until(from)})
	}
}

// surplus is the seconds that the job had in the window, less those that it is guaranteed of it, or of its life.
func (a *attainment) surplus(now, window, guaranteed float64) float64 {
	first, last := a.spans[0], a.spans[len(a.spans)-1]
	begin := max(now-window, first.From)
	return last.until(now) - first.until(begin) - guaranteed*(now-begin)
}

// slide is how the window goes on for a job: from a surplus now, with a rate that stays.
type slide struct {
	window, guaranteed float64
	now, surplus, rate float64
}

// rises is the first moment at which the surplus is at least at a level; +Inf for never.
func (a *attainment) rises(s slide, level float64) float64 {
	return a.reaches(s, func(from, slope float64) float64 {
		switch {
		case from >= level:
			return 0
		case slope <= 0:
			return math.Inf(1)
		}
		return (level - from) / slope
	})
}

// falls is the first moment from which the surplus may be below a level; +Inf for never.
func (a *attainment) falls(s slide, level float64) float64 {
	return a.reaches(s, func(from, slope float64) float64 {
		switch {
		case slope >= 0:
			return math.Inf(1)
		case from <= level:
			return 0
		}
		return (level - from) / slope
	})
}

// reaches goes through the times in which the surplus changes evenly, as spans leave the window, and asks after how many seconds of
// each it is where it is to be.
func (a *attainment) reaches(s slide, after func(from, slope float64) float64) float64 {
	t, surplus := s.now, s.surplus
	next := 0 // the span that is to be the first of the window
	for next < len(a.spans) && a.spans[next].From+s.window <= t {
		next++
	}
	for ; ; next++ {
		lost, until := s.guaranteed, s.now+s.window // a young job loses nothing, and is guaranteed more
		if next > 0 {
			lost = a.spans[next-1].Rate
		}
		if next < len(a.spans) {
			until = a.spans[next].From + s.window
		}
		slope := s.rate - lost
		if seconds := after(surplus, slope); t+seconds <= until {
			return t + seconds
		}
		if next == len(a.spans) {
			return math.Inf(1) // from then on it had nothing but this rate
		}
		surplus += slope * (until - t)
		t = until
	}
}
