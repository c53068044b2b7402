package pollux

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// variation makes offspring, one seating from two, as published. Its buffers serve all.
type variation struct {
	rand     *rand.Rand
	jobs     []*job // by rank
	capacity []int  // devices by node
	claimed  []bool // by node: no other job that spans nodes may sit there
	avoid    bool
	fitness  func(cost float64) float64

	draft   rows    // before growth and repair
	row     []share // of one job, on the way
	free    []int32 // by node, of the draft; may be negative
	seated  []int32 // by node: jobs of the draft on it
	growing []place // of the draft, by rank and node
	left    []int32 // by node, while repairing
	spanned []bool  // by node: a job that spans nodes has claimed it
	inUse   []bool  // by node
}

func (n *variation) begin(p *allocator, g *geneticSearch) {
	n.rand, n.jobs, n.capacity, n.claimed, n.avoid, n.fitness = g.rand, g.jobs, p.usable, p.claimed, g.avoid, p.fitness
	nodes := len(n.capacity)
	n.free, n.left = slices.Grow(n.free[:0], nodes)[:nodes], slices.Grow(n.left[:0], nodes)[:nodes]
	n.seated = slices.Grow(n.seated[:0], nodes)[:nodes]
	n.spanned, n.inUse = slices.Grow(n.spanned[:0], nodes)[:nodes], slices.Grow(n.inUse[:0], nodes)[:nodes]
}

var (
	resetSkip = skipOf(resetRate)
	thinSkip  = skipOf(thinRate)
)

// skip draws how many trials fail before the next success; see skipOf.
func (n *variation) skip(mean float64) int { return int(n.rand.ExpFloat64() * mean) }

// mutate drafts the rows of one seating, those below a cut from the other, of which some are reset to what their jobs
// hold and some lose nodes.
func (n *variation) mutate(most, below *member, cut int) {
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
func (n *variation) finish(m *member, grow bool) {
	m.clear()
	m.hash, m.cost = 0, 0
	for node, devices := range n.capacity {
		n.left[node], n.spanned[node], n.inUse[node] = int32(devices), n.claimed[node], false
	}
	n.growing = n.growing[:0]
	if grow {
		n.drawGrowth()
	}
	growing := n.growing
	value := 0.0
	for rank, j := range n.jobs {
		n.row = append(n.row[:0], n.draft.row(rank)...)
		for ; len(growing) > 0 && int(growing[0].rank) == rank; growing = growing[1:] {
			n.growOn(growing[0].node)
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

// drawGrowth draws where jobs grow: on each node with a free device, of all jobs one on average, and of those that sit
// there one on average. A place that both draws hit grows once.
func (n *variation) drawGrowth() {
	for node, devices := range n.capacity {
		n.free[node], n.seated[node] = int32(devices), 0
	}
	for _, at := range n.draft.shares {
		n.free[at.node] -= at.replicas
		n.seated[at.node]++
	}
	anyone := skipOf(1 / float64(len(n.jobs)))
	for node, free := range n.free {
		if free < 1 {
			continue
		}
		for rank := n.skip(anyone); rank < len(n.jobs); rank += 1 + n.skip(anyone) {
			n.growing = append(n.growing, place{int32(rank), int32(node)})
		}
	}
	for rank := range n.jobs {
		for _, at := range n.draft.row(rank) {
			if n.free[at.node] > 0 && n.rand.IntN(int(n.seated[at.node])) == 0 {
				n.growing = append(n.growing, place{int32(rank), at.node})
			}
		}
	}
	slices.SortFunc(n.growing, func(a, b place) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.node, b.node)) })
	n.growing = slices.Compact(n.growing)
}

// place is where a job may sit.
type place struct{ rank, node int32 }

// growOn draws the replicas of the row on an open node between what they are and what the node holds.
func (n *variation) growOn(node int32) {
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
func (n *variation) repair(j *job) {
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
func (n *variation) cut(most int) {
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
