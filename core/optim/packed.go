package optim

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Packed is the set of time shares that a cluster can give to jobs that run alone or in pairs: two jobs of a pair are on the same devices, which
// count once. Jobs that are alike make a class, so that the size of the problem is that of their kinds. With y[c] the time of all members of
// a class, or of all pairs of two classes, on a type, it holds every y >= 0 with
//
//	Σ_c s_c y[c]  <= Capacity[j]      over the classes and pairs on a type, for every type
//	Σ_c y[c]      <= N_a              over all that members of a class are in, a pair of two members twice, for every class
//
// that can be divided among the members so that each runs for at most all the time.
type Packed struct {
	Capacity []float64     // devices of each type
	Classes  []PackedClass // of jobs, in any order
	Pairs    []PackedPair  // each at most once
}

// PackedClass is jobs that are as fast as each other, alone and beside others.
type PackedClass struct {
	Devices float64   // that a member holds while it runs
	Rates   []float64 // of a member alone, by type; 0 where it cannot run
	Members []int     // rows of the Level; at least one
}

// PackedPair is a member of each of two classes of as many devices, together on one type. With First == Second it is two members of one class.
type PackedPair struct {
	First, Second, Type int        // indices of the two jobs, First <= Second, and of the type
	Rates               [2]float64 // of the member of First and of Second while they share, in units of progress a second
}

// PackedResult is the fairest division.
type PackedResult struct {
	// Level is what every job reaches, and Bound a proof that not every one reaches more. They differ by rounding, with many jobs that ask for
	// different by some parts in a hundred at worst.
	Level, Bound float64
	// Exclusive is the fraction of time that each job spends alone on each type, and Pairs what it spends beside others.
	Exclusive [][]float64
	Pairs     []PairShare // pairs of jobs that share devices, with the fraction of time
}

// classResult is the division among classes.
type classResult struct {
	level, bound float64
	alone        [][]float64 // time of all members, by class and type
	together     []float64   // time of all pairs, as Packed.Pairs has them
}

// PackedSolver finds time shares over a Packed. It keeps its buffers from one call to the next. The zero value is ready to use; one
// PackedSolver serves one goroutine at a time. What it returns is the caller's.
type PackedSolver struct {
	cuts   []packedCut
	inner  interior
	levels targets
}

// packedCut says that what members of a class do, counted above a rate, is enough for some of them: the most demanding Count, whose demands
// are at Floor + Slope t together.
//
// That all such hold is the condition for a division among members that differ in what they ask for (Hardy, Littlewood and Pólya's
// majorisation): however fast the time is that the first Count have, it is at most the fastest there is.
type packedCut struct {
	class, count int
	above        float64
	floor, slope float64
}

// MaxMin finds the highest level that can be reached: that of the analytic centre of the best divisions, in which like jobs fare alike.
// Even has members of two classes meet evenly each with each, and not with as few as it takes.
//
// It is a linear program over classes and pairs of them, solved by an interior point method; where members of a class differ in what they ask
// for, the rows that they need are added until none is missing. O(columns + rows³) for each of some 20 steps.
func (s *PackedSolver) MaxMin(ctx context.Context, p Packed, level Level, even bool) (PackedResult, error) {
	if err := p.check(level); err != nil {
		return PackedResult{}, err
	}
	s.levels.linear(level)
	jobs, most := 0, s.own(p)
	for a := range p.Classes {
		jobs += len(p.Classes[a].Members)
	}
	for refined := 0; ; refined++ {
		r, err := s.highest(ctx, p, most)
		if err != nil {
			return PackedResult{}, err
		}
		d, alone := s.divide(p, &r, jobs, even)
		if len(alone) == 0 {
			return PackedResult{Level: r.level, Bound: r.bound, Exclusive: d.alone, Pairs: d.pairs}, nil
		}
		if jobs > exactUpTo && refined >= maxRefined {
			return PackedResult{Level: fit(d, r.level, s.reached), Bound: r.bound, Exclusive: d.alone, Pairs: d.pairs}, nil
		}
		for _, m := range alone {
			p = p.split(m.class, m.member)
		}
	}
}

// Members of a class that would have to be beside themselves are taken out of it, and the program is solved again: as often as it takes with up
// to exactUpTo jobs, and so often with more. Then what they cannot have in pairs they have alone, and Level and Bound tell what that costs.
const (
	exactUpTo  = 32
	maxRefined = 1
)

// reached is the level of a job at a rate; +Inf for one that asks for no more at a higher one.
func (s *PackedSolver) reached(i int, rate float64) float64 {
	if floor, slope := s.levels.straight(i); slope > 0 {
		return (rate - floor) / slope
	}
	return math.Inf(1)
}

// check reports what is wrong with the problem.
func (p Packed) check(level Level) error {
	var found problems
	jobs := 0
	small := Polytope{Capacity: p.Capacity}
	for _, c := range p.Classes {
		if len(c.Members) == 0 {
			found.add("optim: a class has no members")
		}
		jobs += len(c.Members)
		small.Jobs = append(small.Jobs, ShareJob{Devices: c.Devices, Rates: c.Rates, Count: len(c.Members)})
	}
	small.check(&found)
	for i, pair := range p.Pairs {
		switch {
		case pair.First < 0 || pair.Second < pair.First || pair.Second >= len(p.Classes) || pair.Type < 0 || pair.Type >= len(p.Capacity):
			found.add("optim: pair %d is of classes %d and %d on type %d, which do not exist in this order", i, pair.First, pair.Second, pair.Type)
		case p.Classes[pair.First].Devices != p.Classes[pair.Second].Devices:
			found.add("optim: pair %d is of classes with %v and %v devices", i, p.Classes[pair.First].Devices, p.Classes[pair.Second].Devices)
		case pair.First == pair.Second && pair.Rates[0] != pair.Rates[1]:
			found.add("optim: pair %d is of one class, and has rates %v", i, pair.Rates)
		case !sane(pair.Rates[0]) || !sane(pair.Rates[1]) || pair.Rates[0] < 0 || pair.Rates[1] < 0:
			found.add("optim: pair %d has rates %v, %s", i, pair.Rates, wanted)
		}
	}
	for name, values := range map[string][]float64{"floor": level.Floor, "slope": level.Slope} {
		if values != nil && len(values) != jobs {
			found.add("optim: %d values of %s, want one for each of %d jobs", len(values), name, jobs)
		}
	}
	return found.err()
}

// own is the highest level that each job could reach with the cluster for itself.
func (s *PackedSolver) own(p Packed) float64 {
	level := math.Inf(1)
	for a := range p.Classes {
		best := p.fastest(a)
		for _, i := range p.Classes[a].Members {
			level = min(level, s.levels.limit(i, best))
		}
	}
	return level
}

// fastest is the rate of a member of a class where it is the fastest.
func (p Packed) fastest(class int) float64 {
	best := 0.0
	c := &p.Classes[class]
	for j, rate := range c.Rates {
		if p.Capacity[j] > 0 {
			best = max(best, rate)
		}
	}
	for _, pair := range p.Pairs {
		if p.Capacity[pair.Type] > 0 && pair.First == class {
			best = max(best, pair.Rates[0])
		}
		if p.Capacity[pair.Type] > 0 && pair.Second == class {
			best = max(best, pair.Rates[1])
		}
	}
	return best
}

// maxCutRounds bounds how often rows are added; each round settles at least one group of members of a class.
const maxCutRounds = 200

// highest finds the highest level at most a given one that the straight targets allow.
func (s *PackedSolver) highest(ctx context.Context, p Packed, most float64) (classResult, error) {
	if math.IsInf(most, 0) {
		return classResult{level: most, bound: most, alone: p.nothing(), together: make([]float64, len(p.Pairs))}, context.Cause(ctx)
	}
	s.cuts = s.cuts[:0]
	for a := range p.Classes {
		if cut := s.whole(p, a, most); cut.slope > 0 || cut.floor > 0 {
			s.cuts = append(s.cuts, cut)
		}
	}
	for round := 0; ; round++ {
		if err := context.Cause(ctx); err != nil {
			return classResult{}, err
		}
		r := s.inner.solve(p, s.cuts, most)
		if round >= maxCutRounds || !s.cut(p, &r) {
			return r, nil
		}
	}
}

func (p Packed) nothing() [][]float64 {
	alone := make([][]float64, len(p.Classes))
	for a := range alone {
		alone[a] = make([]float64, len(p.Capacity))
	}
	return alone
}

// whole is the row of all members of a class that ask for something at a level.
func (s *PackedSolver) whole(p Packed, class int, level float64) packedCut {
	cut := packedCut{class: class}
	for _, i := range p.Classes[class].Members {
		if demand, _ := s.levels.at(i, level); demand > 0 {
			floor, slope := s.levels.straight(i)
			cut.count++
			cut.floor += floor
			cut.slope += slope
		}
	}
	return cut
}

// service is time of members of a class at a rate.
type service struct{ rate, time float64 }

// services lists the time that members of a class have, fastest first.
func (p Packed) services(r *classResult, class int, list []service) []service {
	list = list[:0]
	for j, time := range r.alone[class] {
		list = append(list, service{p.Classes[class].Rates[j], time})
	}
	for i, pair := range p.Pairs {
		if pair.First == class {
			list = append(list, service{pair.Rates[0], r.together[i]})
		}
		if pair.Second == class {
			list = append(list, service{pair.Rates[1], r.together[i]})
		}
	}
	slices.SortStableFunc(list, func(a, b service) int { return cmp.Compare(b.rate, a.rate) })
	return list
}

// cut adds the rows of classes whose members cannot divide what they have so that each reaches the level, and reports whether there are any.
func (s *PackedSolver) cut(p Packed, r *classResult) bool {
	added := false
	var list []service
	for a := range p.Classes {
		members := p.Classes[a].Members
		if len(members) < 2 || s.alike(members) {
			continue
		}
		order := slices.Clone(members)
		demand := func(i int) float64 { d, _ := s.levels.at(i, r.level); return d }
		slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(demand(y), demand(x)) })
		list = p.services(r, a, list)
		worst, next := packedCut{class: a, count: 0}, packedCut{class: a}
		most, asked, given, at, used := 0.0, 0.0, 0.0, 0, 0.0
		for _, i := range order {
			d := demand(i)
			if d <= 0 {
				break
			}
			floor, slope := s.levels.straight(i)
			next.count, next.floor, next.slope = next.count+1, next.floor+floor, next.slope+slope
			asked += d
			for left := 1.0; left > 0 && at < len(list); {
				take := min(left, list[at].time-used)
				given += take * list[at].rate
				left -= take
				if used += take; left > 0 {
					at, used = at+1, 0
				}
			}
			next.above = 0
			if at < len(list) {
				next.above = list[at].rate
			}
			if short := asked - given; short > most && short > 1e-7*asked {
				most, worst = short, next
			}
		}
		if worst.count > 0 && !slices.Contains(s.cuts, worst) {
			s.cuts, added = append(s.cuts, worst), true
		}
	}
	return added
}

// alike reports whether jobs ask for the same at every level.
func (s *PackedSolver) alike(members []int) bool {
	floor, slope := s.levels.straight(members[0])
	return !slices.ContainsFunc(members[1:], func(i int) bool { f, m := s.levels.straight(i); return f != floor || m != slope })
}

// roomAbove is by which part a program may go above the highest level where that cannot be reached exactly from below.
const roomAbove = 0.05

// FinishTimes finds the least worst ratio of the jobs' finish times: see Finish. The level is its negative.
//
// What jobs must reach is a convex function of the ratio: the tangents at a ratio that cannot be met are a problem of the straight kind, whose
// answer is a better bound (Newton's method). What a job must reach is met to 1e-3 where it is no less than some millionth of what others must.
func (s *PackedSolver) FinishTimes(ctx context.Context, p Packed, finish Finish, even bool) (PackedResult, error) {
	if err := p.check(Level{}); err != nil {
		return PackedResult{}, err
	}
	n := len(finish.Exclusive)
	s.levels = targets{finish: &finish}
	level := s.own(p)
	floor, slope := make([]float64, n), make([]float64, n)
	for refined := 0; ; {
		if math.IsInf(level, 0) {
			return PackedResult{}, ErrPivots
		}
		for i := range n {
			demand, rise := finish.at(i, -level)
			floor[i], slope[i] = demand-rise*level, rise
		}
		s.levels.linear(Level{Floor: floor, Slope: slope})
		r, err := s.highest(ctx, p, level)
		if err != nil {
			return PackedResult{}, err
		}
		if r.bound < level-1e-7*math.Abs(level) {
			level = r.bound // not r.level, which is less where the division is not exact
			continue
		}
		if r.level < level-1e-7*math.Abs(level) { // at its highest level a program has no inside to approach it from: it is given one
			wider, err := s.highest(ctx, p, level+roomAbove*math.Abs(level))
			if err != nil {
				return PackedResult{}, err
			}
			if wider.level > r.level {
				r = wider
				r.level, r.bound = min(r.level, level), level
			}
		}
		d, alone := s.divide(p, &r, n, even)
		if len(alone) == 0 {
			return PackedResult{Level: r.level, Bound: r.bound, Exclusive: d.alone, Pairs: d.pairs}, nil
		}
		if n > exactUpTo && refined >= maxRefined {
			// Not by the tangents, which ask for less than the ratio does.
			worst := fit(d, r.level, func(i int, rate float64) float64 { return -finish.ratio(i, rate) })
			return PackedResult{Level: worst, Bound: r.bound, Exclusive: d.alone, Pairs: d.pairs}, nil
		}
		refined++
		for _, m := range alone {
			p = p.split(m.class, m.member)
		}
	}
}
