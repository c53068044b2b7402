package pollux

import "slices"

// forceLimit is the number of forced rows, times nodes, after which a round stops trying every node for every job, which
// bounds its time. A round of the published workloads, on 16 nodes, forces at most 500 rows.
const forceLimit = 1 << 20

// force lets jobs take a row that would suit them better, or leave room to others, from whoever sits there, who must look
// for another. It reports whether one of them was worth it.
func (p *allocator) force() bool {
	s := &p.search
	f := &s.occupancy
	forced := false
	p.slacken()
	for i := range p.jobs {
		j, id := &p.jobs[i], int32(i)
		if j.held > 0 && j.canStay() && !p.tooDear(id, j.stays, j.held) && !slices.Equal(f.rows[i], j.row) && p.forceRow(id, j.row) {
			forced = true
		}
		if !s.few || s.forced >= forceLimit || s.counts.of[i] == 0 { // too large to try everywhere
			continue
		}
		forced = p.forceOne(id) || forced
		forced = p.forceMore(id) || forced
	}
	return forced
}

// forceOne tries every node for a job.
func (p *allocator) forceOne(i int32) bool {
	f, j, count := &p.search.occupancy, &p.jobs[i], p.search.counts.of[i]
	displaced := p.displaces(f.rows[i])
	for n, devices := range p.usable {
		k := min(count, devices)
		if k < max(j.least, 1) || p.tooDear(i, j.resized[0][k], k) || n > 0 && p.alike(int32(n-1), int32(n)) || sits(f.rows[i], int32(n)) && len(f.rows[i]) == 1 && int(f.has[i]) == k {
			continue
		}
		if (displaced && k == count || j.resized[0][k] < j.costOf(f.rows[i])-leastGain) && p.forceRow(i, []share{{int32(n), int32(k)}}) {
			return true
		}
	}
	return false
}

// displaces reports whether a row takes seats that somebody would rather have kept.
func (p *allocator) displaces(row []share) bool {
	s := &p.search
	for _, at := range row {
		for _, i := range s.heldOn[at.node] {
			if p.jobs[i].stays < p.jobs[i].costOf(s.occupancy.rows[i])-leastGain {
				return true
			}
		}
	}
	return false
}

// forceMore tries every node for a job besides those that it has.
func (p *allocator) forceMore(i int32) bool {
	f, j := &p.search.occupancy, &p.jobs[i]
	if f.has[i] == 0 {
		return false
	}
	for n, devices := range p.usable {
		if sits(f.rows[i], int32(n)) {
			continue
		}
		k := min(devices, j.most-int(f.has[i]))
		if k < 1 || n > 0 && p.alike(int32(n-1), int32(n)) || p.tooDear(i, j.resized[1][int(f.has[i])+k], int(f.has[i])+k) {
			continue
		}
		row := append(slices.Clone(f.rows[i]), share{int32(n), int32(k)})
		slices.SortFunc(row, func(a, b share) int { return int(a.node - b.node) })
		if p.forceRow(i, row) {
			return true
		}
	}
	return false
}

// alike reports whether two nodes hold as much of the same jobs, now and before.
func (p *allocator) alike(a, b int32) bool {
	s := &p.search
	f := &s.occupancy
	if f.free[a] != f.free[b] || p.claimed[a] != p.claimed[b] || !slices.Equal(f.onNode[a], f.onNode[b]) || !slices.Equal(s.heldOn[a], s.heldOn[b]) {
		return false
	}
	for _, i := range f.onNode[a] {
		if replicasOn(f.rows[i], a) != replicasOn(f.rows[i], b) {
			return false
		}
	}
	for _, i := range s.heldOn[a] {
		if replicasOn(p.jobs[i].row, a) != replicasOn(p.jobs[i].row, b) {
			return false
		}
	}
	return true
}

// slacken measures what a better plan may lose to the relaxation.
func (p *allocator) slacken() {
	s := &p.search
	cost := 0.0
	for i := range p.jobs {
		cost += p.jobs[i].costOf(s.occupancy.rows[i])
	}
	s.slack = cost - s.counts.priced(p.devices) - leastGain
	s.moved = slices.Grow(s.moved[:0], len(p.jobs))[:len(p.jobs)]
	for i := range p.jobs {
		j := &p.jobs[i]
		s.moved[i] = 0
		if j.held == 0 || !slices.Equal(s.occupancy.rows[i], j.row) {
			continue
		}
		least := j.costs[0][0]
		for k := 1; k <= j.most; k++ {
			cost := j.resized[1][k]
			if k < len(j.resized[0]) {
				cost = min(cost, j.resized[0][k])
			}
			least = min(least, cost+s.counts.price*float64(k))
		}
		s.moved[i] = least - s.counts.least[i]
	}
}

// tooDear reports whether no plan with a job at that cost for so many replicas can be better than the one on the occupancy.
func (p *allocator) tooDear(i int32, cost float64, replicas int) bool {
	c := &p.search.counts
	return cost+c.price*float64(replicas)-c.least[i] >= p.search.slack
}

// open reports whether the jobs on the nodes of a row leave room for it when asked to.
func (p *allocator) open(i int32, row []share) bool {
	s := &p.search
	for _, at := range row {
		if p.config.InterferenceAvoiding && len(row) > 1 && p.claimed[at.node] {
			return false
		}
		room := s.occupancy.free[at.node]
		for _, other := range s.occupancy.onNode[at.node] {
			if other == i || s.moved[other] < s.slack {
				room += replicasOn(s.occupancy.rows[other], at.node)
			} else if p.config.InterferenceAvoiding && len(row) > 1 && len(s.occupancy.rows[other]) > 1 {
				return false
			}
		}
		if room < at.replicas {
			return false
		}
	}
	return true
}

// forceRow seats a job on a row, lets those that have to leave find other seats, and takes it all back unless it was
// worth it.
func (p *allocator) forceRow(i int32, row []share) bool {
	if !p.open(i, row) {
		return false
	}
	p.search.forced += len(p.usable)
	f := &p.search.occupancy
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
	if p.tooDearWith(i, evicted) {
		f.undo()
		return false
	}
	p.restore(left)
	for at := 1; at < evicted; at++ {
		if victim := f.log[at].job; !p.logged(victim, at) {
			p.refit(victim)
		}
	}
	for _, at := range left {
		p.growOn(at.node)
	}
	debt := p.debt()
	for at := 1; at < evicted && debt >= -leastGain; at++ {
		if victim := f.log[at].job; !p.logged(victim, at) && (p.search.few || f.has[victim] == 0) && p.swapIn(victim, debt) {
			debt = p.debt()
		}
	}
	if debt < -leastGain {
		f.log = f.log[:0]
		p.search.slack += debt
		return true
	}
	f.undo()
	return false
}

// debt is what the changes in the log cost.
func (p *allocator) debt() float64 {
	f := &p.search.occupancy
	debt := 0.0
	for at, w := range f.log {
		if !p.logged(w.job, at) {
			debt += p.jobs[w.job].costOf(f.rows[w.job]) - p.jobs[w.job].costOf(w.row)
		}
	}
	return debt
}

// tooDearWith reports whether no better plan can hold a job on its row, moving those that had to leave it.
func (p *allocator) tooDearWith(i int32, evicted int) bool {
	s := &p.search
	dear := p.jobs[i].costOf(s.occupancy.rows[i]) + s.counts.price*float64(s.occupancy.has[i]) - s.counts.least[i]
	for at := 1; at < evicted; at++ {
		if victim := s.occupancy.log[at].job; !p.logged(victim, at) {
			dear += s.moved[victim]
		}
	}
	return dear >= s.slack
}

// logged reports whether a job is in the log before a position.
func (p *allocator) logged(i int32, before int) bool {
	for _, w := range p.search.occupancy.log[:before] {
		if w.job == i {
			return true
		}
	}
	return false
}

// evict frees up to so many devices of a node, of the job that loses least by it.
func (p *allocator) evict(n, devices int32) {
	f := &p.search.occupancy
	victim, least, give := int32(-1), 0.0, int32(0)
	for _, i := range f.onNode[n] {
		j := &p.jobs[i]
		if p.search.moved[i] >= p.search.slack {
			continue
		}
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
	f, j := &s.occupancy, &p.jobs[i]
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
}

// restore gives the jobs that held devices of a row's nodes their seats back, where these are free again.
func (p *allocator) restore(row []share) {
	s := &p.search
	f := &s.occupancy
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
	f, j := &p.search.occupancy, &p.jobs[i]
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
