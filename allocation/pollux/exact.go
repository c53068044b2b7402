package pollux

import (
	"cmp"
	"math"
	"slices"
)

// exactSearch holds the buffers of the exact search.
type exactSearch struct {
	counts    counts
	occupancy occupancy
	order     []int
	patterns  patterns
	row       []share
	takers    takers
	only      []int32
	forced    int  // rows tried in this round, times nodes
	few       bool // jobs and nodes: larger changes can be tried everywhere
	clipped   []share
	heldOn    [][]int32 // by node: jobs that hold devices of it
	gainBound []float64 // by devices: what any job could gain from so many more
	gains     []float64 // by devices: what the job at hand could gain
	mostGain  []float64 // by job: what it could gain from as many more as a node holds
	slack     float64   // how much more than its least, at the price, the jobs of a better plan can cost together
	moved     []float64 // by job: how much of the slack it takes to move it from where it stays
	leastLoss []float64 // by job: what it loses at least by giving replicas away; see lossOn
	nodeLoss  []float64 // by node: the least of its jobs' losses
}

// exact finds the plan: the best counts if nodes did not matter, then the best of several ways to seat them. It stops at
// a plan that is proven best.
func (p *allocator) exact() {
	bound := p.search.counts.find(p)
	p.search.gainBound = slices.Grow(p.search.gainBound[:0], p.perNode+1)[:p.perNode+1]
	p.search.gains = slices.Grow(p.search.gains[:0], p.perNode+1)[:p.perNode+1]
	p.search.mostGain = slices.Grow(p.search.mostGain[:0], len(p.jobs))[:len(p.jobs)]
	p.search.leastLoss = slices.Grow(p.search.leastLoss[:0], len(p.jobs))[:len(p.jobs)]
	p.search.nodeLoss = slices.Grow(p.search.nodeLoss[:0], len(p.usable))[:len(p.usable)]
	p.search.forced, p.search.takers.scanned = 0, 0
	p.plan.reset(len(p.jobs))
	p.plan.cost = math.Inf(1)
	for _, seat := range [...]func(*allocator){
		func(p *allocator) { p.seatCounts(func(*job) bool { return true }) },
		func(p *allocator) { p.seatCounts(func(j *job) bool { return j.held >= p.perNode || len(j.row) > 1 }) },
		(*allocator).stayAsIs,
		(*allocator).polish,
	} {
		seat(p)
		p.refine()
		p.propose()
		if p.plan.cost <= bound+rounding*math.Abs(bound) {
			break
		}
	}
	if (!p.search.few || p.search.forced >= forceLimit) && p.improvable(bound) {
		bound = p.byPatterns(bound)
	}
	p.certify(bound)
}

// rounding is how far two sums of the same costs may be apart.
const rounding = 1e-12

// propose takes the seating on the occupancy for the plan if it is better.
func (p *allocator) propose() {
	f := &p.search.occupancy
	f.cost = 0
	for i := range p.jobs {
		f.cost += p.jobs[i].costOf(f.rows[i])
	}
	if f.cost < p.plan.cost {
		p.plan, f.seating = f.seating, p.plan
	}
}

// polish tries larger changes on the plan so far.
func (p *allocator) polish() {
	f := &p.search.occupancy
	f.empty(p)
	for i, row := range p.plan.rows {
		f.seat(int32(i), row)
	}
	p.listHeld()
	for p.force() {
		p.refine()
	}
}

func (p *allocator) listHeld() {
	s := &p.search
	for len(s.heldOn) < len(p.usable) {
		s.heldOn = append(s.heldOn, nil)
	}
	for n := range s.heldOn {
		s.heldOn[n] = s.heldOn[n][:0]
	}
	for i := range p.jobs {
		for _, at := range p.jobs[i].row {
			s.heldOn[at.node] = append(s.heldOn[at.node], int32(i))
		}
	}
}

// seatCounts seats the counts: first those that keep their seats, then the widest, on whole nodes and the smallest
// rest that will do.
func (p *allocator) seatCounts(stays func(*job) bool) {
	s := &p.search
	s.occupancy.empty(p)
	s.order = s.order[:0]
	for i, count := range s.counts.of {
		j := &p.jobs[i]
		switch {
		case count == 0:
		case count == j.held && j.canStay() && stays(j):
			s.occupancy.seat(int32(i), j.row)
		default:
			s.order = append(s.order, i)
		}
	}
	slices.SortFunc(s.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.counts.of[b], s.counts.of[a]), cmp.Compare(p.jobs[a].rank, p.jobs[b].rank))
	})
	for _, i := range s.order {
		s.occupancy.seat(int32(i), p.fit(i, s.counts.of[i]))
	}
}

// stayAsIs leaves every job that can where it sits.
func (p *allocator) stayAsIs() {
	p.search.occupancy.empty(p)
	for i := range p.jobs {
		if j := &p.jobs[i]; j.canStay() {
			p.search.occupancy.seat(int32(i), j.row)
		}
	}
}

// fit finds a row of k replicas for a job on what is free, or of fewer if there is no room; nil if there is none that
// it can use. It is valid until the next call.
func (p *allocator) fit(i, k int) []share {
	s, j := &p.search, &p.jobs[i]
	if k <= p.perNode {
		if n := s.occupancy.smallest(k); n >= 0 {
			return s.oneNode(n, k)
		}
	}
	across := s.occupancy.across(k, p.config.InterferenceAvoiding)
	if replicasOf(across) < max(j.least, 1) {
		across = nil
	}
	if across != nil && k > p.perNode {
		return across
	}
	// fewer on one node may beat as many across nodes
	n := s.occupancy.roomiest()
	if n < 0 || int(s.occupancy.free[n]) < j.least {
		return across
	}
	here := s.oneNode(n, min(int(s.occupancy.free[n]), k))
	if across != nil && j.costOf(across) < j.costOf(here) {
		return across
	}
	return here
}

func (s *exactSearch) oneNode(n int32, k int) []share {
	s.row = append(s.row[:0], share{n, int32(k)})
	return s.row
}

// fitness is the power mean that a sum of costs stands for.
func (p *allocator) fitness(cost float64) float64 {
	if p.weight == 0 {
		return 1
	}
	switch power := p.config.FairnessP; power {
	case 0:
		return math.Exp(-cost / p.weight)
	case 1:
		return -cost / p.weight
	case -1:
		return p.weight / cost
	default:
		return math.Pow(-cost*power/p.weight, 1/power)
	}
}

// certify notes how far the plan is from what bounds it, as a part of the fitness: how much higher that could be at the
// same efficiency. NaN where the numbers prove nothing.
func (p *allocator) certify(bound float64) {
	cost, efficiency := p.plan.cost, p.planEfficiency()
	best, got := p.fitness(bound+efficiency), p.fitness(cost+efficiency)
	switch {
	case math.IsNaN(cost-bound) || math.IsInf(cost-bound, 0):
		p.gap = math.NaN()
	case cost <= bound+rounding*math.Abs(bound):
		p.gap = 0
	case best > 0 && got >= 0 && !math.IsInf(best, 1):
		p.gap = max(1-got/best, 0)
	default:
		p.gap = math.NaN()
	}
}

// planEfficiency is what the plan owes to the worth of efficient devices.
func (p *allocator) planEfficiency() float64 {
	if p.efficiency == 0 {
		return 0
	}
	sum := 0.0
	for i, row := range p.plan.rows {
		j := &p.jobs[i]
		sum += p.efficiency * j.devices * j.speed(row) * j.factor(row)
	}
	return sum
}

// GapRatio is the certified distance of the last plan from the best possible one, as a part of the fitness: 0 for one
// that is proven best, NaN for unknown. The genetic search proves nothing.
func (p *allocator) GapRatio() float64 { return p.gap }
