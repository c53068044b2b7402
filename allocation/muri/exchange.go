package muri

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/quartet-sched/quartet/core/interference"
)

// exchange lets any two groups divide their jobs anew, as many to each as before, until no two get more efficient together. It ends at a
// local optimum of the sum of efficiencies, which matching by pairs of pairs misses.
func (g *Grouper) exchange(b *bin) {
	for u := range b.groups {
		g.sortByKind(&b.groups[u])
	}
	for again := true; again; {
		again = false
		for u := range b.groups {
			for v := u + 1; v < len(b.groups); v++ {
				x, y := &b.groups[u], &b.groups[v]
				if x.n+y.n > 2 && g.divide(x, y) {
					again = true
				}
			}
		}
	}
}

// gain is what an exchange has to raise the sum of two efficiencies by.
const gain = 1e-9

// divide moves jobs between two groups, and reports whether that made them more efficient.
func (g *Grouper) divide(x, y *team) bool {
	var all [2 * interference.MaxInterleaved]int32
	n := copy(all[:], x.list())
	n += copy(all[n:], y.list())
	key := [2]kinds{g.kindsOf(x.list()), g.kindsOf(y.list())}
	split, known := g.splits[key]
	if !known {
		best := g.efficiency(x.list()) + g.efficiency(y.list()) + gain
		for mask := 1; mask < 1<<n-1; mask++ {
			if bits.OnesCount(uint(mask)) != x.n {
				continue
			}
			p, q := parts(all[:n], mask)
			if !g.fits(p.list()) || !g.fits(q.list()) {
				continue
			}
			if w := g.efficiency(p.list()) + g.efficiency(q.list()); w > best {
				best, split = w, uint8(mask)
			}
		}
		g.splits[key] = split
	}
	if split == 0 {
		return false
	}
	*x, *y = parts(all[:n], int(split))
	g.sortByKind(x)
	g.sortByKind(y)
	return true
}

// parts divides jobs: those whose bits are set, and the others.
func parts(jobs []int32, mask int) (in, out team) {
	for k, job := range jobs {
		t := &out
		if mask>>k&1 == 1 {
			t = &in
		}
		t.jobs[t.n] = job
		t.n++
	}
	return in, out
}

func (g *Grouper) sortByKind(t *team) {
	slices.SortFunc(t.list(), func(x, y int32) int { return cmp.Or(cmp.Compare(g.kind[x], g.kind[y]), cmp.Compare(x, y)) })
}

// settle swaps jobs of the same kind, so that groups that run now stay together.
func (g *Grouper) settle(b *bin, jobs []Job) {
	g.runs = g.runs[:0]
	g.seat = append(g.seat[:0], make([]int32, len(jobs))...)
	for u := range b.groups {
		for _, job := range b.groups[u].list() {
			g.seat[job] = int32(u)
			if jobs[job].Group > 0 {
				g.runs = append(g.runs, job)
			}
		}
	}
	slices.SortFunc(g.runs, func(x, y int32) int { return cmp.Or(cmp.Compare(jobs[x].Group, jobs[y].Group), cmp.Compare(x, y)) })
	g.fixed = append(g.fixed[:0], make([]bool, len(b.groups))...)
	for from, to := 0, 0; from < len(g.runs); from = to {
		for to = from; to < len(g.runs) && jobs[g.runs[to]].Group == jobs[g.runs[from]].Group; to++ {
		}
		if run := g.runs[from:to]; len(run) > 1 && len(run) <= g.largest() {
			g.restore(b, run)
		}
	}
}

// restore gives a group of the same kinds, if there is one, the jobs of a group that runs.
func (g *Grouper) restore(b *bin, run []int32) {
	of := g.kindsOf(run)
	at := 0
	for at < len(b.groups) && (g.fixed[at] || b.groups[at].n != len(run) || g.kindsOf(b.groups[at].list()) != of) {
		at++
	}
	if at == len(b.groups) {
		return
	}
	g.fixed[at] = true
	t := &b.groups[at]
	for _, job := range run {
		if g.seat[job] == int32(at) {
			continue
		}
		for k, other := range t.list() {
			if g.kind[other] == g.kind[job] && !slices.Contains(run, other) {
				from := &b.groups[g.seat[job]]
				from.jobs[slices.Index(from.list(), job)] = other
				t.jobs[k] = job
				g.seat[other], g.seat[job] = g.seat[job], int32(at)
				break
			}
		}
	}
}
