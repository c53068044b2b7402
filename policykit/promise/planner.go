package promise

import (
	"math"
	"slices"
	"sort"
)

// Piece is a number of replicas from a moment to another, in seconds.
type Piece struct {
	From, To float64 // first and last moment, in seconds
	// Replicas is how many devices are held meanwhile.
	Replicas int
}

// Plan is the pieces of a job in order of time. Between them it holds nothing.
type Plan []Piece

// Now is the replicas that a plan has at its beginning.
func (p Plan) Now(nowSeconds float64) int {
	if len(p) == 0 || p[0].From > nowSeconds {
		return 0
	}
	return p[0].Replicas
}

// NextChange is when the replicas of a plan change for the first time after now; +Inf for never, and its end is no change.
func (p Plan) NextChange(nowSeconds float64) float64 {
	switch {
	case len(p) == 0:
		return math.Inf(1)
	case p[0].From > nowSeconds:
		return p[0].From
	case len(p) > 1:
		return p[0].To
	}
	return math.Inf(1)
}

// DeviceSeconds are those of a plan.
func (p Plan) DeviceSeconds() float64 {
	sum := 0.0
	for _, x := range p {
		sum += (x.To - x.From) * float64(x.Replicas)
	}
	return sum
}

// Planner knows how many devices are free from moment to moment. The zero value is not usable: Begin it.
type Planner struct {
	Overhead float64 // seconds that a job stands still after each change of its replicas; not negative
	Grid     float64 // seconds: changes fall on multiples of it from Origin on; 0 for any moment
	// Origin is the moment, in seconds, that plans begin at.
	Origin float64
	Events bool // there is a round when a job ends, also off the grid

	now     float64
	spans   []span
	before  []behind
	scratch Plan
}

// span is the free devices from a moment to that of the next span; the last has no end.
type span struct {
	from float64
	free int
}

// behind is how far a job is that keeps to the lower of two levels, when a span begins.
type behind struct {
	level int     // in the span; -1 for none
	done  float64 // work before it
	ready float64 // when it works with what it has in the span
}

// tolerance is the part of a moment by which a promise may be missed.
const tolerance = 1e-9

// lost is the work of a job that may be missing at its deadline.
func (p *Planner) lost(j *Job) float64 { return j.Levels[len(j.Levels)-1].Rate * p.late(j) }

// late is how many seconds a job may be late. It is half of what deadlines that are met are counted by, and does not shrink as the job comes further, so
// that what was kept once is kept to the end. A job that asks for a promise is only forgiven what rounding may have added: what it is late would be
// passed on to those that wait for its devices, and add up.
func (p *Planner) late(j *Job) float64 {
	if j.Asks {
		return p.rounding(j.Deadline)
	}
	return max(min(tolerance*max(j.Deadline, 1), 1e-3)/2, p.rounding(j.Deadline))
}

// rounding is how many seconds sums of moments may be off that come to a moment. Far from the first second moments are coarser.
func (p *Planner) rounding(at float64) float64 {
	if at = max(math.Abs(at), p.now); math.IsInf(at, 0) {
		at = p.now
	}
	return 16 * (math.Nextafter(at, math.Inf(1)) - at)
}

// Begin forgets all plans.
func (p *Planner) Begin(nowSeconds float64, devices int) {
	p.now = nowSeconds
	p.spans = append(p.spans[:0], span{nowSeconds, devices})
}

// Take takes the devices of a plan.
func (p *Planner) Take(plan Plan) { p.add(plan, -1) }

// Return gives them back.
func (p *Planner) Return(plan Plan) { p.add(plan, 1) }

func (p *Planner) add(plan Plan, sign int) {
	for _, x := range plan {
		if x.To <= p.now {
			continue
		}
		first := p.cut(max(x.From, p.now))
		last := len(p.spans)
		if !math.IsInf(x.To, 1) {
			last = p.cut(x.To)
		}
		for i := first; i < last; i++ {
			p.spans[i].free += sign * x.Replicas
		}
	}
}

// cut has a span begin at a moment, and returns its index.
func (p *Planner) cut(at float64) int {
	i := p.next(at)
	if i > 0 && p.spans[i-1].from == at {
		return i - 1
	}
	p.spans = slices.Insert(p.spans, i, span{at, p.spans[i-1].free})
	return i
}

// next is the index of the first span that begins after a moment.
func (p *Planner) next(at float64) int {
	return sort.Search(len(p.spans), func(i int) bool { return p.spans[i].from > at })
}

// Free is the device-seconds that are free until a moment.
func (p *Planner) Free(until float64) float64 {
	sum := 0.0
	for i := range p.spans {
		if to := p.end(i, until); to > p.spans[i].from {
			sum += (to - p.spans[i].from) * float64(max(p.spans[i].free, 0))
		}
	}
	return sum
}

// FreeNow is the devices that no plan has at present.
func (p *Planner) FreeNow() int { return p.spans[0].free }

// end is the end of a span, at most a moment.
func (p *Planner) end(i int, most float64) float64 {
	if i+1 < len(p.spans) {
		return min(p.spans[i+1].from, most)
	}
	return most
}

// Fill plans a job onto free devices: the lowest level with which it meets its deadline, as late as possible, and before that the
// level below. It reports false when no level meets the deadline. The plan is the planner's own until the next call, and does not
// take its devices. O(levels × spans until the deadline), and for the lowest level O(spans of the plan).
func (p *Planner) Fill(j *Job) (Plan, bool) {
	if plan, ends := p.ending(j); ends {
		return plan, true
	}
	if !j.Plannable() || j.Deadline <= p.now {
		return nil, false
	}
	spans := sort.Search(len(p.spans), func(i int) bool { return p.spans[i].from >= j.Deadline })
	for level := range j.Levels {
		find := p.latest
		if level == 0 {
			find = p.latestStart
		} else {
			p.keepTo(j, level-1, spans)
		}
		if plan, met := find(j, level, spans); met {
			return plan, true
		}
	}
	return nil, false
}

// ending is the plan of a job that is done within what it may be late: it keeps what it holds, though its deadline may be now. Rounding alone has it
// not done yet, and whoever takes its devices for that breaks its promise.
func (p *Planner) ending(j *Job) (Plan, bool) {
	level := j.within(len(j.Levels)-1, j.Held)
	if j.Held == 0 || level < 0 || !j.Plannable() || j.Levels[level].Replicas != j.Held || p.spans[0].free < j.Held {
		return nil, false
	}
	done := max(j.Ready, p.now) + j.Left/j.Levels[level].Rate
	if late := p.late(j); done-p.now > late || done-j.Deadline > late {
		return nil, false
	}
	ends := p.endsAt(p.now, done)
	if p.Events { // its end calls for a round
		ends = max(done, math.Nextafter(p.now, math.Inf(1)))
	}
	p.scratch = append(p.scratch[:0], Piece{p.now, ends, j.Held})
	return p.scratch, true
}

// keepTo works out how far the job comes with at most a level.
func (p *Planner) keepTo(j *Job, level, spans int) {
	p.before = p.before[:0]
	held, done, ready := j.Held, 0.0, j.Ready
	for i := range spans {
		at := p.spans[i].from
		b := behind{level: j.within(level, p.spans[i].free), done: done}
		if b.level < 0 {
			held = 0
			p.before = append(p.before, b)
			continue
		}
		l := &j.Levels[b.level]
		if l.Replicas != held {
			held, ready = l.Replicas, at+p.Overhead
		}
		b.ready = max(ready, at)
		p.before = append(p.before, b)
		done += l.Rate * max(p.end(i, j.Deadline)-b.ready, 0)
	}
}

// latestStart is latest for the lowest level, which is enough for most jobs.
func (p *Planner) latestStart(j *Job, level, spans int) (Plan, bool) {
	l := &j.Levels[level]
	enough := j.Left - p.lost(j)
	after, runEnd, runs := 0.0, 0.0, false
	for i := spans - 1; i >= 0; i-- {
		s := &p.spans[i]
		if s.free < l.Replicas {
			if runs {
				after += l.Rate * max(runEnd-p.spans[i+1].from-p.Overhead, 0)
			}
			runs = false
			continue
		}
		if !runs {
			runs, runEnd = true, p.end(i, j.Deadline)
		}
		ready := s.from + p.Overhead
		if i == 0 && l.Replicas == j.Held {
			ready = j.Ready
		}
		if after+l.Rate*max(runEnd-ready, 0) < enough {
			continue
		}
		for _, over := range [...]float64{p.within(j, behind{level: -1}, s.from, runEnd, level, runEnd, after), s.from} {
			if over < s.from {
				continue
			}
			if after == 0 {
				if over > s.from {
					ready = over + p.Overhead
				}
				p.scratch = append(p.scratch[:0], Piece{over, p.endsAt(over, min(ready+j.Left/l.Rate, runEnd)), l.Replicas})
				return p.scratch, true
			}
			if plan, met := p.walk(j, level, over, spans); met {
				return plan, true
			}
		}
	}
	return nil, false
}

// latest finds the latest moment at which the job may go over to a level.
func (p *Planner) latest(j *Job, level, spans int) (Plan, bool) {
	after := 0.0                 // work of the runs behind the one that is looked at
	run, runEnd := -1, 0.0       // its level and end
	enough := j.Left - p.lost(j) // what rounding loses is no reason to begin earlier
	for i := spans - 1; i >= 0; i-- {
		at, end := p.spans[i].from, p.end(i, j.Deadline)
		k := j.within(level, p.spans[i].free)
		if k != run {
			if run >= 0 {
				after += j.Levels[run].Rate * max(runEnd-end-p.Overhead, 0)
			}
			run, runEnd = k, end
		}
		before := p.before[i]
		// Nowhere in the span is more done than by who goes over at its very beginning, where what was held before may go on.
		held, ready, done := j.Held, j.Ready, before.done
		if i > 0 {
			held, ready = 0, 0
			if p.before[i-1].level >= 0 {
				held, ready = j.Levels[p.before[i-1].level].Replicas, p.before[i-1].ready
			}
		}
		all := done + after
		if run >= 0 {
			if j.Levels[run].Replicas != held {
				ready = at + p.Overhead
			}
			all += j.Levels[run].Rate * max(runEnd-max(ready, at), 0)
		}
		if all < enough {
			continue
		}
		for _, s := range [...]float64{p.within(j, before, at, end, run, runEnd, after), at} {
			if s < at {
				continue
			}
			if plan, met := p.walk(j, level, s, spans); met {
				return plan, true
			}
		}
	}
	return nil, false
}

// within is the latest moment inside a span at which the job may go over; before the span when there is none.
func (p *Planner) within(j *Job, before behind, at, end float64, run int, runEnd, after float64) float64 {
	if run < 0 || run == before.level {
		return math.Inf(-1)
	}
	fast, slow, from := j.Levels[run].Rate, 0.0, at
	if before.level >= 0 {
		slow, from = j.Levels[before.level].Rate, before.ready
	}
	last := runEnd - p.Overhead // when work must begin that is to come to something
	missing := j.Left - before.done - after
	s := (fast*last - slow*from - missing) / (fast - slow)
	if s < from || fast <= slow {
		s = min(last-missing/fast, from)
	}
	s = min(s, last, end)
	if p.Grid > 0 {
		s = p.Origin + math.Floor((s-p.Origin+p.rounding(s))/p.Grid)*p.Grid
	}
	return s
}

// walk makes the plan that goes over to a level at a moment, and reports whether it meets the deadline.
func (p *Planner) walk(j *Job, level int, over float64, spans int) (Plan, bool) {
	p.scratch = p.scratch[:0]
	held, ready, left, lost := j.Held, j.Ready, j.Left, p.lost(j)
	add := func(from, to float64, k int) bool {
		if k < 0 {
			held = 0
			return false
		}
		l := &j.Levels[k]
		goes := l.Replicas == held && len(p.scratch) > 0 // on with the piece before
		if l.Replicas != held {
			held, ready = l.Replicas, from+p.Overhead
		}
		if from < ready {
			left -= l.Rate * max(to-ready, 0)
		} else {
			left -= l.Rate * (to - from)
		}
		done := left <= lost
		if done {
			to = p.endsAt(from, to+min(left, 0)/l.Rate)
		}
		if goes {
			p.scratch[len(p.scratch)-1].To = to
		} else {
			p.scratch = append(p.scratch, Piece{from, to, l.Replicas})
		}
		return done
	}
	first := 0
	if level == 0 && over > p.now {
		held, first = 0, p.next(over)-1
	}
	for i := first; i < spans; i++ {
		at, end := p.spans[i].from, p.end(i, j.Deadline)
		free := p.spans[i].free
		if level > 0 && at < over && add(at, min(end, over), j.within(level-1, free)) {
			return p.scratch, true
		}
		if end > over && add(max(at, over), end, j.within(level, free)) {
			return p.scratch, true
		}
	}
	return nil, false
}

// Meets reports whether a job that keeps to a plan meets its deadline, and the devices of the plan are free.
func (p *Planner) Meets(j *Job, plan Plan) bool {
	held, ready, left, before := j.Held, j.Ready, j.Left, p.now
	for _, x := range plan {
		from := max(x.From, p.now)
		if x.To <= from {
			continue
		}
		level := j.within(len(j.Levels)-1, x.Replicas)
		if level < 0 || j.Levels[level].Replicas != x.Replicas {
			return false // also behind the deadline
		}
		for i := max(p.next(from)-1, 0); i < len(p.spans) && p.spans[i].from < x.To; i++ {
			if p.spans[i].free < x.Replicas {
				return false
			}
		}
		if x.Replicas != held || from > before {
			held, ready = x.Replicas, from+p.Overhead
		}
		if worked := min(x.To, j.Deadline) - max(ready, from); worked > 0 {
			left -= j.Levels[level].Rate * worked
		}
		before = x.To
	}
	return left <= p.lost(j)
}

// gridAfter is the first moment of the grid from a moment on.
func (p *Planner) gridAfter(at float64) float64 {
	if p.Grid == 0 {
		return at
	}
	return p.Origin + math.Ceil((at-p.Origin-p.rounding(at))/p.Grid)*p.Grid
}

// endsAt is when what a job has from a moment on is free again, if it is done at another: on the grid, and behind the first moment
// whatever rounding says. Who is done at the first moment but for rounding has nothing of the interval that begins there: its end calls for a
// round, and those whose plans begin then begin with that.
func (p *Planner) endsAt(from, done float64) float64 {
	at := p.gridAfter(done)
	switch {
	case at > from || p.Grid == 0:
		return max(at, from)
	case p.Events:
		return max(done, math.Nextafter(from, math.Inf(1)))
	}
	return p.Origin + (math.Floor((from-p.Origin)/p.Grid)+1)*p.Grid
}

// Steady is the plan of a job that begins at once with so many replicas, of one of its levels, and keeps them until it is done. It reports false
// when as many devices are not free all the while.
func (p *Planner) Steady(j *Job, replicas int) (Plan, bool) {
	ends := math.Inf(1) // when nobody knows
	if level := j.within(len(j.Levels)-1, replicas); level >= 0 && j.Plannable() {
		ready := p.now + p.Overhead
		if replicas == j.Held {
			ready = j.Ready
		}
		ends = p.endsAt(p.now, ready+j.Left/j.Levels[level].Rate)
	}
	for i := 0; i < len(p.spans) && p.spans[i].from < ends; i++ {
		if p.spans[i].free < replicas {
			return nil, false
		}
	}
	p.scratch = append(p.scratch[:0], Piece{p.now, ends, replicas})
	return p.scratch, true
}

// Hopeful reports whether a job could meet its deadline on a cluster of its own.
func (p *Planner) Hopeful(j *Job) bool {
	fastest := j.Fastest(p.now, p.Overhead)
	return j.Plannable() && fastest-j.Deadline <= p.late(j)
}

// Earliest is when the job would be done if it got all that is free, beside the plans that were made.
func (p *Planner) Earliest(j *Job) float64 {
	if !j.Plannable() {
		return math.Inf(1)
	}
	held, ready, left := j.Held, j.Ready, j.Left
	for i := range p.spans {
		k := j.within(len(j.Levels)-1, p.spans[i].free)
		if k < 0 {
			held = 0
			continue
		}
		at, l := p.spans[i].from, &j.Levels[k]
		if l.Replicas != held {
			held, ready = l.Replicas, at+p.Overhead
		}
		from, end := max(at, ready), p.end(i, math.Inf(1))
		if from+left/l.Rate <= end {
			return from + left/l.Rate
		}
		left -= l.Rate * max(end-from, 0)
	}
	return math.Inf(1)
}
