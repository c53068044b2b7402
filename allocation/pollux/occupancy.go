package pollux

import (
	"math/bits"
	"slices"
)

// occupancy is the cluster while jobs are being seated: what is free on each node, and who sits there.
type occupancy struct {
	free   []int32
	spans  []int32   // by node: jobs on it that span nodes
	onNode [][]int32 // by node: jobs on it
	byFree []nodeSet // by number of free devices
	has    []int32   // by job: its replicas
	row    []share   // under construction
	newRow []bool    // by job: its row changed since its loss was bounded
	newJob []bool    // by node: the row of a job on it changed since
	log    []was     // changes that can be undone
	seating
}

// was is what a job had before a change.
type was struct {
	job int32
	row []share
}

// nodeSet is a set of nodes, one bit each.
type nodeSet []uint64

func (s nodeSet) flip(n int32) { s[n/64] ^= 1 << (n % 64) }

// empty clears it.
func (f *occupancy) empty(p *allocator) {
	f.reset(len(p.jobs))
	f.has = slices.Grow(f.has[:0], len(p.jobs))[:len(p.jobs)]
	clear(f.has)
	nodes := len(p.usable)
	f.newRow, f.newJob = allTrue(f.newRow, len(p.jobs)), allTrue(f.newJob, nodes)
	f.free = slices.Grow(f.free[:0], nodes)[:nodes]
	f.spans = slices.Grow(f.spans[:0], nodes)[:nodes]
	clear(f.spans)
	for len(f.onNode) < nodes {
		f.onNode = append(f.onNode, nil)
	}
	for len(f.byFree) <= p.perNode {
		f.byFree = append(f.byFree, nil)
	}
	words := (nodes + 63) / 64
	for k := range f.byFree {
		f.byFree[k] = slices.Grow(f.byFree[k][:0], words)[:words]
		clear(f.byFree[k])
	}
	for n, devices := range p.usable {
		f.free[n] = int32(devices)
		if p.claimed[n] {
			f.spans[n] = 1
		}
		f.onNode[n] = f.onNode[n][:0]
		f.byFree[devices].flip(int32(n))
	}
}

// seat gives a job without seats a row, which is copied.
func (f *occupancy) seat(i int32, row []share) { f.occupy(i, f.keep(row)) }

func (f *occupancy) occupy(i int32, row []share) {
	f.rows[i], f.newRow[i] = row, true
	for _, at := range row {
		f.take(at.node, at.replicas)
		f.onNode[at.node] = append(f.onNode[at.node], i)
		f.has[i] += at.replicas
		if len(row) > 1 {
			f.spans[at.node]++
		}
	}
}

// leave takes a job's seats away.
func (f *occupancy) leave(i int32) {
	row := f.rows[i]
	for _, at := range row {
		f.take(at.node, -at.replicas)
		on := f.onNode[at.node]
		here := slices.Index(on, i)
		f.onNode[at.node] = slices.Delete(on, here, here+1)
		if len(row) > 1 {
			f.spans[at.node]--
		}
	}
	f.rows[i], f.has[i] = nil, 0
}

// reseat gives a job another row and remembers the one it had.
func (f *occupancy) reseat(i int32, row []share) {
	f.log = append(f.log, was{i, f.rows[i]})
	f.leave(i)
	f.seat(i, row)
}

// undo takes all remembered changes back.
func (f *occupancy) undo() {
	for _, w := range slices.Backward(f.log) {
		f.leave(w.job)
		f.occupy(w.job, w.row)
	}
	f.log = f.log[:0]
}

// take occupies devices of a node.
func (f *occupancy) take(n, devices int32) {
	f.byFree[f.free[n]].flip(n)
	f.free[n] -= devices
	f.byFree[f.free[n]].flip(n)
	f.newJob[n] = true
}

// allTrue returns n true values, in the memory of a slice if it has room.
func allTrue(s []bool, n int) []bool {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = true
	}
	return s
}

// smallest is the first node with the least room that holds k replicas, -1 if there is none.
func (f *occupancy) smallest(k int) int32 {
	for free := k; free < len(f.byFree); free++ {
		if n := f.firstOf(free, false, nil); n >= 0 {
			return n
		}
	}
	return -1
}

// roomiest is the first node with the most room, -1 if all are full.
func (f *occupancy) roomiest() int32 {
	for free := len(f.byFree) - 1; free > 0; free-- {
		if n := f.firstOf(free, false, nil); n >= 0 {
			return n
		}
	}
	return -1
}

// firstOf is the first node with so many devices free, outside a row, and if told so without a job that spans nodes; -1
// if there is none.
func (f *occupancy) firstOf(free int, alone bool, outside []share) int32 {
	for w, word := range f.byFree[free] {
		for ; word != 0; word &= word - 1 {
			n := int32(w*64 + bits.TrailingZeros64(word))
			if (!alone || f.spans[n] == 0) && !sits(outside, n) {
				return n
			}
		}
	}
	return -1
}

// across builds a row of k replicas over nodes: the emptiest first, the rest where it fits best. It is shorter if there
// is no room, and empty if one node would do. It is valid until the next call.
func (f *occupancy) across(k int, alone bool) []share {
	row := f.row[:0]
	for k > 0 {
		n := int32(-1)
		for free := k; free < len(f.byFree) && n < 0; free++ {
			n = f.firstOf(free, alone, row)
		}
		for free := min(k, len(f.byFree)) - 1; free > 0 && n < 0; free-- {
			n = f.firstOf(free, alone, row)
		}
		if n < 0 {
			break
		}
		replicas := min(int32(k), f.free[n])
		row = append(row, share{n, replicas})
		k -= int(replicas)
	}
	f.row = row
	if len(row) < 2 {
		return nil
	}
	slices.SortFunc(row, func(a, b share) int { return int(a.node - b.node) })
	return row
}

func sits(row []share, n int32) bool {
	return slices.ContainsFunc(row, func(at share) bool { return at.node == n })
}
