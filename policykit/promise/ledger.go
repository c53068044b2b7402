package promise

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Ledger is the jobs with deadlines among candidates, and their plans. On a cluster of several types of devices each job is planned on those of one.
type Ledger struct {
	Planner // of the devices, or of the first type

	Levels string // PowersOfTwo or AllLevels

	capacity queue.Capacity
	bins     []bin     // one, or as many as there are types
	further  []Planner // of all bins but the first
	pinned   []held    // by those that keep what they hold whatever is planned
	levels   []Level
	jobs     []*Entry // by deadline
	spare    []*Entry
}

// bin is the devices that a plan may be of.
type bin struct {
	on      core.AcceleratorID // AnyAccelerator where there is one type
	devices int
	perNode int
}

// held is devices of a bin.
type held struct {
	bin   int
	piece Piece
}

// Entry is a job with a deadline.
type Entry struct {
	Job
	Index int  // among the candidates that it came with
	Plan  Plan // empty when there is none that meets the deadline
	Kept  bool // its deadline is not to be missed for another job's sake

	types      []Job // on each type that it can run on, where there are several: the one that it holds first
	recalled   Plan
	recalledOn int // of types
}

// Collect forgets all jobs and takes in those of the admitted that have a deadline and are not best effort. Whoever is pinned to
// devices keeps them, deadline or not. Nothing is planned yet.
func (l *Ledger) Collect(v *core.View, admitted []core.Candidate) {
	l.count(v)
	l.now, l.Grid, l.Events = v.NowSeconds, v.IntervalSeconds, v.OnEvents
	l.spare = append(l.spare, l.jobs...)
	l.jobs, l.levels, l.pinned = l.jobs[:0], l.levels[:0], l.pinned[:0]
	for i := range admitted {
		switch c := &admitted[i]; {
		case queue.Stays(v, c):
			ends := l.ends(v, c)
			for b := range l.bins {
				if n := l.Held(v, c, b); n > 0 {
					l.pinned = append(l.pinned, held{b, Piece{v.NowSeconds, ends, n}})
				}
			}
		case Promised(c.JobSpec):
			l.add(v, c, i)
		}
	}
	slices.SortFunc(l.jobs, func(a, b *Entry) int { return Compare(&a.Job, &b.Job) })
}

// count takes in the devices that there are.
func (l *Ledger) count(v *core.View) {
	c := v.Cluster
	l.capacity.CountIn(v)
	l.bins = append(l.bins[:0], bin{core.AnyAccelerator, v.Devices, c.LargestNode()})
	if !severalTypes(c) {
		return
	}
	l.bins = l.bins[:0]
	for t := range c.Accelerators {
		b := bin{on: core.AcceleratorID(t), devices: l.capacity.ByType[t]}
		for i := range c.Nodes {
			if n := &c.Nodes[i]; n.Accelerator == b.on && n.Health != core.Gone {
				b.perNode = max(b.perNode, n.Devices)
			}
		}
		if b.perNode == 0 {
			b.perNode = largestToCome(c, b.on)
		}
		l.bins = append(l.bins, b)
	}
	for len(l.further) < len(l.bins)-1 {
		l.further = append(l.further, Planner{})
	}
	for i := range l.further {
		f := &l.further[i]
		f.Overhead, f.Grid, f.Origin, f.Events, f.now = l.Overhead, v.IntervalSeconds, l.Origin, v.OnEvents, v.NowSeconds
	}
}

// severalTypes reports whether nodes or pools are of different types.
func severalTypes(c *core.Cluster) bool {
	if len(c.Accelerators) < 2 {
		return false
	}
	first := core.AnyAccelerator
	other := func(t core.AcceleratorID) bool {
		if first == core.AnyAccelerator {
			first = t
		}
		return t != first
	}
	return slices.ContainsFunc(c.Nodes, func(n core.Node) bool { return n.Health != core.Gone && other(n.Accelerator) }) ||
		slices.ContainsFunc(c.Pools, func(p core.Pool) bool { return other(p.Accelerator) })
}

// largestToCome is the greatest number of devices on a node of a pool, of a type or of any.
func largestToCome(c *core.Cluster, on core.AcceleratorID) int {
	largest := 0
	for i := range c.Pools {
		if p := &c.Pools[i]; on == core.AnyAccelerator || p.Accelerator == on {
			largest = max(largest, p.Devices)
		}
	}
	return largest
}

// mayGrow reports whether there may be more devices of a type, as far as the cluster tells of which types nodes to come are.
func mayGrow(c *core.Cluster, on core.AcceleratorID) bool {
	return len(c.Pools) == 0 || largestToCome(c, on) > 0 ||
		slices.ContainsFunc(c.Nodes, func(n core.Node) bool { return n.Health == core.Provisioning && n.Accelerator == on })
}

// of is the planner of a bin.
func (l *Ledger) of(bin int) *Planner {
	if bin == 0 {
		return &l.Planner
	}
	return &l.further[bin-1]
}

// Bins is how many groups of devices there are that plans are made for apart, by type: 1 where all are of one.
func (l *Ledger) Bins() int { return len(l.bins) }

// On is the type of the devices of a bin; AnyAccelerator where there is one type.
func (l *Ledger) On(bin int) core.AcceleratorID { return l.bins[bin].on }

// Devices is how many there are of a bin.
func (l *Ledger) Devices(bin int) int { return l.bins[bin].devices }

// Held is how many devices of a bin a job holds.
func (l *Ledger) Held(v *core.View, c *core.Candidate, bin int) int {
	if len(l.bins) == 1 {
		return c.Held
	}
	held := 0
	for _, s := range c.Seats {
		if v.Cluster.Nodes[s.Node].Accelerator == l.bins[bin].on {
			held += s.Devices.Count()
		}
	}
	return held
}

// Promised reports whether the deadline of a job is promised to it.
func Promised(j *core.JobSpec) bool { return j.DeadlineSeconds > 0 && !j.BestEffort }

// ends is when a pinned job is done; +Inf when nobody knows.
func (l *Ledger) ends(v *core.View, c *core.Candidate) float64 {
	from := len(l.levels)
	var jobs [1]Job
	list := l.Types(v, c, jobs[:0])
	l.levels = l.levels[:from]
	for _, x := range list[0].Levels {
		if x.Replicas == c.Held && list[0].Plannable() {
			return l.endsAt(l.now, list[0].Ready+list[0].Left/x.Rate)
		}
	}
	return math.Inf(1)
}

// Types are what a candidate needs, as a job that is planned, on each type that it can run on: the one that it holds first, and otherwise in their
// order. Where there is one type, or none that it can run on, there is one. They are appended to jobs, and stay valid until Collect.
func (l *Ledger) Types(v *core.View, c *core.Candidate, jobs []Job) []Job {
	return l.types(v, c, jobs, func(b *bin) (perNode, most int) {
		if b.on == core.AnyAccelerator {
			return b.perNode, l.capacity.Limit(c, v.Cluster, c.Response.MaxReplicas)
		}
		return b.perNode, max(b.devices, c.Response.MinReplicas)
	})
}

// Hoped is Types with as many replicas as the job can use, also such as there are no devices for yet.
func (l *Ledger) Hoped(v *core.View, c *core.Candidate, jobs []Job) []Job {
	return l.types(v, c, jobs, func(b *bin) (perNode, most int) {
		if b.on != core.AnyAccelerator && !mayGrow(v.Cluster, b.on) {
			return b.perNode, max(b.devices, c.Response.MinReplicas)
		}
		return max(b.perNode, largestToCome(v.Cluster, b.on)), c.Response.MaxReplicas
	})
}

// More is when there may be more devices of a bin, at the earliest as a rule: when a node is ready that is on its way, or that a pool may ask for
// now. Of nodes of which nobody knows it is at once; where there are none it is +Inf.
func (l *Ledger) More(v *core.View, bin int) float64 {
	c, on := v.Cluster, l.bins[bin].on
	is := func(t core.AcceleratorID) bool { return on == core.AnyAccelerator || t == on }
	at := math.Inf(1)
	if c.MayGrow && len(c.Pools) == 0 {
		at = v.NowSeconds
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health == core.Provisioning && is(n.Accelerator) {
			at = min(at, max(n.ExpectedSeconds, v.NowSeconds))
		}
	}
	for i := range c.Pools {
		if p := &c.Pools[i]; c.MayGrow && is(p.Accelerator) && c.PoolSize(p.Name) < p.Max {
			at = min(at, v.NowSeconds+p.ProvisioningSeconds)
		}
	}
	return at
}

func (l *Ledger) types(v *core.View, c *core.Candidate, jobs []Job, bounds func(*bin) (perNode, most int)) []Job {
	from := len(jobs)
	for b := range l.bins {
		on := l.bins[b].on
		if on != core.AnyAccelerator && !c.CanRunOn(v.Cluster, on) {
			continue
		}
		var j Job
		perNode, most := bounds(&l.bins[b])
		j, l.levels = NewJob(c, v.Cluster, on, v.NowSeconds, perNode, most, l.Levels, l.levels)
		j.Bin = b
		jobs = append(jobs, j)
		if last := len(jobs) - 1; j.Held > 0 && last > from {
			copy(jobs[from+1:], jobs[from:last])
			jobs[from] = j
		}
	}
	if len(jobs) == from {
		jobs = append(jobs, Job{ID: c.ID, NoTypeFits: true, Deadline: c.Deadline(), Left: math.NaN(), Levels: []Level{{c.Response.MinReplicas, math.NaN()}}})
	}
	return jobs
}

func (l *Ledger) add(v *core.View, c *core.Candidate, index int) *Entry {
	if len(l.spare) == 0 {
		l.spare = append(l.spare, &Entry{})
	}
	last := len(l.spare) - 1
	e := l.spare[last]
	l.spare = l.spare[:last]
	*e = Entry{Index: index, Plan: e.Plan[:0], types: l.Types(v, c, e.types[:0]), recalled: e.recalled[:0]}
	e.Job = e.types[0]
	l.jobs = append(l.jobs, e)
	return e
}

// Apply adds a job that asks for a promise.
func (l *Ledger) Apply(v *core.View, c *core.Candidate, index int) *Entry {
	e := l.add(v, c, index)
	e.Kept, e.Asks = true, true
	for i := range e.types {
		e.types[i].Asks = true
	}
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

// Types are what the job needs on each type that it can run on.
func (e *Entry) Types() []Job { return e.types }

// Plan plans all jobs. Those that cannot meet their deadlines get no plan. O(jobs × types × levels × spans).
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
	for b := range l.bins {
		l.of(b).Begin(l.now, l.bins[b].devices)
	}
	for _, h := range l.pinned {
		l.of(h.bin).Take(Plan{h.piece})
	}
}

// fill plans a job on the type on which it needs the fewest device-seconds, of those on which it meets its deadline.
func (l *Ledger) fill(e *Entry) bool {
	var met bool
	e.Plan, e.Job, met = l.best(e, e.Plan)
	l.of(e.Bin).Take(e.Plan)
	return met
}

// best is the plan of a job that takes the fewest device-seconds, put into a buffer, and the job on the type that it is on. Of several that take as
// many it is the first.
func (l *Ledger) best(e *Entry, buffer Plan) (best Plan, on Job, met bool) {
	best, on = buffer[:0], e.types[0]
	for i := range e.types {
		j := &e.types[i]
		plan, meets := l.plan(j)
		if meets && (!met || plan.DeviceSeconds() < best.DeviceSeconds()) {
			best, on, met = append(best[:0], plan...), *j, true
		}
	}
	return best, on, met
}

// plan plans a job on free devices of its type. Who is pinned gets all at once, and keeps it: later, or else now and with the lowest level that does.
func (l *Ledger) plan(j *Job) (Plan, bool) {
	p := l.of(j.Bin)
	plan, met := p.Fill(j)
	if !met || !j.Pinned || len(plan) == 1 {
		return plan, met
	}
	for i := range j.Levels {
		if plan, met := l.steady(j, j.Levels[i].Replicas); met {
			return plan, true
		}
	}
	return nil, false
}

// steady is a plan of a pinned job that meets its deadline.
func (l *Ledger) steady(j *Job, replicas int) (Plan, bool) {
	p := l.of(j.Bin)
	plan, free := p.Steady(j, replicas)
	return plan, free && p.Meets(j, plan)
}

// Hopes reports whether a job could meet its deadline on a cluster of its own.
func (l *Ledger) Hopes(e *Entry) bool {
	return slices.ContainsFunc(e.types, func(j Job) bool { return l.Hopeful(&j) })
}

// Earliest is when the job would be done if it got all that is free of its type, beside the plans that were made.
func (l *Ledger) Earliest(j *Job) float64 { return l.of(j.Bin).Earliest(j) }

// FreeFor is the device-seconds of its type that are free until the deadline of a job.
func (l *Ledger) FreeFor(j *Job) float64 { return l.of(j.Bin).Free(j.Deadline) }

// Change plans a job anew that is to hold so many replicas and work with them from a moment on. It reports false, and changes nothing, if it then
// would miss its deadline, beside the plans of the others, or meet it only by another change at once, for which there is no round.
func (l *Ledger) Change(e *Entry, replicas int, ready float64) bool {
	changed, p := e.Job, l.of(e.Bin)
	changed.Held, changed.Ready = replicas, max(ready, e.Ready)
	p.Return(e.Plan)
	plan, met := Plan(nil), false
	if e.Pinned {
		plan, met = l.steady(&e.Job, replicas)
	} else {
		plan, met = p.Fill(&changed)
	}
	if now := plan.Now(l.now); met && now != 0 && now != replicas {
		met = false
	}
	if met {
		e.Plan = append(e.Plan[:0], plan...)
	}
	p.Take(e.Plan)
	return met
}

// Keep has a pinned job without a plan keep so many replicas until it is done, instead of those that it was to keep before, and returns that as a
// plan. It reports false, and changes nothing, if as many are not free all the while.
func (l *Ledger) Keep(j *Job, before Plan, replicas int) (Plan, bool) {
	p := l.of(j.Bin)
	p.Return(before)
	plan, free := p.Steady(j, replicas)
	if !free {
		p.Take(before)
		return before, false
	}
	before = append(before[:0], plan...)
	p.Take(before)
	return before, true
}

// Recall goes back to earlier plans, on devices of a type, as far as they still meet the deadlines, and plans the other jobs beside them. It does
// nothing when that keeps no more deadlines.
func (l *Ledger) Recall(before func(core.JobID) (Plan, core.AcceleratorID)) {
	missed := l.missed()
	l.begin()
	for _, e := range l.jobs {
		earlier, on := before(e.ID)
		e.recalled = e.recalled[:0]
		for _, x := range earlier {
			if x.To > l.now {
				e.recalled = append(e.recalled, Piece{max(x.From, l.now), x.To, x.Replicas})
			}
		}
		e.recalledOn = slices.IndexFunc(e.types, func(j Job) bool { return l.bins[j.Bin].on == on })
		if e.recalledOn >= 0 && l.holds(&e.types[e.recalledOn], e.recalled) {
			l.of(e.types[e.recalledOn].Bin).Take(e.recalled)
		} else {
			e.recalled = e.recalled[:0]
		}
	}
	for _, e := range l.jobs {
		if len(e.recalled) > 0 {
			continue
		}
		plan, on, met := l.best(e, e.recalled)
		e.recalledOn = slices.IndexFunc(e.types, func(j Job) bool { return j.Bin == on.Bin })
		if e.recalled = plan; met {
			l.of(on.Bin).Take(e.recalled)
		}
	}
	swap := func() {
		for _, e := range l.jobs {
			was := slices.IndexFunc(e.types, func(j Job) bool { return j.Bin == e.Bin })
			e.Plan, e.recalled = e.recalled, e.Plan
			e.Job, e.recalledOn = e.types[e.recalledOn], was
		}
	}
	if swap(); l.missed() < missed {
		return
	}
	swap()
	l.begin()
	for _, e := range l.jobs {
		l.of(e.Bin).Take(e.Plan)
	}
}

// holds reports whether an earlier plan of a job is still one.
func (l *Ledger) holds(j *Job, plan Plan) bool {
	return len(plan) > 0 && (len(plan) == 1 || !j.Pinned) && l.of(j.Bin).Meets(j, plan)
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
