package pollux

import "slices"

// force lets jobs take a row that would suit them better from whoever sits there, who must look for another. It reports
// whether one of them was worth it.
func (p *allocator) force() bool {
	s := &p.search
	f := &s.floor
	forced := false
	for i := range p.jobs {
		j, id := &p.jobs[i], int32(i)
		if j.stays < j.costOf(f.rows[i])-leastGain && p.forceRow(id, j.row) {
			forced = true
		}
		count := s.counts.of[i]
		if !s.few || count == 0 || slices.Equal(f.rows[i], j.row) && j.stays <= s.counts.cost(i)+leastGain {
			continue // it cannot do better, or the cluster is too large to try
		}
		for n, devices := range p.usable {
			k := min(count, devices)
			if k >= max(j.least, 1) && (k == count || j.costs[0][k] < j.costOf(f.rows[i])) && p.forceRow(id, []share{{int32(n), int32(k)}}) {
				forced = true
				break
			}
		}
	}
	return forced
}

// forceRow seats a job on a row, lets those that have to leave find other seats, and takes it all back unless it was
// worth it.
func (p *allocator) forceRow(i int32, row []share) bool {
	f := &p.search.floor
	f.log = f.log[:0]
	left := f.rows[i]
	f.reseat(i, nil)
	for _, at := range row {
		if p.config.InterferenceAvoiding && len(row) > 1 && f.spans[at.node] > 0 {
			for _, other := range f.onNode[at.node] {
				if len(f.rows[other]) > 1 {
					p.change(other, at.node, -replicasOn(f.rows[other], at.node))
					break
				}
			}
		}
		for f.free[at.node] < at.replicas {
			p.evict(at.node, at.replicas-f.free[at.node])
		}
	}
	evicted := len(f.log)
	f.reseat(i, row)
	for at := 1; at < evicted; at++ {
		if victim := f.log[at].job; !p.logged(victim, at) {
			p.refit(victim)
		}
	}
	p.restore(left)
	before, after := 0.0, 0.0
	for at, w := range f.log {
		if !p.logged(w.job, at) {
			before += p.jobs[w.job].costOf(w.row)
			after += p.jobs[w.job].costOf(f.rows[w.job])
		}
	}
	if after < before-leastGain {
		f.log = f.log[:0]
		return true
	}
	f.undo()
	return false
}

// logged reports whether a job is in the log before a position.
func (p *allocator) logged(i int32, before int) bool {
	for _, w := range p.search.floor.log[:before] {
		if w.job == i {
			return true
		}
	}
	return false
}

// evict frees up to so many devices of a node, of the job that loses least by it.
func (p *allocator) evict(n, devices int32) {
	f := &p.search.floor
	victim, least, give := int32(-1), 0.0, int32(0)
	for _, i := range f.onNode[n] {
		j := &p.jobs[i]
		k := min(devices, replicasOn(f.rows[i], n))
		if loss := (p.costAfter(i, n, -k) - j.costOf(f.rows[i])) / float64(k); victim < 0 || loss < least {
			victim, least, give = i, loss, k
		}
	}
	p.change(victim, n, -give)
}

// refit seats a job anew if it finds something better than what it was left with.
func (p *allocator) refit(i int32) {
	s := &p.search
	f, j := &s.floor, &p.jobs[i]
	left := f.rows[i]
	best := j.costOf(left)
	if int(f.has[i]) < j.least {
		left, best = nil, j.costs[0][0]
	}
	f.reseat(i, nil)
	row := left
	if fit := p.fit(int(i), max(s.counts.of[i], j.least, 1)); fit != nil && j.costOf(fit) < best {
		row, best = fit, j.costOf(fit)
	}
	if clipped := p.clipped(i); len(clipped) > 0 && j.costOf(clipped) < best {
		row = clipped
	}
	f.reseat(i, row)
	if s.few || len(row) == 0 {
		p.rob(i)
	}
}

// restore gives the jobs that held devices of a row's nodes their seats back, where these are free again.
func (p *allocator) restore(row []share) {
	s := &p.search
	f := &s.floor
	for _, at := range row {
		for _, i := range s.heldOn[at.node] {
			j := &p.jobs[i]
			left := f.rows[i]
			if j.stays >= j.costOf(left)-leastGain {
				continue
			}
			f.reseat(i, nil)
			if clipped := p.clipped(i); slices.Equal(clipped, j.row) {
				left = clipped
			}
			f.reseat(i, left)
		}
	}
}

// clipped is what is free of a job's seats.
func (p *allocator) clipped(i int32) []share {
	f, j := &p.search.floor, &p.jobs[i]
	row := p.search.clipped[:0]
	for _, at := range j.row {
		if p.config.InterferenceAvoiding && len(j.row) > 1 && f.spans[at.node] > 0 {
			continue
		}
		if at.replicas = min(at.replicas, f.free[at.node]); at.replicas > 0 {
			row = append(row, at)
		}
	}
	p.search.clipped = row
	if k := replicasOf(row); k < j.least || k > j.most {
		return nil
	}
	return row
}
