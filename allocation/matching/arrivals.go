package matching

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// arrivals counts the jobs that come, to tell how long an assignment lasts: a job that comes takes devices from others,
// while one that ends takes none.
type arrivals struct {
	begun bool
	first float64 // moment of the first round
	now   float64
	count int
	last  core.JobID // highest so far
}

// observe takes in who is there now. Jobs come in the order of their identifiers.
func (a *arrivals) observe(now float64, candidates []core.Candidate) {
	if !a.begun {
		*a = arrivals{begun: true, first: now, last: -1}
	}
	a.now = now
	for i := len(candidates) - 1; i >= 0 && candidates[i].ID > a.last; i-- {
		a.count++
	}
	if n := len(candidates); n > 0 {
		a.last = max(a.last, candidates[n-1].ID)
	}
}

// apart is the mean time between two of them, +Inf before any time has passed.
func (a *arrivals) apart() float64 {
	if !(a.now > a.first) {
		return math.Inf(1)
	}
	return (a.now - a.first) / float64(max(a.count, 1))
}
