package pollux

import (
	"math"
	"slices"
)

// fewLimit is the number of jobs times nodes up to which every job is considered for every node.
const fewLimit = 1 << 16

// leastGain is the gain below which a change is rounding.
const leastGain = 1e-9

// refine improves the seating on the occupancy by small changes until none helps: free devices are handed out, replicas
// passed on from job to job, jobs moved.
func (p *allocator) refine() {
	p.search.takers.list(p)
	for again := true; again; {
		again = p.grow()
		again = p.pass() || again
	}
}

// grow hands out what is free, node by node.
func (p *allocator) grow() bool {
	grown := false
	for n := range p.search.occupancy.free {
		grown = p.growOn(int32(n)) || grown
	}
	return grown
}

// growOn hands out what is free on a node, the best gain for a device first.
func (p *allocator) growOn(n int32) bool {
	s := &p.search
	f := &s.occupancy
	grown := false
	for f.free[n] > 0 {
		best, gain, add := int32(-1), leastGain, int32(0)
		try := func(i int32) {
			j := &p.jobs[i]
			if p.config.InterferenceAvoiding && !f.maySpan(f.rows[i], n, nil, false) {
				return
			}
			was := j.costOf(f.rows[i])
			for k := max(1, int32(j.least)-f.has[i]); k <= f.free[n] && int(f.has[i]+k) <= j.most; k++ {
				if g := (was - p.costAfter(i, n, k)) / float64(k); g > gain {
					best, gain, add = i, g, k
				}
			}
		}
		for _, i := range s.takers.jobs {
			try(i)
		}
		for _, i := range f.onNode[n] {
			try(i)
		}
		if best < 0 {
			break
		}
		p.change(best, n, add)
		grown = true
	}
	return grown
}

// offer is replicas that one job would give to another on a node.
type offer struct {
	from, to, node int32
	give, take     int32 // the taker may add what is free
	gain           float64
}

// pass moves replicas on a node from one job to another.
func (p *allocator) pass() bool {
	s := &p.search
	passed := false
	p.boundGains()
	for n := range s.occupancy.free {
		for again := true; again; {
			again = false
			for _, from := range s.occupancy.onNode[n] {
				o := offer{gain: leastGain}
				p.improveByTakers(&o, int32(n), from)
				p.improve(&o, int32(n), from, s.occupancy.onNode[n])
				if o.take > 0 {
					p.accept(&o)
					again, passed = true, true
					break
				}
			}
		}
	}
	return passed
}

// swapIn lets a job take replicas where that gains most, if it is more than so much.
func (p *allocator) swapIn(to int32, least float64) bool {
	s := &p.search
	s.only = append(s.only[:0], to)
	o := offer{gain: max(least, leastGain)}
	clear(s.gainBound)
	if p.boundGain(to); s.mostGain[to] <= o.gain {
		return false
	}
	most := s.mostGain[to]
	for n, jobs := range s.occupancy.onNode[:len(s.occupancy.free)] {
		if most-p.lossOn(int32(n)) <= o.gain {
			continue
		}
		for _, from := range jobs {
			if s.gainBound[replicasOn(s.occupancy.rows[from], int32(n))+s.occupancy.free[n]]-s.leastLoss[from] > o.gain {
				p.improve(&o, int32(n), from, s.only)
			}
		}
	}
	if o.take > 0 {
		p.change(o.from, o.node, -o.give)
		p.change(to, o.node, o.take)
	}
	return o.take > 0
}

// lossOn bounds from below what a job on a node loses by giving replicas away: it costs no less than the cheapest option
// with fewer than it has.
func (p *allocator) lossOn(n int32) float64 {
	s := &p.search
	f := &s.occupancy
	if !f.newJob[n] {
		return s.nodeLoss[n]
	}
	least := math.Inf(1)
	for _, i := range f.onNode[n] {
		if f.newRow[i] {
			options, at := s.counts.options[i], 0
			for at+1 < len(options) && options[at+1].replicas < f.has[i] {
				at++
			}
			s.leastLoss[i], f.newRow[i] = options[at].cost-p.jobs[i].costOf(f.rows[i]), false
		}
		least = min(least, s.leastLoss[i])
	}
	s.nodeLoss[n], f.newJob[n] = least, false
	return least
}

func (p *allocator) accept(o *offer) {
	p.change(o.from, o.node, -o.give)
	p.change(o.to, o.node, o.take)
	for _, i := range [2]int32{o.from, o.to} {
		p.boundGain(i)
		p.search.takers.update(i, p.search.gains)
	}
}

// boundGains bounds what any job could gain from so many devices more, so that most offers need not be worked out.
func (p *allocator) boundGains() {
	s := &p.search
	clear(s.gainBound)
	for i := range p.jobs {
		p.boundGain(int32(i))
		s.takers.set(int32(i), s.gains)
	}
	s.takers.bound()
}

// boundGain lifts the bounds to what a job could gain, which it leaves in gains.
func (p *allocator) boundGain(i int32) {
	s := &p.search
	options, has, at := s.counts.options[i], s.occupancy.has[i], 0
	now := p.jobs[i].costOf(s.occupancy.rows[i])
	for k := range s.gainBound {
		for at+1 < len(options) && options[at+1].replicas <= has+int32(k) {
			at++
		}
		s.gains[k] = now - options[at].cost
		s.gainBound[k] = max(s.gainBound[k], s.gains[k])
	}
	s.mostGain[i] = now - options[at].cost
}

// improve raises an offer to the best one of a job's replicas on a node, with what is free there, to one of some jobs.
func (p *allocator) improve(o *offer, n, from int32, takers []int32) {
	s := &p.search
	for k := range replicasOn(s.occupancy.rows[from], n) {
		k++
		loss, worth := p.lossOf(o, n, from, k)
		if !worth {
			continue
		}
		for _, to := range takers {
			if s.mostGain[to]-loss > o.gain {
				p.consider(o, n, from, to, k, loss)
			}
		}
	}
}

// improveByTakers is improve for all takers.
func (p *allocator) improveByTakers(o *offer, n, from int32) {
	s := &p.search
	for k := range replicasOn(s.occupancy.rows[from], n) {
		k++
		loss, worth := p.lossOf(o, n, from, k)
		if !worth {
			continue
		}
		devices := k + s.occupancy.free[n]
		gains := s.takers.gains[devices]
		for block, most := range s.takers.most[devices] {
			if most-loss <= o.gain {
				continue
			}
			if s.takers.scanned >= scanLimit {
				return
			}
			s.takers.scanned += takerBlock
			first := block * takerBlock
			for at, gain := range gains[first:min(first+takerBlock, len(gains))] {
				if gain-loss > o.gain {
					p.consider(o, n, from, s.takers.jobs[first+at], k, loss)
				}
			}
		}
	}
}

// lossOf is what a job loses by giving k replicas on a node, and whether it can give them and any job might gain enough by
// them for a better offer.
func (p *allocator) lossOf(o *offer, n, from, k int32) (loss float64, worth bool) {
	f, giver := &p.search.occupancy, &p.jobs[from]
	if left := int(f.has[from] - k); left > 0 && left < giver.least {
		return 0, false
	}
	loss = p.costAfter(from, n, -k) - giver.costOf(f.rows[from])
	return loss, !(p.search.gainBound[k+f.free[n]]-loss <= o.gain)
}

// consider raises an offer to one of k replicas of a job on a node to another job, where that gains more.
func (p *allocator) consider(o *offer, n, from, to, k int32, loss float64) {
	f, j := &p.search.occupancy, &p.jobs[to]
	if to == from || p.config.InterferenceAvoiding && !f.maySpan(f.rows[to], n, f.rows[from], k == replicasOn(f.rows[from], n)) {
		return
	}
	now := j.costOf(f.rows[to])
	for t := k; t <= k+f.free[n]; t += max(f.free[n], 1) {
		if has := int(f.has[to] + t); has < j.least || has > j.most {
			continue
		}
		if g := now - p.costAfter(to, n, t) - loss; g > o.gain {
			*o = offer{from, to, n, k, t, g}
		}
	}
}

// maySpan reports whether a job on a row can take replicas on a node without two jobs that span nodes meeting on one,
// once another row has given some of that node, or all.
func (f *occupancy) maySpan(row []share, n int32, giver []share, all bool) bool {
	if len(row) == 0 || sits(row, n) {
		return true
	}
	spanning := func(at int32) int32 {
		count := f.spans[at]
		if len(giver) > 1 && all && (at == n || len(giver) == 2 && sits(giver, at)) {
			count--
		}
		return count
	}
	return spanning(n) == 0 && (len(row) > 1 || spanning(row[0].node) == 0)
}

// change gives a job more or fewer replicas on a node.
func (p *allocator) change(i, n, k int32) {
	s := &p.search
	row := s.row[:0]
	placed := false
	for _, at := range s.occupancy.rows[i] {
		if at.node == n {
			at.replicas += k
			placed = true
		} else if at.node > n && !placed {
			row = append(row, share{n, k})
			placed = true
		}
		if at.replicas > 0 {
			row = append(row, at)
		}
	}
	if !placed {
		row = append(row, share{n, k})
	}
	s.row = row
	s.occupancy.reseat(i, row)
}

// costAfter is what a job would cost with more or fewer replicas on a node.
func (p *allocator) costAfter(i, n, k int32) float64 {
	j, row := &p.jobs[i], p.search.occupancy.rows[i]
	here := replicasOn(row, n)
	nodes, has := len(row), p.search.occupancy.has[i]+k
	switch {
	case here == 0:
		nodes++
	case here+k == 0:
		nodes--
	}
	if int(has) == j.held && nodes == len(j.row) && !slices.ContainsFunc(j.row, func(at share) bool {
		after := replicasOn(row, at.node)
		if at.node == n {
			after += k
		}
		return after != at.replicas
	}) {
		return j.stays
	}
	costs := &j.costs
	if j.easy && j.meetsAfter(row, n, here+k) {
		costs = &j.resized
	}
	return costs[min(nodes/2, 1)][has]
}

func replicasOn(row []share, n int32) int32 {
	for _, at := range row {
		if at.node == n {
			return at.replicas
		}
	}
	return 0
}
