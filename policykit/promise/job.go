package promise

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Level is a number of replicas that a job may run with, and its work per second with it.
type Level struct {
	// Replicas is how many replicas the job runs with.
	Replicas int
	// Rate is the work a second with them, in the unit of the curve.
	Rate float64
}

// Job is what a plan is made for.
type Job struct {
	// ID is the job.
	ID         core.JobID
	Deadline   float64 // seconds; +Inf for none
	Left       float64 // work, in the unit of the rates; NaN when unknown
	Levels     []Level // ascending, each faster than those before
	Held       int     // replicas at present
	Ready      float64 // seconds; when what is held works again after the change to it
	Pinned     bool    // it keeps what it gets until it is done
	Bin        int     // of the ledger: which type of devices it is planned on
	NoTypeFits bool    // no type holds it
	Asks       bool    // it is promised nothing yet
}

// Levels of a job: those numbers of replicas of which each is faster than all before it.
const (
	PowersOfTwo = "powers_of_two" // times the least number that it can run with
	AllLevels   = "all"
)

// NewJob is a candidate as it is now, its levels up to most replicas, on devices of a type; on AnyAccelerator, what it can count on whatever the type of
// the devices it gets. The levels are appended to buffer.
func NewJob(c *core.Candidate, cluster *core.Cluster, on core.AcceleratorID, nowSeconds float64, perNode, most int, levels string, buffer []Level) (Job, []Level) {
	j := Job{ID: c.ID, Deadline: c.Deadline(), Left: left(c, nowSeconds), Held: c.Held, Ready: nowSeconds, Pinned: c.Pinned}
	if on != core.AnyAccelerator && slices.ContainsFunc(c.Seats, func(s core.Seat) bool { return cluster.Nodes[s.Node].Accelerator != on }) {
		j.Held = 0 // it would have to move
	}
	if j.Held > 0 {
		j.Ready = max(c.ProgressAsOf, nowSeconds)
	}
	from := len(buffer)
	switch {
	case len(c.Response.Curves) == 0 && c.TotalWork > 0: // declared seconds on the replicas that it asks for
		buffer = append(buffer, Level{min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas), 1})
	default:
		best, least := 0.0, 0
		for n := c.Response.MinReplicas; n <= min(most, c.Response.MaxReplicas); n++ {
			rate := c.Response.Rate(on, n, perNode)
			if on == core.AnyAccelerator {
				rate = slowest(c, cluster, n, perNode)
			}
			if least == 0 && rate > 0 {
				least = n
			}
			if rate <= best || levels == PowersOfTwo && !power(n, least) {
				continue
			}
			best = rate
			buffer = append(buffer, Level{n, rate})
		}
	}
	if len(buffer) == from { // it runs all the same
		buffer = append(buffer, Level{c.Response.MinReplicas, math.NaN()})
	}
	j.Levels = slices.Clip(buffer[from:])
	if rate := j.Levels[0].Rate; j.Left == 0 && rate > 0 && endsNow(c, nowSeconds) {
		j.Left = rate * (math.Nextafter(nowSeconds, math.Inf(1)) - nowSeconds) // what it has not done is lost in rounding: it ends by itself, at once
	}
	return j, buffer
}

// endsNow reports whether a job has done all of its declared work, and no more than rounding may add: it is not one that takes longer than it declares.
func endsNow(c *core.Candidate, now float64) bool {
	return c.TotalWork > 0 && c.WorkDone(now)-c.TotalWork <= max(c.TotalWork, c.ProgressRate*now)*1e-14
}

// slowest is the rate of a job on the type on which it is the slowest, of those on which it runs with so many replicas; 0 where it does on none.
func slowest(c *core.Candidate, cluster *core.Cluster, replicas, perNode int) float64 {
	if len(c.Response.Curves) == 1 {
		return c.Response.Rate(core.AnyAccelerator, replicas, perNode)
	}
	least := math.Inf(1)
	for t := range cluster.Accelerators {
		on := core.AcceleratorID(t)
		if rate := c.Response.Rate(on, replicas, perNode); rate > 0 && rate < least && c.CanRunOn(cluster, on) {
			least = rate
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// power reports whether n is a power of two times the least number.
func power(n, least int) bool {
	if n%least != 0 {
		return false
	}
	times := n / least
	return times&(times-1) == 0
}

// left is the work that is left now, in the unit of the rates. What elasticity told of it may be as of the last event of the job, or
// of the phase that it is in; where the declared work is in the same unit, it tells more.
func left(c *core.Candidate, now float64) float64 {
	told := c.Response.RemainingWork
	alike := c.Batch.Requested == c.Batch.Initial || told == c.TotalWork-c.Progress
	switch {
	case c.TotalWork > 0 && math.IsNaN(told):
		return c.RemainingWork(now)
	case c.TotalWork > 0 && alike:
		return min(told, c.RemainingWork(now))
	}
	return told
}

// Plannable reports whether it is known how long the job takes, and more than nothing is left.
func (j *Job) Plannable() bool { return j.Left > 0 && len(j.Levels) > 0 && j.Levels[0].Rate > 0 }

// Compare orders jobs by deadline, ties by JobID.
func Compare(a, b *Job) int {
	switch {
	case a.Deadline < b.Deadline:
		return -1
	case a.Deadline > b.Deadline:
		return 1
	default:
		return int(a.ID) - int(b.ID)
	}
}

// within is the index of the largest level with at most n replicas, at most level; -1 for none.
func (j *Job) within(level, n int) int {
	for ; level >= 0 && j.Levels[level].Replicas > n; level-- {
	}
	return level
}

// Fastest is when the job is done at the earliest, on any devices. Another change does not wait for the one that is under way.
func (j *Job) Fastest(nowSeconds, overhead float64) float64 {
	best := math.Inf(1)
	for _, l := range j.Levels {
		ready := nowSeconds + overhead
		if l.Replicas == j.Held {
			ready = j.Ready
		}
		best = min(best, ready+j.Left/l.Rate)
	}
	return best
}

// FastestWith is Fastest where there are so many devices until a moment, and as many as it can use from then on.
func (j *Job) FastestWith(nowSeconds, overhead float64, there int, moreSeconds float64) float64 {
	best := math.Inf(1)
	for _, l := range j.Levels {
		if l.Replicas <= there || moreSeconds <= nowSeconds {
			one := Job{Levels: []Level{l}, Held: j.Held, Ready: j.Ready, Left: j.Left}
			best = min(best, one.Fastest(nowSeconds, overhead))
			continue
		}
		best = min(best, moreSeconds+overhead+j.Left/l.Rate)
		for _, before := range j.Levels {
			ready := nowSeconds + overhead
			if before.Replicas == j.Held {
				ready = j.Ready
			}
			if before.Replicas <= there {
				done := before.Rate * max(moreSeconds-ready, 0)
				best = min(best, moreSeconds+overhead+max(j.Left-done, 0)/l.Rate)
			}
		}
	}
	return best
}

// Cheapest is the device-seconds that the job needs at least.
func (j *Job) Cheapest() float64 {
	best := math.Inf(1)
	for _, l := range j.Levels {
		best = min(best, j.Left/l.Rate*float64(l.Replicas))
	}
	return best
}
