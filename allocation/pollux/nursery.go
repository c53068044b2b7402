package pollux

import (
	"math"
	"math/rand/v2"
	"slices"
)

// nursery makes one seating from two, as published. Its buffers serve all.
type nursery struct {
	rand     *rand.Rand
	jobs     []*job // by rank
	capacity []int  // devices by node
	claimed  []bool // by node: no other job that spans nodes may sit there
	avoid    bool
	fitness  func(cost float64) float64

	draft   rows    // before growth and repair
	row     []share // of one job, on the way
	grown   []int32 // nodes on which it has grown
	free    []int32 // by node, of the draft; may be negative
	open    []int32 // nodes with a free device
	left    []int32 // by node, while repairing
	spanned []bool  // by node: a job that spans nodes has claimed it
	inUse   []bool  // by node
}

func (n *nursery) begin(p *allocator, g *geneticSearch) {
	n.rand, n.jobs, n.capacity, n.claimed, n.avoid, n.fitness = g.rand, g.jobs, p.usable, p.claimed, g.avoid, p.fitness
	nodes := len(n.capacity)
	n.free, n.left = slices.Grow(n.free[:0], nodes)[:nodes], slices.Grow(n.left[:0], nodes)[:nodes]
	n.spanned, n.inUse = slices.Grow(n.spanned[:0], nodes)[:nodes], slices.Grow(n.inUse[:0], nodes)[:nodes]
}

var (
	resetSkip = skipOf(resetRate)
	thinSkip  = skipOf(thinRate)
	growSkip  = skipOf(growRate)
)

// skip draws how many trials fail before the next success; see skipOf.
func (n *nursery) skip(mean float64) int { return int(n.rand.ExpFloat64() * mean) }

// mutate drafts the rows of one seating, those below a cut from the other, of which some are reset to what their jobs
// hold and some lose nodes.
func (n *nursery) mutate(most, below *member, cut int) {
	n.draft.clear()
	reset, thin := n.skip(resetSkip), n.skip(thinSkip)
	for rank, j := range n.jobs {
		from := most
		if rank < cut {
			from = below
		}
		row := from.row(rank)
		if rank == reset {
			row = j.row
			reset += 1 + n.skip(resetSkip)
		}
		if rank == thin {
			n.row = n.row[:0]
			for _, at := range row {
				if n.rand.Float64() >= dropRate {
					n.row = append(n.row, at)
				}
			}
			row = n.row
			thin += 1 + n.skip(thinSkip)
		}
		n.draft.add(row)
	}
}

// finish makes a seating of the draft: it lets jobs grow on free nodes if told so, repairs conflicts and weighs it up.
func (n *nursery) finish(m *member, grow bool) {
	m.clear()
	m.hash, m.cost = 0, 0
	for node, devices := range n.capacity {
		n.left[node], n.spanned[node], n.inUse[node] = int32(devices), n.claimed[node], false
	}
	next, skip := math.MaxInt, 0.0 // rank that grows next
	if grow && n.listOpen() {
		next, skip = n.skip(growSkip), skipOf(1/float64(len(n.open)))
	}
	value := 0.0
	for rank, j := range n.jobs {
		n.row = append(n.row[:0], n.draft.row(rank)...)
		if rank == next {
			n.grow(skip)
			next += 1 + n.skip(growSkip)
		}
		n.repair(j)
		for _, at := range n.row {
			n.inUse[at.node] = true
			m.hash = (m.hash ^ uint64(rank)<<40 ^ uint64(at.node)<<8 ^ uint64(at.replicas)) * 0x9e3779b97f4a7c15
			m.hash ^= m.hash >> 29
		}
		m.cost += j.costOf(n.row)
		value += j.speed(n.row)
		m.add(n.row)
	}
	devices := 0
	for node, used := range n.inUse {
		if used {
			devices += n.capacity[node]
		}
	}
	m.fitness, m.utility = n.fitness(m.cost), 0
	if devices > 0 {
		m.utility = value / float64(devices)
	}
}

// listOpen finds the nodes on which the draft leaves a device free, and reports whether there is one.
func (n *nursery) listOpen() bool {
	for node, devices := range n.capacity {
		n.free[node] = int32(devices)
	}
	for _, at := range n.draft.shares {
		n.free[at.node] -= at.replicas
	}
	n.open = n.open[:0]
	for node, free := range n.free {
		if free > 0 {
			n.open = append(n.open, int32(node))
		}
	}
	return len(n.open) > 0
}

// grow lets the row grow on one open node on average, and on one of those where it sits on average. A node that both
// draws hit grows once.
func (n *nursery) grow(skip float64) {
	n.grown = n.grown[:0]
	seated := 0
	for _, at := range n.row {
		if n.free[at.node] > 0 {
			seated++
		}
	}
	for i := range n.row {
		if node := n.row[i].node; n.free[node] > 0 && n.rand.IntN(seated) == 0 {
			n.growOn(node)
			n.grown = append(n.grown, node)
		}
	}
	for at := n.skip(skip); at < len(n.open); at += 1 + n.skip(skip) {
		if node := n.open[at]; !slices.Contains(n.grown, node) {
			n.growOn(node)
		}
	}
}

// growOn draws the replicas of the row on an open node between what they are and what the node holds.
func (n *nursery) growOn(node int32) {
	i := 0
	for i < len(n.row) && n.row[i].node < node {
		i++
	}
	if i < len(n.row) && n.row[i].node == node {
		n.row[i].replicas += int32(n.rand.IntN(n.capacity[node] - int(n.row[i].replicas) + 1))
	} else if replicas := int32(n.rand.IntN(n.capacity[node] + 1)); replicas > 0 {
		n.row = slices.Insert(n.row, i, share{node, replicas})
	}
}

// repair makes the row one that its job can hold beside those of lower rank, in the published order of steps.
func (n *nursery) repair(j *job) {
	if n.avoid && len(n.row) > 1 {
		n.row = slices.DeleteFunc(n.row, func(at share) bool {
			claimed := n.spanned[at.node]
			n.spanned[at.node] = true
			return claimed
		})
	}
	if replicasOf(n.row) > j.most || len(n.row) > widestRow {
		n.cut(j.most)
	}
	kept := n.row[:0]
	for _, at := range n.row {
		if at.replicas = min(at.replicas, n.left[at.node]); at.replicas > 0 {
			n.left[at.node] -= at.replicas
			kept = append(kept, at)
		}
	}
	if n.row = kept; replicasOf(kept) < j.least {
		n.row = kept[:0]
	}
}

// cut leaves the row so many replicas, on nodes in random order.
func (n *nursery) cut(most int) {
	n.rand.Shuffle(len(n.row), func(a, b int) { n.row[a], n.row[b] = n.row[b], n.row[a] })
	n.row = n.row[:min(len(n.row), widestRow)]
	left, kept := int32(most), n.row[:0]
	for _, at := range n.row {
		if at.replicas = min(at.replicas, left); at.replicas > 0 {
			left -= at.replicas
			kept = append(kept, at)
		}
	}
	slices.SortFunc(kept, func(a, b share) int { return int(a.node - b.node) })
	n.row = kept
}

// skipOf is the mean of the exponential whose whole part is the number of failures before a success of that rate.
func skipOf(rate float64) float64 { return -1 / math.Log1p(-rate) }
