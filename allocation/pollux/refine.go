package pollux

import "slices"

// takersLimit is the number of jobs times nodes up to which every job is considered for every node.
const takersLimit = 1 << 16

// leastGain is the gain below which a change is rounding.
const leastGain = 1e-9

// refine improves the seating on the floor by small changes until none helps: free devices are handed out, replicas
// passed on from job to job, jobs moved.
func (p *allocator) refine() {
	p.listTakers()
	for again := true; again; {
		again = p.grow()
		again = p.pass() || again
	}
}

// listTakers finds the jobs that may gain on nodes where they do not sit: all of them on a small cluster, and otherwise
// those that have less than the relaxation gave them.
func (p *allocator) listTakers() {
	s := &p.search
	s.takers = s.takers[:0]
	few := len(p.jobs)*len(p.usable) <= takersLimit
	for i, count := range s.counts.of {
		if few || int(s.floor.has[i]) < count {
			s.takers = append(s.takers, int32(i))
		}
	}
}

// grow hands out what is free, node by node, the best gain for a device first.
func (p *allocator) grow() bool {
	s := &p.search
	f := &s.floor
	grown := false
	for node := range f.free {
		n := int32(node)
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
			for _, i := range s.takers {
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
	}
	return grown
}

// pass moves replicas on a node from one job to another.
func (p *allocator) pass() bool {
	f := &p.search.floor
	passed := false
	for n := range f.free {
		for again := true; again; {
			again = false
			for _, from := range f.onNode[n] {
				if p.passOn(int32(n), from) {
					again, passed = true, true
					break
				}
			}
		}
	}
	return passed
}

// passOn gives replicas of a job on a node, with what is free there, to the one that gains most from them.
func (p *allocator) passOn(n, from int32) bool {
	s := &p.search
	f, giver := &s.floor, &p.jobs[from]
	here := replicasOn(f.rows[from], n)
	was := giver.costOf(f.rows[from])
	best, gain, give, take := int32(-1), leastGain, int32(0), int32(0)
	for k := int32(1); k <= here; k++ {
		if left := int(f.has[from] - k); left > 0 && left < giver.least {
			continue
		}
		loss := p.costAfter(from, n, -k) - was
		try := func(to int32) {
			j := &p.jobs[to]
			if to == from || p.config.InterferenceAvoiding && !f.maySpan(f.rows[to], n, f.rows[from], k == here) {
				return
			}
			now := j.costOf(f.rows[to])
			for t := k; t <= k+f.free[n]; t += max(f.free[n], 1) {
				if has := int(f.has[to] + t); has < j.least || has > j.most {
					continue
				}
				if g := now - p.costAfter(to, n, t) - loss; g > gain {
					best, gain, give, take = to, g, k, t
				}
			}
		}
		for _, to := range s.takers {
			try(to)
		}
		for _, to := range f.onNode[n] {
			try(to)
		}
	}
	if best < 0 {
		return false
	}
	p.change(from, n, -give)
	p.change(best, n, take)
	return true
}

// maySpan reports whether a job on a row can take replicas on a node without two jobs that span nodes meeting on one,
// once another row has given some of that node, or all.
func (f *floor) maySpan(row []share, n int32, giver []share, all bool) bool {
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
	for _, at := range s.floor.rows[i] {
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
	s.floor.leave(int(i))
	s.floor.seat(int(i), row)
}

// costAfter is what a job would cost with more or fewer replicas on a node.
func (p *allocator) costAfter(i, n, k int32) float64 {
	j, row := &p.jobs[i], p.search.floor.rows[i]
	here := replicasOn(row, n)
	nodes, has := len(row), p.search.floor.has[i]+k
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
	return j.costs[min(nodes/2, 1)][has]
}

func replicasOn(row []share, n int32) int32 {
	for _, at := range row {
		if at.node == n {
			return at.replicas
		}
	}
	return 0
}
