package pollux

import (
	"math"
	"slices"
)

// patternSteps is how often the prices of pieces are corrected at most for one plan.
const patternSteps = 60

// closeEnough is the distance of cost and bound, as a part of the bound, at which they are not corrected any more.
const closeEnough = 2e-4

// patterns bounds the cost of any seating on a large cluster, where the price of a device alone proves too little: three
// replicas leave a device of a node of four that may suit nobody, those that stay are in the way of others, and with
// interference avoided a job that spans nodes shares none with another one.
//
// Pieces have prices: so many replicas of a job on one node, as all that it has or as a part of what spans nodes. A node
// is worth the dearest of what fits on it together: pieces, and jobs that stay. No seating costs less than what the jobs
// choose at these prices, less the worth of all nodes: Lagrange's bound for the choice of a pattern for each node. The
// prices follow the subgradient, in the steps of Polyak towards the cost of the plan.
// O(jobs × replicas + nodes × devices²) a step.
type patterns struct {
	whole, part      []float64 // prices by replicas of a piece
	asked, askedPart []float64 // subgradient: pieces that the jobs choose, less those on the nodes
	spread           []float64 // by replicas: the cheapest parts that make up so many
	first            []int32   // by replicas: the part to begin with
	fill             []float64 // by devices: the dearest whole pieces on them
	filled           []int32   // by devices: the piece to begin with, 0 to leave a device
	choices          []choice  // by job
	packs            [2][]pack // of a node, by devices of those that stay: none of them spans nodes, one does
	scale            float64   // of a step
}

// choice is what a job takes at the prices.
type choice struct {
	cost     float64 // with the price
	replicas int32
	many     bool
	stays    int32 // nodes that it stays on
}

// start sets the prices to that of a device.
func (b *patterns) start(p *allocator) {
	size := p.perNode + 1
	for _, s := range []*[]float64{&b.whole, &b.part, &b.asked, &b.askedPart, &b.fill} {
		*s = slices.Grow((*s)[:0], size)[:size]
	}
	if !p.config.InterferenceAvoiding { // a part is as good as a whole piece
		b.part, b.askedPart = b.whole, b.asked
	}
	b.filled = slices.Grow(b.filled[:0], size)[:size]
	for i := range b.packs {
		b.packs[i] = slices.Grow(b.packs[i][:0], size)[:size]
	}
	most := 0
	for i := range p.jobs {
		most = max(most, p.jobs[i].most)
	}
	b.spread, b.first = slices.Grow(b.spread[:0], most+1)[:most+1], slices.Grow(b.first[:0], most+1)[:most+1]
	b.choices = slices.Grow(b.choices[:0], len(p.jobs))[:len(p.jobs)]
	b.scale = 1
	for k := range size {
		b.whole[k] = p.search.counts.price * float64(k)
		b.part[k] = b.whole[k]
	}
}

// raise corrects the prices and returns the best bound found, which is at least the one given.
func (b *patterns) raise(p *allocator, bound float64) float64 {
	since := 0
	for range patternSteps {
		at := b.at(p)
		if at > bound {
			bound, since = at, 0
		} else if since++; since == 6 { // the target is out of reach
			b.scale, since = b.scale*0.6, 0
		}
		norm := 0.0
		for k := range b.asked {
			norm += b.asked[k]*b.asked[k] + b.askedPart[k]*b.askedPart[k]
		}
		step := b.scale * (p.plan.cost - at) / norm
		if !p.improvable(bound) || math.IsNaN(step) || math.IsInf(step, 0) {
			break
		}
		for k := 1; k < len(b.whole); k++ {
			b.whole[k] = max(b.whole[k]+step*b.asked[k], 0)
			b.part[k] = max(b.part[k]+step*b.askedPart[k], 0)
		}
	}
	return bound
}

// improvable reports whether the plan may be worth more search.
func (p *allocator) improvable(bound float64) bool {
	return p.plan.cost > bound+closeEnough*math.Abs(bound)
}

// byPatterns seats what the jobs choose at the prices of pieces, and returns the bound that these prove.
func (p *allocator) byPatterns(bound float64) float64 {
	b := &p.search.patterns
	b.start(p)
	for range 2 { // again with the better plan for a target
		bound = b.raise(p, bound)
		if !p.improvable(bound) {
			break
		}
		for i := range p.jobs {
			p.search.counts.of[i] = int(b.choices[i].replicas)
			if b.stays(&p.jobs[i]) {
				p.search.counts.of[i] = p.jobs[i].held
			}
		}
		p.seatCounts(b.stays)
		p.refine()
		p.propose()
		p.polish()
		p.refine()
		p.propose()
	}
	return bound
}

// stays reports whether a job keeps its seats at the prices.
func (b *patterns) stays(j *job) bool {
	return j.held > 0 && int(b.choices[j.index].stays) == len(j.row)
}

// at is what the prices prove. It leaves the subgradient in asked and askedPart.
func (b *patterns) at(p *allocator) float64 {
	clear(b.asked)
	clear(b.askedPart)
	b.spreadOut()
	b.fillUp()
	sum := 0.0
	for i := range p.jobs {
		b.choices[i] = b.choose(p, &p.jobs[i])
		sum += b.choices[i].cost
		b.ask(&b.choices[i], 1)
	}
	for n, devices := range p.usable {
		if devices > 0 {
			sum -= b.worth(p, int32(n), devices)
		}
	}
	b.asked[0], b.askedPart[0] = 0, 0
	return sum
}

// choose is what costs a job least at the prices, if its seats change.
func (b *patterns) choose(p *allocator, j *job) choice {
	c := choice{cost: j.costs[0][0]}
	for k := max(j.least, 1); k <= j.most; k++ {
		if k < len(j.resized[0]) {
			if cost := j.resized[0][k] + b.whole[k]; cost < c.cost {
				c = choice{cost: cost, replicas: int32(k)}
			}
		}
		if k > 1 && p.nodes > 1 {
			if cost := j.resized[1][k] + b.spread[k]; cost < c.cost {
				c = choice{cost: cost, replicas: int32(k), many: true}
			}
		}
	}
	return c
}

// ask adds what a job chose to the subgradient, so many times.
func (b *patterns) ask(c *choice, times float64) {
	if !c.many {
		b.asked[c.replicas] += times
		return
	}
	for k := c.replicas; k > 0; k -= b.first[k] {
		b.askedPart[b.first[k]] += times
	}
}

// spreadOut finds the cheapest parts of any number of replicas. One part may be all of them, which proves less, but
// nothing wrong.
func (b *patterns) spreadOut() {
	for k := 1; k < len(b.spread); k++ {
		b.spread[k] = math.Inf(1)
		for piece := 1; piece < len(b.part) && piece <= k; piece++ {
			if cost := b.part[piece] + b.spread[k-piece]; cost < b.spread[k] {
				b.spread[k], b.first[k] = cost, int32(piece)
			}
		}
	}
}

// fillUp finds the dearest whole pieces on any number of devices.
func (b *patterns) fillUp() {
	for d := 1; d < len(b.fill); d++ {
		b.fill[d], b.filled[d] = b.fill[d-1], 0
		for piece := 1; piece <= d; piece++ {
			if worth := b.whole[piece] + b.fill[d-piece]; worth > b.fill[d] {
				b.fill[d], b.filled[d] = worth, int32(piece)
			}
		}
	}
}
