package promise

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/queue"
)

// Ledger is the jobs with deadlines among candidates, and their plans.
type Ledger struct {
	Planner

	Levels string // Powers or All

	capacity queue.Capacity
	devices  int
	perNode  int
	pinned   Plan // of those that keep what they hold whatever is planned
	levels   []Level
	jobs     []*Entry // by deadline
	spare    []*Entry
}

// Entry is a job with a deadline.
type Entry struct {
	Job
	Index int  // among the candidates that it came with
	Plan  Plan // empty when there is none that meets the deadline
	Kept  bool // its deadline is not to be missed for another job's sake

	recalled Plan
}

// Collect forgets all jobs and takes in those of the admitted that have a deadline and are not best effort. Whoever is pinned to
// devices keeps them, deadline or not. Nothing is planned yet.
func (l *Ledger) Collect(v *core.View, admitted []core.Candidate) {
	l.capacity.CountIn(v)
	l.now, l.Grid, l.devices, l.perNode = v.NowSeconds, v.IntervalSeconds, v.Devices, v.Cluster.LargestNode()
	l.spare = append(l.spare, l.jobs...)
	l.jobs, l.levels, l.pinned = l.jobs[:0], l.levels[:0], l.pinned[:0]
	for i := range admitted {
		switch c := &admitted[i]; {
		case queue.Stays(v, c):
			l.pinned = append(l.pinned, Piece{v.NowSeconds, l.ends(v, c), c.Held})
		case Promised(c.JobSpec):
			l.add(v, c, i)
		}
	}
	slices.SortFunc(l.jobs, func(a, b *Entry) int { return Compare(&a.Job, &b.Job) })
}

// Promised reports whether the deadline of a job is promised to it.
func Promised(j *core.JobSpec) bool { return j.DeadlineSeconds > 0 && !j.BestEffort }

// ends is when a pinned job is done; +Inf when nobody knows.
func (l *Ledger) ends(v *core.View, c *core.Candidate) float64 {
	from := len(l.levels)
	j := l.job(v, c)
	l.levels = l.levels[:from]
	for _, x := range j.Levels {
		if x.Replicas == c.Held && j.Plannable() {
			return l.endsAt(l.now, j.Ready+j.Left/x.Rate)
		}
	}
	return math.Inf(1)
}

func (l *Ledger) job(v *core.View, c *core.Candidate) (j Job) {
	j, l.levels = l.Of(v, c, l.levels)
	return j
}

func (l *Ledger) add(v *core.View, c *core.Candidate, index int) *Entry {
	if len(l.spare) == 0 {
		l.spare = append(l.spare, &Entry{})
	}
	last := len(l.spare) - 1
	e := l.spare[last]
	l.spare = l.spare[:last]
	*e = Entry{Job: l.job(v, c), Index: index, Plan: e.Plan[:0], recalled: e.recalled[:0]}
	l.jobs = append(l.jobs, e)
	return e
}

// Apply adds a job that asks for a promise.
func (l *Ledger) Apply(v *core.View, c *core.Candidate, index int) *Entry {
	e := l.add(v, c, index)
	e.Kept = true
	last := len(l.jobs) - 1
	at, _ := slices.BinarySearchFunc(l.jobs[:last], e, func(a, b *Entry) int { return Compare(&a.Job, &b.Job) })
	copy(l.jobs[at+1:], l.jobs[at:last])
	l.jobs[at] = e
	return e
}

// Withdraw takes a job out again.
func (l *Ledger) Withdraw(e *Entry) {
	at := slices.Index(l.jobs, e)
	l.jobs = slices.Delete(l.jobs, at, at+1)
	l.spare = append(l.spare, e)
}

// Jobs are those with a deadline, by deadline.
func (l *Ledger) Jobs() []*Entry { return l.jobs }

// Plan plans all jobs. Those that cannot meet their deadlines get no plan. O(jobs × levels × spans).
func (l *Ledger) Plan() {
	l.begin()
	for _, e := range l.jobs {
		l.fill(e)
	}
}

// Keeps plans all jobs as Plan does, as long as all that are to be kept get a plan, and reports whether they do.
func (l *Ledger) Keeps() bool {
	l.begin()
	for _, e := range l.jobs {
		if !l.fill(e) && e.Kept {
			return false
		}
	}
	return true
}

func (l *Ledger) begin() {
	l.Begin(l.now, l.devices)
	l.Take(l.pinned)
}

func (l *Ledger) fill(e *Entry) bool {
	plan, met := l.Fill(&e.Job)
	e.Plan = append(e.Plan[:0], plan...)
	l.Take(e.Plan)
	return met
}

// Of is what a candidate needs, as a job that is planned. Its levels are appended to buffer.
func (l *Ledger) Of(v *core.View, c *core.Candidate, buffer []Level) (Job, []Level) {
	return Of(c, v.Cluster, v.NowSeconds, l.perNode, l.capacity.Limit(c, v.Cluster, c.Response.MaxReplicas), l.Levels, buffer)
}

// Hoped is Of with as many replicas as the job can use, also such as there are no devices for yet.
func (l *Ledger) Hoped(v *core.View, c *core.Candidate, buffer []Level) (Job, []Level) {
	perNode := l.perNode
	for i := range v.Cluster.Pools {
		perNode = max(perNode, v.Cluster.Pools[i].Devices)
	}
	return Of(c, v.Cluster, v.NowSeconds, perNode, c.Response.MaxReplicas, l.Levels, buffer)
}

// Change plans a job anew that is to hold so many replicas and work with them from a moment on. It reports false, and changes nothing, if it then
// would miss its deadline, beside the plans of the others, or meet it only by another change at once, for which there is no round.
func (l *Ledger) Change(e *Entry, replicas int, ready float64) bool {
	changed := e.Job
	changed.Held, changed.Ready = replicas, max(ready, e.Ready)
	l.Return(e.Plan)
	plan, met := l.Fill(&changed)
	if now := plan.Now(l.now); met && now != 0 && now != replicas {
		met = false
	}
	if met {
		e.Plan = append(e.Plan[:0], plan...)
	}
	l.Take(e.Plan)
	return met
}

// Recall goes back to earlier plans, as far as they still meet the deadlines, and plans the other jobs beside them. It does nothing
// when that keeps no more deadlines.
func (l *Ledger) Recall(before func(core.JobID) Plan) {
	missed := l.missed()
	l.begin()
	for _, e := range l.jobs {
		e.recalled = e.recalled[:0]
		for _, x := range before(e.ID) {
			if x.To > l.now {
				e.recalled = append(e.recalled, Piece{max(x.From, l.now), x.To, x.Replicas})
			}
		}
		if len(e.recalled) > 0 && l.Meets(&e.Job, e.recalled) {
			l.Take(e.recalled)
		} else {
			e.recalled = e.recalled[:0]
		}
	}
	for _, e := range l.jobs {
		if len(e.recalled) > 0 {
			continue
		}
		if plan, met := l.Fill(&e.Job); met {
			e.recalled = append(e.recalled, plan...)
			l.Take(e.recalled)
		}
	}
	swap := func() {
		for _, e := range l.jobs {
			e.Plan, e.recalled = e.recalled, e.Plan
		}
	}
	if swap(); l.missed() < missed {
		return
	}
	swap()
	l.begin()
	for _, e := range l.jobs {
		l.Take(e.Plan)
	}
}

// missed counts the jobs without a plan.
func (l *Ledger) missed() (count int) {
	for _, e := range l.jobs {
		if len(e.Plan) == 0 {
			count++
		}
	}
	return count
}
