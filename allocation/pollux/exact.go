package pollux

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// exactSearch holds the buffers of the exact search.
type exactSearch struct {
	held   [][]share   // what each job holds, by job
	costs  [][]float64 // by job and count, each at its best shape and without regard to the others: the relaxation
	counts []int       // by job
	table  []uint16    // of the dynamic program: count by job and devices
	best   []float64
	next   []float64
	trial  seating
	free   []int32
	spans  []bool // by node: a job that spans nodes sits there
	onNode [][]int32
	order  []int
}

// tableLimit is the number of steps up to which counts are found by dynamic programming.
const tableLimit = 20_000_000

// exact finds the plan: the best counts if nodes did not matter, then the best of several ways to seat them.
func (p *allocator) exact(v *core.View) {
	s := &p.search
	s.held, s.costs = s.held[:0], s.costs[:0]
	steps := 0
	for i := range p.jobs {
		j := &p.jobs[i]
		s.held = append(s.held, rowOf(j))
		s.costs = append(s.costs, p.relaxed(j, s.held[i]))
		steps += (j.most + 1) * p.devices
	}
	var bound float64
	if steps <= tableLimit {
		bound = p.countByTable()
	} else {
		bound = p.countByPrice()
	}
	p.plan.cost = math.Inf(1)
	for _, keep := range []func(*job) bool{
		func(*job) bool { return true },
		func(j *job) bool { return j.held >= p.perNode || j.heldNodes > 1 },
		func(*job) bool { return false },
	} {
		p.seatCounts(keep)
		p.propose()
	}
	p.stayAsIs()
	p.propose()
	p.gaps.add(p.fitness(bound), p.fitness(p.plan.cost))
}

// propose completes the trial seating and takes it for the plan if it is better.
func (p *allocator) propose() {
	p.grow()
	p.shift()
	s := &p.search
	s.trial.cost = 0
	for i := range p.jobs {
		s.trial.cost += p.rowCost(i, s.trial.rows[i])
	}
	if s.trial.cost < p.plan.cost {
		p.plan, s.trial = s.trial, p.plan
	}
}

// rowCost is a job's part of the objective on a row.
func (p *allocator) rowCost(i int, row []share) float64 {
	j := &p.jobs[i]
	return p.cost(j, j.value(row, !slices.Equal(row, p.search.held[i])))
}

// relaxed is the least cost of each count: on one node where it fits, across nodes otherwise, or as the job sits.
func (p *allocator) relaxed(j *job, held []share) []float64 {
	costs := make([]float64, j.most+1)
	costs[0] = p.cost(j, 0)
	for k := 1; k <= j.most; k++ {
		costs[k] = math.Inf(1)
		if k < j.least {
			continue
		}
		if k <= p.perNode {
			costs[k] = p.cost(j, j.one[k]*j.move)
		}
		if k > 1 {
			costs[k] = min(costs[k], p.cost(j, j.many[k]*j.move))
		}
	}
	j.stay = math.Inf(1)
	if k := j.held; k > 0 && k >= j.least && k <= j.most && p.holds(held) {
		j.stay = p.cost(j, j.value(held, false))
		costs[k] = min(costs[k], j.stay)
	}
	return costs
}

// holds reports whether all nodes of a row are usable.
func (p *allocator) holds(row []share) bool {
	for _, s := range row {
		if p.usable[s.node] < int(s.replicas) {
			return false
		}
	}
	return true
}

// countByTable finds the counts of least relaxed cost by dynamic programming over devices, and returns that cost.
func (p *allocator) countByTable() float64 {
	s := &p.search
	width := p.devices + 1
	s.table = slices.Grow(s.table[:0], len(p.jobs)*width)[:len(p.jobs)*width]
	s.best = append(s.best[:0], make([]float64, width)...)
	s.next = slices.Grow(s.next[:0], width)[:width]
	for i := range p.jobs {
		costs := s.costs[i]
		row := s.table[i*width : (i+1)*width]
		for g := range width {
			least, count := s.best[g]+costs[0], 0
			for k := 1; k < len(costs) && k <= g; k++ {
				if c := s.best[g-k] + costs[k]; c < least {
					least, count = c, k
				}
			}
			s.next[g], row[g] = least, uint16(count)
		}
		s.best, s.next = s.next, s.best
	}
	s.counts = slices.Grow(s.counts[:0], len(p.jobs))[:len(p.jobs)]
	left := p.devices
	for i := len(p.jobs) - 1; i >= 0; i-- {
		s.counts[i] = int(s.table[i*width+left])
		left -= s.counts[i]
	}
	if len(p.jobs) == 0 {
		return 0
	}
	return s.best[p.devices]
}

// countByPrice finds counts by a price for a device that bisection raises until demand fits, and returns the bound that
// the best price gives (Lagrange's).
func (p *allocator) countByPrice() float64 {
	s := &p.search
	s.counts = slices.Grow(s.counts[:0], len(p.jobs))[:len(p.jobs)]
	demand := func(price float64) (devices int, bound float64) {
		for i := range p.jobs {
			least, count := s.costs[i][0], 0
			for k := 1; k < len(s.costs[i]); k++ {
				if c := s.costs[i][k] + price*float64(k); c < least {
					least, count = c, k
				}
			}
			s.counts[i] = count
			devices += count
			bound += least
		}
		return devices, bound - price*float64(p.devices)
	}
	devices, bound := demand(0)
	if devices <= p.devices {
		return bound
	}
	low, high := 0.0, 1.0
	for devices > p.devices {
		low, high = high, high*4
		var b float64
		devices, b = demand(high)
		bound = max(bound, b)
	}
	for range 60 {
		price := (low + high) / 2
		devices, b := demand(price)
		bound = max(bound, b)
		if devices > p.devices {
			low = price
		} else {
			high = price
		}
	}
	demand(high)
	return bound
}

// begin empties the cluster and the trial.
func (p *allocator) begin() {
	s := &p.search
	s.trial.reset(len(p.jobs))
	s.free, s.spans = s.free[:0], s.spans[:0]
	for _, n := range p.usable {
		s.free = append(s.free, int32(n))
		s.spans = append(s.spans, false)
	}
}

// put gives a job a row.
func (p *allocator) put(i int, row []share) {
	s := &p.search
	s.trial.rows[i] = row
	for _, at := range row {
		s.free[at.node] -= at.replicas
		s.spans[at.node] = s.spans[at.node] || len(row) > 1
	}
}

// seatCounts seats the counts: first those that keep their seats, then the widest, on whole nodes and the smallest
// rest that will do.
func (p *allocator) seatCounts(keep func(*job) bool) {
	s := &p.search
	p.begin()
	s.order = s.order[:0]
	for i := range p.jobs {
		j := &p.jobs[i]
		switch {
		case s.counts[i] == 0:
		case s.counts[i] == j.held && !math.IsInf(j.stay, 1) && keep(j):
			p.put(i, s.held[i])
		default:
			s.order = append(s.order, i)
		}
	}
	slices.SortFunc(s.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.counts[b], s.counts[a]), cmp.Compare(p.jobs[a].rank, p.jobs[b].rank))
	})
	for _, i := range s.order {
		if row := p.fit(i, s.counts[i]); row != nil {
			p.put(i, row)
		}
	}
}

// fit finds a row of k replicas for a job on what is free, or of fewer if there is no room; nil if there is none that
// it can use.
func (p *allocator) fit(i, k int) []share {
	s, j := &p.search, &p.jobs[i]
	if k <= p.perNode {
		if n := p.smallest(k); n >= 0 {
			return []share{{int32(n), int32(k)}}
		}
	}
	across := p.across(k)
	if replicasOf(across) < max(j.least, 1) {
		across = nil
	}
	if across != nil && k > p.perNode {
		return across
	}
	// fewer on one node may beat as many across nodes
	n, most := -1, int32(0)
	for node, free := range s.free {
		if free > most {
			n, most = node, free
		}
	}
	if n < 0 || int(most) < j.least {
		return across
	}
	here := []share{{int32(n), min(most, int32(k))}}
	if across != nil && p.rowCost(i, across) < p.rowCost(i, here) {
		return across
	}
	return here
}

// smallest is the node with the least room that holds k replicas, -1 if there is none.
func (p *allocator) smallest(k int) int {
	best := -1
	for n, free := range p.search.free {
		if int(free) >= k && (best < 0 || free < p.search.free[best]) {
			best = n
			if int(free) == k {
				break
			}
		}
	}
	return best
}

// across seats k replicas on nodes without another job that spans nodes: the emptiest first, the rest where it fits
// best. It seats fewer if there is no room, and nothing if one node would do.
func (p *allocator) across(k int) []share {
	s := &p.search
	var row []share
	used := func(n int) bool {
		return slices.ContainsFunc(row, func(at share) bool { return at.node == int32(n) })
	}
	for k > 0 {
		best := -1
		for n, free := range s.free {
			if free == 0 || p.config.InterferenceAvoiding && s.spans[n] || used(n) {
				continue
			}
			if best < 0 || better(int(free), int(s.free[best]), k) {
				best = n
			}
		}
		if best < 0 {
			break
		}
		take := min(k, int(s.free[best]))
		row = append(row, share{int32(best), int32(take)})
		k -= take
	}
	if len(row) < 2 {
		return nil
	}
	slices.SortFunc(row, func(a, b share) int { return int(a.node - b.node) })
	return row
}

// better prefers the least room that holds all k, and the most room where none does.
func better(free, best, k int) bool {
	switch {
	case free >= k && best >= k:
		return free < best
	case free >= k || best >= k:
		return free >= k
	default:
		return free > best
	}
}

// stayAsIs leaves every job that can where it sits.
func (p *allocator) stayAsIs() {
	p.begin()
	for i := range p.jobs {
		if !math.IsInf(p.jobs[i].stay, 1) {
			p.put(i, p.search.held[i])
		}
	}
}

// grow hands out what is still free, the best gain for a device first.
func (p *allocator) grow() {
	s := &p.search
	p.listNodes()
	for n := range s.free {
		for s.free[n] > 0 {
			best, gain, add := -1, 0.0, int32(0)
			try := func(i int) {
				j, row := &p.jobs[i], s.trial.rows[i]
				has := replicasOf(row)
				if p.config.InterferenceAvoiding && !p.maySpan(row, n) {
					return
				}
				was := p.rowCost(i, row)
				for k := int32(1); k <= s.free[n] && has+int(k) <= j.most; k++ {
					if has+int(k) < j.least {
						continue
					}
					if g := (was - p.rowCost(i, extended(row, n, k))) / float64(k); g > gain+1e-12 {
						best, gain, add = i, g, k
					}
				}
			}
			empty := int(s.free[n]) == p.usable[n]
			for i := range p.jobs {
				if row := s.trial.rows[i]; len(row) == 0 || empty || sits(row, n) {
					try(i)
				}
			}
			if best < 0 {
				break
			}
			if !sits(s.trial.rows[best], n) {
				s.onNode[n] = append(s.onNode[n], int32(best))
			}
			s.trial.rows[best] = extended(s.trial.rows[best], n, add)
			s.free[n] -= add
			for _, at := range s.trial.rows[best] {
				s.spans[at.node] = s.spans[at.node] || len(s.trial.rows[best]) > 1
			}
		}
	}
}

// maySpan reports whether a job on a row can take replicas on a node without two jobs that span nodes meeting on one.
func (p *allocator) maySpan(row []share, n int) bool {
	if sits(row, n) || len(row) == 0 {
		return true
	}
	if p.search.spans[n] {
		return false
	}
	return len(row) > 1 || !p.search.spans[row[0].node]
}

// listNodes lists the jobs on each node.
func (p *allocator) listNodes() {
	s := &p.search
	for len(s.onNode) < len(s.free) {
		s.onNode = append(s.onNode, nil)
	}
	for n := range s.onNode {
		s.onNode[n] = s.onNode[n][:0]
	}
	for i, row := range s.trial.rows {
		for _, at := range row {
			s.onNode[at.node] = append(s.onNode[at.node], int32(i))
		}
	}
}

func sits(row []share, n int) bool {
	return slices.ContainsFunc(row, func(at share) bool { return at.node == int32(n) })
}

// extended is a row with k replicas more, or fewer, on a node; a share of none is left out.
func extended(row []share, n int, k int32) []share {
	longer := make([]share, 0, len(row)+1)
	placed := false
	for _, at := range row {
		if at.node == int32(n) {
			at.replicas += k
			placed = true
		} else if at.node > int32(n) && !placed {
			longer = append(longer, share{int32(n), k})
			placed = true
		}
		if at.replicas > 0 {
			longer = append(longer, at)
		}
	}
	if !placed {
		longer = append(longer, share{int32(n), k})
	}
	return longer
}

// shift moves replicas from one job to another on the same node while that helps.
func (p *allocator) shift() {
	s := &p.search
	for n := range s.free {
		for again := true; again; {
			again = false
			for _, from := range s.onNode[n] {
				if p.shiftFrom(n, int(from)) {
					again = true
					break
				}
			}
		}
	}
}

// shiftFrom gives replicas of a job on a node to the one that gains most from them.
func (p *allocator) shiftFrom(n, from int) bool {
	s := &p.search
	giver, row := &p.jobs[from], s.trial.rows[from]
	at := slices.IndexFunc(row, func(a share) bool { return a.node == int32(n) })
	if at < 0 {
		return false
	}
	was := p.rowCost(from, row)
	best, gain, amount := -1, 1e-9, int32(0)
	for k := int32(1); k <= row[at].replicas; k++ {
		left := replicasOf(row) - int(k)
		if left > 0 && left < giver.least {
			continue
		}
		loss := p.rowCost(from, extended(row, n, -k)) - was
		take := func(to int) {
			taker, theirs := &p.jobs[to], s.trial.rows[to]
			if has := replicasOf(theirs) + int(k); to == from || has > taker.most || has < taker.least {
				return
			}
			if g := p.rowCost(to, theirs) - p.rowCost(to, extended(theirs, n, k)) - loss; g > gain {
				best, gain, amount = to, g, k
			}
		}
		for _, to := range s.onNode[n] {
			take(int(to))
		}
		for to := range p.jobs {
			if len(s.trial.rows[to]) == 0 {
				take(to)
			}
		}
	}
	if best < 0 {
		return false
	}
	if !sits(s.trial.rows[best], n) {
		s.onNode[n] = append(s.onNode[n], int32(best))
	}
	s.trial.rows[best] = extended(s.trial.rows[best], n, amount)
	s.trial.rows[from] = extended(row, n, -amount)
	if !sits(s.trial.rows[from], n) {
		s.onNode[n] = slices.DeleteFunc(s.onNode[n], func(i int32) bool { return int(i) == from })
	}
	return true
}

// fitness is the power mean that a sum of costs stands for.
func (p *allocator) fitness(cost float64) float64 {
	total := 0.0
	for i := range p.jobs {
		total += p.jobs[i].weight
	}
	if total == 0 {
		return 1
	}
	switch power := p.config.FairnessP; power {
	case 0:
		return math.Exp(-cost / total)
	case 1:
		return -cost / total
	default:
		return math.Pow(-cost*power/total, 1/power)
	}
}

// gaps collects how far plans were from what bounds them.
type gaps struct {
	rounds int
	sum    float64
	last   float64 // 0 for a plan that is proven best
}

func (g *gaps) add(bound, reached float64) {
	g.last = max(1-reached/bound, 0)
	if bound <= 0 || math.IsNaN(g.last) {
		g.last = 0
	}
	g.rounds++
	g.sum += g.last
}

// Gap is the certified distance of the plans so far from the best possible ones, as a part of the fitness: of the last
// one, and the mean.
func (p *allocator) Gap() (last, mean float64) {
	if p.gaps.rounds == 0 {
		return 0, 0
	}
	return p.gaps.last, p.gaps.sum / float64(p.gaps.rounds)
}
