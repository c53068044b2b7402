package optim

import (
	"cmp"
	"math"
	"slices"
)

// PairShare is the fraction of time that two jobs spend together on a type.
type PairShare struct {
	Jobs  [2]int  // rows of the Level, ascending
	Type  int     // index of the type that they share
	Share float64 // fraction of time, from 0 to 1
}

// negligible is the share below which a pair, or a job on a type, is left out: the method leaves about so much of what it means to be nothing.
const negligible = 1e-7

// division divides the time of classes and pairs among their members.
type division struct {
	p     Packed
	even  bool
	alone [][]float64   // by job and type
	parts [][][]float64 // by pair, of the members of its first and its second class
	pairs []PairShare
}

// fit brings the division into the capacities, and returns the level that it reaches. Reached is the level of a job at a rate.
func fit(d *division, most float64, reached func(job int, rate float64) float64) float64 {
	used, rates, class := make([]float64, len(d.p.Capacity)), make([]float64, len(d.alone)), make([]int, len(d.alone))
	pairOf := map[[3]int][2]float64{}
	for a := range d.p.Classes {
		for _, i := range d.p.Classes[a].Members {
			class[i] = a
			for j, x := range d.alone[i] {
				used[j] += x * d.p.Classes[a].Devices
				rates[i] += x * d.p.Classes[a].Rates[j]
			}
		}
	}
	for _, pair := range d.p.Pairs {
		pairOf[[3]int{pair.First, pair.Second, pair.Type}] = pair.Rates
		pairOf[[3]int{pair.Second, pair.First, pair.Type}] = [2]float64{pair.Rates[1], pair.Rates[0]}
	}
	for _, share := range d.pairs {
		i, k := share.Jobs[0], share.Jobs[1]
		used[share.Type] += share.Share * d.p.Classes[class[i]].Devices
		both := pairOf[[3]int{class[i], class[k], share.Type}]
		rates[i] += share.Share * both[0]
		rates[k] += share.Share * both[1]
	}
	part := 1.0
	for j, u := range used {
		if u > d.p.Capacity[j] {
			part = min(part, d.p.Capacity[j]/u)
		}
	}
	level := most
	for i, shares := range d.alone {
		for j := range shares {
			shares[j] *= part
		}
		level = min(level, reached(i, rates[i]*part))
	}
	for i := range d.pairs {
		d.pairs[i].Share *= part
	}
	return level
}

// memberOf is a member of a class, by its place there.
type memberOf struct{ class, member int }

// divide gives the members of classes their shares, so that each reaches its level. Alone are members, of different classes, that would have to
// be beside themselves: only of one without others does the program tell that it cannot.
func (s *PackedSolver) divide(p Packed, r *classResult, jobs int, even bool) (d *division, alone []memberOf) {
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
		if member, ok := d.circle(i); !ok && !slices.ContainsFunc(alone, func(m memberOf) bool { return m.class == pair.First }) {
			alone = append(alone, memberOf{pair.First, member})
		}
	}
	for _, shares := range d.alone {
		for j, x := range shares {
			if x < negligible {
				shares[j] = 0
			}
		}
	}
	return d, alone
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

// byDemand gives the members of a class what they ask for, and more to all where there is more. The most demanding that can have the least more
// are a group with the time by which they have it, the fastest there is, and so on with the others. The condition of packedCut holds for each.
func (s *PackedSolver) byDemand(d *division, r *classResult, class int) {
	line := d.line(r, class)
	order := make([]int, len(d.p.Classes[class].Members))
	demand := make([]float64, len(order))
	for m, i := range d.p.Classes[class].Members {
		asked, _ := s.levels.at(i, r.level)
		order[m], demand[m] = m, max(asked, 0)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(demand[y], demand[x]) })
	for len(order) > 0 {
		group, more, asked := len(order), math.Inf(1), 0.0
		for k, m := range order {
			if asked += demand[m]; demand[m] > 0 {
				if part := done(line, 0, float64(k+1)) / asked; part <= more*(1+1e-9) {
					group, more = k+1, min(more, part)
				}
			}
		}
		line = d.within(line, class, order[:group], demand, more)
		order = order[group:]
	}
}

// within divides the first of a line among a group, the most demanding first: as evenly as their demands let it, and for the rest each has the
// slowest unit of time in a row that is so many times what it asks for, which leaves enough for those after it. It returns what is left.
func (d *division) within(line []piece, class int, group []int, demand []float64, more float64) []piece {
	span := float64(len(group))
	mean := done(line, 0, span) / span
	uneven := 0.0
	for _, m := range group {
		if demand[m] > mean*(1+1e-12) {
			uneven = max(uneven, (demand[m]-mean)/(demand[m]*more-mean))
		}
	}
	uneven = min(uneven, 1)
	if uneven < 1 {
		for _, m := range group {
			d.take(line, class, m, 0, span, (1-uneven)/span)
		}
	}
	if uneven == 0 {
		return cutLine(line, 0, span)
	}
	rest := cutLine(line, 0, span)
	line = cutLine(line, span, math.Inf(1))
	for k, m := range group {
		want, latest := demand[m]*more, span-float64(k)-1
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
		d.take(line, class, m, from, from+1, uneven)
		line = cutLine(line, from, from+1)
	}
	return rest
}

// cutLine is a line without what is between two moments.
func cutLine(line []piece, from, to float64) []piece {
	left, at := make([]piece, 0, len(line)), 0.0
	for _, p := range line {
		if overlap := min(to, at+p.time) - max(from, at); overlap > 0 {
			at += p.time
			p.time -= overlap
		} else {
			at += p.time
		}
		if p.time > 0 {
			left = append(left, p)
		}
	}
	return left
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

// take gives a member a part of the line between two moments.
func (d *division) take(line []piece, class, member int, from, to, part float64) {
	at := 0.0
	for i := range line {
		p := &line[i]
		overlap := min(to, at+p.time) - max(from, at)
		at += p.time
		switch {
		case overlap <= 0:
		case p.pair >= 0:
			d.parts[p.pair][p.on][member] += overlap * part
		case p.on >= 0:
			d.alone[d.p.Classes[class].Members[member]][p.on] += overlap * part
		}
	}
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
// with the member, if one has more than half: it is with all others, and alone for the rest, which takes more devices.
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
		for m, z := range parts {
			if m != member {
				d.share(pair, min(m, member), max(m, member), z)
			}
		}
		on := &d.p.Pairs[pair]
		d.alone[d.p.Classes[on.First].Members[member]][on.Type] += 2*parts[member] - total
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
