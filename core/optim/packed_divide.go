package optim

import (
	"cmp"
	"math"
	"slices"
)

// PairShare is the fraction of time that two jobs spend together on a type.
type PairShare struct {
	Jobs  [2]int // rows of the Level, ascending
	Type  int
	Share float64
}

// negligible is the share below which a pair, or a job on a type, is left out: the method leaves about so much of what it means to be nothing.
const negligible = 1e-7

// division divides the time of classes and pairs among their members.
type division struct {
	p      Packed
	even   bool
	alone  [][]float64   // by job and type
	parts  [][][]float64 // by pair, of the members of its first and its second class
	pairs  []PairShare
	listed []service
}

// divide gives the members of classes their shares, so that each reaches its level. It is false, with a class and the place of a member in it,
// where that one would have to be beside itself: in no class with others the program tells that it cannot.
func (s *PackedSolver) divide(p Packed, r *classResult, jobs int, even bool) (d *division, class, member int, ok bool) {
	d = &division{p: p, even: even, alone: make([][]float64, jobs), parts: make([][][]float64, len(p.Pairs))}
	numbers := make([]float64, jobs*len(p.Capacity))
	for i := range d.alone {
		d.alone[i], numbers = numbers[:len(p.Capacity)], numbers[len(p.Capacity):]
	}
	for i, pair := range p.Pairs {
		d.parts[i] = [][]float64{make([]float64, len(p.Classes[pair.First].Members)), nil}
		if d.parts[i][1] = d.parts[i][0]; pair.Second != pair.First {
			d.parts[i][1] = make([]float64, len(p.Classes[pair.Second].Members))
		}
	}
	for a := range p.Classes {
		if s.alike(p.Classes[a].Members) {
			d.evenly(r, a)
		} else {
			s.byDemand(d, r, a)
		}
	}
	for i, pair := range p.Pairs {
		if r.together[i] < negligible {
			continue
		}
		if pair.First != pair.Second {
			d.match(i)
			continue
		}
		if member, ok := d.circle(i); !ok {
			return nil, pair.First, member, false
		}
	}
	for _, shares := range d.alone {
		for j, x := range shares {
			if x < negligible {
				shares[j] = 0
			}
		}
	}
	return d, 0, 0, true
}

// evenly gives each member of a class as much of everything.
func (d *division) evenly(r *classResult, class int) {
	members := d.p.Classes[class].Members
	n := float64(len(members))
	for _, i := range members {
		for j, time := range r.alone[class] {
			d.alone[i][j] = time / n
		}
	}
	for i, pair := range d.p.Pairs {
		for side, of := range [2]int{pair.First, pair.Second} {
			if of != class {
				continue
			}
			for m := range members {
				d.parts[i][side][m] += r.together[i] / n
			}
		}
	}
}

// piece is a part of the time of a class: alone on a type, on one side of a pair, or idle.
type piece struct {
	service
	pair, on int // pair < 0: alone on a type, and where that is < 0, too, idle
}

// byDemand gives the members of a class what they ask for and the same part more: the most demanding first, each the slowest unit of time in a
// row, of time by falling rate, that is enough for it. That is enough for those after it whatever it takes (the condition of packedCut holds
// for what is left).
func (s *PackedSolver) byDemand(d *division, r *classResult, class int) {
	line := d.line(r, class)
	order := make([]int, len(d.p.Classes[class].Members))
	demand := make([]float64, len(order))
	for m, i := range d.p.Classes[class].Members {
		asked, _ := s.levels.at(i, r.level)
		order[m], demand[m] = m, max(asked, 0)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(demand[y], demand[x]) })
	more, asked := math.Inf(1), 0.0
	for k, m := range order {
		if asked += demand[m]; asked > 0 {
			more = min(more, done(line, 0, float64(k+1))/asked)
		}
	}
	for k, m := range order {
		want, latest := 0.0, float64(len(order)-k-1)
		if demand[m] > 0 {
			want = demand[m] * more
		}
		from, to := 0.0, latest // enough from the first on, perhaps up to the second
		if done(line, latest, latest+1) >= want {
			from = latest
		}
		for range 60 {
			if middle := (from + to) / 2; done(line, middle, middle+1) >= want {
				from = middle
			} else {
				to = middle
			}
		}
		line = d.take(line, class, m, from, from+1)
	}
}

// line is the time of a class by falling rate, with what its members idle at the end.
func (d *division) line(r *classResult, class int) []piece {
	c := &d.p.Classes[class]
	idle := float64(len(c.Members))
	var line []piece
	add := func(rate, time float64, pair, on int) {
		if time > 0 {
			line = append(line, piece{service{rate, time}, pair, on})
			idle -= time
		}
	}
	for j, time := range r.alone[class] {
		add(c.Rates[j], time, -1, j)
	}
	for i, pair := range d.p.Pairs {
		if pair.First == class {
			time := r.together[i]
			if pair.Second == class {
				time *= 2
			}
			add(pair.Rates[0], time, i, 0)
		} else if pair.Second == class {
			add(pair.Rates[1], r.together[i], i, 1)
		}
	}
	slices.SortStableFunc(line, func(a, b piece) int { return cmp.Compare(b.rate, a.rate) })
	return append(line, piece{service{0, max(idle, 0) + 1e-9}, -1, -1})
}

// done is what is done on a line between two moments.
func done(line []piece, from, to float64) float64 {
	sum, at := 0.0, 0.0
	for i := range line {
		if overlap := min(to, at+line[i].time) - max(from, at); overlap > 0 {
			sum += overlap * line[i].rate
		}
		if at += line[i].time; at >= to {
			break
		}
	}
	return sum
}

// take gives a member the line between two moments, and returns what is left of it.
func (d *division) take(line []piece, class, member int, from, to float64) []piece {
	at := 0.0
	for i := range line {
		piece := &line[i]
		overlap := min(to, at+piece.time) - max(from, at)
		at += piece.time
		if overlap <= 0 {
			continue
		}
		piece.time -= overlap
		switch {
		case piece.pair >= 0:
			d.parts[piece.pair][piece.on][member] += overlap
		case piece.on >= 0:
			d.alone[d.p.Classes[class].Members[member]][piece.on] += overlap
		}
	}
	return slices.DeleteFunc(line, func(p piece) bool { return p.time <= 0 })
}

// share adds a share of a pair.
func (d *division) share(pair, first, second int, share float64) {
	if share < negligible {
		return
	}
	at := &d.p.Pairs[pair]
	i, k := d.p.Classes[at.First].Members[first], d.p.Classes[at.Second].Members[second]
	d.pairs = append(d.pairs, PairShare{[2]int{min(i, k), max(i, k)}, at.Type, share})
}

// match brings the members of two classes together: evenly each with each, or each with as few as it takes, in their order.
func (d *division) match(pair int) {
	first, second := d.parts[pair][0], d.parts[pair][1]
	total := 0.0
	for _, z := range first {
		total += z
	}
	if d.even {
		for i, z := range first {
			for k, y := range second {
				d.share(pair, i, k, z*y/total)
			}
		}
		return
	}
	i, k, left, other := 0, 0, first[0], second[0]
	for {
		both := min(left, other)
		d.share(pair, i, k, both)
		left, other = left-both, other-both
		if left <= other {
			if i++; i == len(first) {
				return
			}
			left = first[i]
		} else {
			if k++; k == len(second) {
				return
			}
			other = second[k]
		}
	}
}

// circle brings the members of one class together: evenly where all have as much, or laid along a circle each with those opposite. It is false,
// with the member, if one has more than half.
func (d *division) circle(pair int) (member int, ok bool) {
	parts := d.parts[pair][0]
	total, least := 0.0, math.Inf(1)
	for m, z := range parts {
		total, least = total+z, min(least, z)
		if z > parts[member] {
			member = m
		}
	}
	if parts[member] > total/2*(1+1e-6)+negligible {
		return member, false
	}
	if d.even && parts[member] <= least*(1+1e-12) {
		for i := range parts {
			for k := range i {
				d.share(pair, k, i, total/float64(len(parts)*(len(parts)-1)))
			}
		}
		return 0, true
	}
	half, i, k := total/2, 0, 0
	at := 0.0 // of the end of k
	for k < len(parts)-1 && at+parts[k] <= half {
		at += parts[k]
		k++
	}
	left, other := parts[0], at+parts[k]-half
	for covered := 0.0; covered < half; {
		both := min(left, other, half-covered)
		if i != k {
			d.share(pair, min(i, k), max(i, k), both)
		}
		covered, left, other = covered+both, left-both, other-both
		if left <= 0 {
			if i++; i == len(parts) {
				break
			}
			left = parts[i]
		}
		if other <= 0 {
			if k++; k == len(parts) {
				break
			}
			other = parts[k]
		}
	}
	return 0, true
}

// split takes a member out of its class into one of its own.
func (p Packed) split(class, member int) Packed {
	q := Packed{Capacity: p.Capacity, Classes: slices.Clone(p.Classes), Pairs: slices.Clone(p.Pairs)}
	of := p.Classes[class]
	single := of
	single.Members = of.Members[member : member+1]
	q.Classes[class].Members = slices.Delete(slices.Clone(of.Members), member, member+1)
	q.Classes = append(q.Classes, single)
	added := len(p.Classes)
	for _, pair := range p.Pairs {
		if pair.First == class {
			q.Pairs = append(q.Pairs, PackedPair{pair.Second, added, pair.Type, [2]float64{pair.Rates[1], pair.Rates[0]}})
		} else if pair.Second == class {
			q.Pairs = append(q.Pairs, PackedPair{pair.First, added, pair.Type, pair.Rates})
		}
	}
	return q
}
