package matching

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// events counts the jobs that come and end, to tell how long an assignment lasts.
type events struct {
	begun  bool
	first  float64 // moment of the first round
	now    float64
	count  int
	before []core.JobID
}

// observe takes in who is there now.
func (e *events) observe(now float64, candidates []core.Candidate) {
	if !e.begun {
		e.begun, e.first = true, now
	}
	e.now = now
	at := 0
	for i := range candidates {
		for at < len(e.before) && e.before[at] < candidates[i].ID {
			e.count, at = e.count+1, at+1
		}
		if at < len(e.before) && e.before[at] == candidates[i].ID {
			at++
		} else {
			e.count++
		}
	}
	e.count += len(e.before) - at
	e.before = e.before[:0]
	for i := range candidates {
		e.before = append(e.before, candidates[i].ID)
	}
}

// apart is the mean time between two events, +Inf before any time has passed.
func (e *events) apart() float64 {
	if !(e.now > e.first) {
		return math.Inf(1)
	}
	return (e.now - e.first) / float64(max(e.count, 1))
}
