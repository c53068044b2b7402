package optim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Queues puts jobs into the queues of machines so that the sum of their completion times is least: job i takes
// seconds[i][t] on a machine of type t, of which there are machines[t]. It is scheduling on unrelated machines (Horn,
// Operations Research 21, 1973), an assignment of jobs to places: a job with k-1 others behind it adds k times its
// seconds.
//
// Successive shortest paths, as in Transport, on a graph that knows what the places mean. Machines of a type are alike,
// so that a rank, the k-th places from behind, is one node. A queue of least cost runs the shortest job first, so that
// a queue is a sorted list, a job that joins it can only stand at one rank or between two, and all that its coming
// changes behind it is that the boundary jobs of each rank move on by one. Jobs join the longest first, and of equal ones
// the last: they come to the front of the queues, and what stands behind them mostly stays. O(n² T log n) for n jobs
// and T types at worst; most searches end near where they begin. Where they do not, since times tie or have a factor in
// common, prices are raised ahead of them (raise).
//
// A Queues holds the buffers of its calls: it is reused, by one goroutine at a time. The zero value is ready.
type Queues struct {
	cost   []float64 // seconds by job and type
	least  []float64 // of a place and its price, by job and type: a lower bound, since prices only rise
	lines  []line
	order  []int      // of joining
	on     []int      // type of each job, -1 before it joins
	stood  []int      // where a job last belonged in the line, by job and type: a search there begins beside it
	search []frontier // open places, a heap by distance
	seen   []placeID  // in this search
	full   int        // ranks
	wide   int        // grows with searches that come through most full ranks, shrinks with others
	raises int        // how many more ranks raise the prices when they fill
}

// line is the queue of the machines of a type, the longest job first.
type line struct {
	machines int
	jobs     []int
	seconds  []float64
	ranks    []rank // from behind; one more than are full
}

// rank is what takes as many jobs as there are machines.
type rank struct {
	price    float64
	distance float64 // from the job that joins, +Inf while it is not reached
	from     placeID // before it on the path
	job      int     // that comes from there; -1 for the boundary job of a rank beside it
	done     bool
}

type placeID struct{ line, rank int }

// outside is where a job that joins comes from.
var outside = placeID{-1, -1}

type frontier struct {
	distance float64
	at       placeID
}

// Queued is a plan of least cost with its certificate. Its slices belong to the Queues and last until its next call.
type Queued struct {
	Order [][]int // jobs by type, the first to run first; of those with the same seconds the lower index
	Cost  float64 // sum of completion times
	// Prices clear the ranks, by type, from behind: no job would rather stand elsewhere at its cost plus price. Ranks
	// with room left are free, and so are those not listed.
	Prices [][]float64
}

// Solve finds queues of least cost. It fails on malformed input, among it no machine at all for some jobs, and when the
// context ends.
func (q *Queues) Solve(ctx context.Context, seconds [][]float64, machines []int) (Queued, error) {
	if err := checkQueues(seconds, machines); err != nil {
		return Queued{}, err
	}
	q.reset(seconds, machines)
	for _, job := range q.order {
		if err := ctx.Err(); err != nil {
			return Queued{}, fmt.Errorf("optim: queues: %w", err)
		}
		q.join(job)
	}
	return q.result(), nil
}

func checkQueues(seconds [][]float64, machines []int) error {
	var faults []error
	total := 0
	for t, n := range machines {
		if n < 0 {
			faults = append(faults, fmt.Errorf("optim: queues: %d machines of type %d, want none or more", n, t))
		}
		total += max(n, 0)
	}
	if total == 0 && len(seconds) > 0 {
		faults = append(faults, fmt.Errorf("optim: queues: no machine for %d jobs", len(seconds)))
	}
	for i, row := range seconds {
		if len(row) != len(machines) {
			faults = append(faults, fmt.Errorf("optim: queues: job %d has %d lengths, want one for each of %d types", i, len(row), len(machines)))
		}
		for t, s := range row {
			if !(s >= 0) || math.IsInf(s, 1) {
				faults = append(faults, fmt.Errorf("optim: queues: job %d takes %v s on type %d, want a number from 0", i, s, t))
			}
		}
	}
	return errors.Join(faults...)
}

// reset empties the queues and orders the jobs, the longest first.
func (q *Queues) reset(seconds [][]float64, machines []int) {
	q.lines = slices.Grow(q.lines[:0], len(machines))[:len(machines)]
	for t := range q.lines {
		l := &q.lines[t]
		l.machines, l.jobs, l.seconds, l.ranks = machines[t], l.jobs[:0], l.seconds[:0], l.ranks[:0]
		if l.machines > 0 {
			l.ranks = append(l.ranks, rank{distance: math.Inf(1)})
		}
	}
	q.full, q.wide, q.raises = 0, 0, 0
	q.on, q.order = zeroed(q.on, len(seconds)), q.order[:0]
	q.cost = q.cost[:0]
	least := make([]float64, len(seconds))
	for i, row := range seconds {
		q.cost, q.order, q.on[i], least[i] = append(q.cost, row...), append(q.order, i), -1, math.Inf(1)
		for t, s := range row {
			if machines[t] > 0 {
				least[i] = min(least[i], s)
			}
		}
	}
	q.least, q.stood = zeroed(q.least, len(q.cost)), zeroed(q.stood, len(q.cost))
	for i := range q.stood {
		q.stood[i] = math.MaxInt
	}
	slices.SortFunc(q.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(least[b], least[a]), cmp.Compare(b, a)) // to the front, where equal ones stand by index
	})
}

// join takes in a job along the shortest path to a rank with room.
func (q *Queues) join(job int) {
	last, length := q.shortest(job)
	// A raise costs as much as a wide search: it pays where most searches are wide.
	if 4*len(q.seen) < 3*q.full {
		q.wide = max(q.wide-1, 0)
	} else if q.wide += 2; q.wide > 8 {
		q.wide, q.raises = 0, 100
	}
	for _, at := range q.seen {
		r := q.rank(at)
		if r.done {
			r.price += length - r.distance
		}
		r.distance, r.done = math.Inf(1), false
	}
	q.seen = q.seen[:0]
	// Jobs first leave and then join, so that each stands where it belongs among the others.
	for at := last; at != outside; at = q.rank(at).from {
		if moved := q.rank(at).job; moved >= 0 && q.on[moved] >= 0 {
			q.leave(moved)
		}
	}
	for at := last; at != outside; at = q.rank(at).from {
		if moved := q.rank(at).job; moved >= 0 {
			q.enter(moved, at.line)
		}
	}
	l := &q.lines[last.line]
	if len(l.jobs) == len(l.ranks)*l.machines {
		l.ranks = append(l.ranks, rank{distance: math.Inf(1)})
		if q.full++; q.raises > 0 {
			q.raises--
			q.raise()
		}
	}
}

// raise adds to the price of each full rank the most that lets no job there prefer a rank with room. Prices that only
// follow the searches are the least that clear the ranks: where times tie, or have a factor in common, all must rise
// for each job that joins, and each search comes through all ranks. After a raise such jobs join at once. O(n T).
func (q *Queues) raise() {
	most := math.Inf(1)
	for t := range q.lines {
		l := &q.lines[t]
		for k := range len(l.ranks) - 1 {
			price := l.ranks[k].price
			for i := k * l.machines; i < (k+1)*l.machines; i++ {
				row, here := q.cost[l.jobs[i]*len(q.lines):][:len(q.lines)], float64(k+1)*l.seconds[i]+price
				for on := range q.lines {
					if m := &q.lines[on]; m.machines > 0 {
						most = min(most, float64(len(m.ranks))*row[on]-here)
					}
				}
			}
		}
	}
	if most <= 0 {
		return
	}
	for t := range q.lines {
		l := &q.lines[t]
		for k := range len(l.ranks) - 1 {
			l.ranks[k].price += most
		}
	}
}

func (q *Queues) rank(at placeID) *rank { return &q.lines[at.line].ranks[at.rank] }

// seconds is how long a job takes on a type.
func (q *Queues) seconds(job, t int) float64 { return q.cost[job*len(q.lines)+t] }

func (q *Queues) leave(job int) {
	l, at := &q.lines[q.on[job]], q.find(job, q.on[job])
	l.jobs, l.seconds = slices.Delete(l.jobs, at, at+1), slices.Delete(l.seconds, at, at+1)
}

func (q *Queues) enter(job, t int) {
	l, s, at := &q.lines[t], q.seconds(job, t), q.find(job, t)
	l.jobs, l.seconds = slices.Insert(l.jobs, at, job), slices.Insert(l.seconds, at, s)
	q.on[job] = t
}

// find is where a job stands in a line, or would.
func (q *Queues) find(job, t int) int {
	cell, l := job*len(q.lines)+t, &q.lines[t]
	q.stood[cell] = l.find(q.cost[cell], job, q.stood[cell])
	return q.stood[cell]
}

// find is where a job of some seconds stands in the line, or would: fast when that is near a guess.
func (l *line) find(s float64, job, guess int) int {
	low, high := 0, len(l.jobs)
	guess = min(guess, high-1)
	for step := 1; low < high; step *= 2 { // away from the guess, in longer and longer steps
		if l.after(guess, s, job) {
			high = guess
			if guess -= step; guess < low {
				break
			}
		} else {
			low = guess + 1
			if guess += step; guess >= high {
				break
			}
		}
	}
	for low < high {
		if middle := int(uint(low+high) / 2); l.after(middle, s, job) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// after reports whether who stands somewhere stands there or farther to the front than a job of some seconds.
func (l *line) after(at int, s float64, job int) bool {
	return l.seconds[at] < s || l.seconds[at] == s && l.jobs[at] <= job
}

// shortest labels ranks by their distance from a job that joins, price included, up to the nearest with room.
func (q *Queues) shortest(job int) (last placeID, length float64) {
	q.search = q.search[:0]
	most := math.Inf(1) // distance of the nearest rank with room so far
	most = q.jump(job, outside, 0, most)
	for {
		next := q.pop()
		r := q.rank(next.at)
		if r.done || next.distance > r.distance {
			continue
		}
		l := &q.lines[next.at.line]
		if next.at.rank == len(l.ranks)-1 {
			return next.at, next.distance
		}
		r.done = true
		first, end := next.at.rank*l.machines, (next.at.rank+1)*l.machines
		most = q.reach(placeID{next.at.line, next.at.rank + 1}, next.at, -1, next.distance+max(l.seconds[end-1]+l.ranks[next.at.rank+1].price-r.price, 0), most)
		if next.at.rank > 0 {
			most = q.reach(placeID{next.at.line, next.at.rank - 1}, next.at, -1, next.distance+max(l.ranks[next.at.rank-1].price-l.seconds[first]-r.price, 0), most)
		}
		for i := first; i < end; i++ {
			most = q.jump(l.jobs[i], next.at, next.distance-(float64(next.at.rank+1)*l.seconds[i]+r.price), most)
		}
	}
}

// jump reaches the ranks of other types where a job belongs, at base plus its cost and price there.
func (q *Queues) jump(job int, from placeID, base, most float64) float64 {
	first, nearest := job*len(q.lines), 0.0
	if from != outside {
		nearest = q.rank(from).distance // rounding may make what follows less
	}
	for t := range q.lines {
		l := &q.lines[t]
		if t == from.line || l.machines == 0 || base+q.least[first+t] >= most {
			continue
		}
		s := q.cost[first+t]
		at := q.find(job, t)
		k := at / l.machines
		least := float64(k+1)*s + l.ranks[k].price
		most = q.reach(placeID{t, k}, from, job, max(base+least, nearest), most)
		if k > 0 && at%l.machines == 0 {
			before := float64(k)*s + l.ranks[k-1].price
			most = q.reach(placeID{t, k - 1}, from, job, max(base+before, nearest), most)
			least = min(least, before)
		}
		q.least[first+t] = least
	}
	return most
}

// reach notes a way to a rank, unless it is no shorter than others or than one to a rank with room.
func (q *Queues) reach(at, from placeID, job int, distance, most float64) float64 {
	r := q.rank(at)
	if r.done || distance >= r.distance || distance >= most {
		return most
	}
	if math.IsInf(r.distance, 1) {
		q.seen = append(q.seen, at)
	}
	r.distance, r.from, r.job = distance, from, job
	q.push(frontier{distance, at})
	if at.rank == len(q.lines[at.line].ranks)-1 {
		most = distance
	}
	return most
}

func (f frontier) before(g frontier) bool {
	if f.distance != g.distance {
		return f.distance < g.distance
	}
	if f.at.line != g.at.line {
		return f.at.line < g.at.line
	}
	return f.at.rank < g.at.rank
}

func (q *Queues) push(f frontier) {
	q.search = append(q.search, f)
	at := len(q.search) - 1
	for at > 0 && f.before(q.search[(at-1)/2]) {
		q.search[at] = q.search[(at-1)/2]
		at = (at - 1) / 2
	}
	q.search[at] = f
}

func (q *Queues) pop() frontier {
	top, end := q.search[0], len(q.search)-1
	f := q.search[end]
	q.search = q.search[:end]
	at := 0
	for {
		child := 2*at + 1
		if child >= end {
			break
		}
		if child+1 < end && q.search[child+1].before(q.search[child]) {
			child++
		}
		if !q.search[child].before(f) {
			break
		}
		q.search[at] = q.search[child]
		at = child
	}
	if end > 0 {
		q.search[at] = f
	}
	return top
}

func (q *Queues) result() Queued {
	out := Queued{Order: make([][]int, len(q.lines)), Prices: make([][]float64, len(q.lines))}
	for t := range q.lines {
		l := &q.lines[t]
		for i, s := range l.seconds {
			out.Cost += float64(i/l.machines+1) * s
		}
		slices.Reverse(l.jobs)
		out.Order[t] = l.jobs
		for _, r := range l.ranks {
			out.Prices[t] = append(out.Prices[t], r.price)
		}
	}
	return out
}
