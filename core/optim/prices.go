package optim

import (
	"context"
	"math"
)

// priceSimplex is the simplex method for many jobs that only share a few capacities.
//
// A job's responses are the corners of its own small polytope: idle, one type all the time, or a mix of two types (or
// of one and idling) that just meets its demand. A division is a weighting of responses, with weights summing to the
// members of each job, under one capacity row per type. In such a program (generalised upper bounds) a basis has one
// key response for each job and as many further columns as there are types, so that all linear algebra is types ×
// types, and the best response to given prices has a closed form. A step costs O(types³), a look at a job O(types²);
// nothing grows with the number of jobs but the number of jobs to look at.
//
// Without values it minimises the excess: the relative growth of all capacities that the demands need. With values it
// maximises their sum, less a penalty on the excess.
type priceSimplex struct {
	jobs, types int

	rates    []float64 // by job and type, 0 where the job cannot use it
	values   []float64 // by job and type, scaled; empty while looking for a feasible division
	devices  []float64
	members  []float64
	demand   []float64
	perUnit  []float64 // 1/capacity by type, 0 for a type without devices
	capacity []float64 // by type, relative to the capacity: 1 and a shift

	penalty  float64 // cost of the excess
	key      []response
	extra    []column  // the basic columns beside the keys
	amount   []float64 // their weights
	inverse  []float64 // of the working matrix whose columns are extra, less the key's usage
	residual []float64 // capacity less the usage of all keys
	price    []float64 // of the whole capacity of a type
	rate     []float64 // of one device of a type

	direction, step, work []float64
	pivots, most          int // steps taken, and after how many to give up

	// While the prices are held, each stays within its bounds: a type may be overloaded at the highest,
	// and pays the lowest for what it has left.
	held            bool
	lowest, highest []float64

	margin   []int  // jobs that have taken a step
	atMargin []bool // whether a job is in margin
}

// response is a corner of a job's polytope: time on two types at most. A type below 0 is none.
type response struct {
	slow, fast         int
	onSlow, onFast     float64
	cost, costPerPoint float64 // at the prices it was chosen at: in all, and for the last point of demand
}

// worse reports whether another corner costs less, or as much at a steeper slope. Where a demand is all that a type can
// do, every mix with a slower one is that type alone; the steepest says what a little less of it would save.
func (r *response) worse(cost, slope float64) bool {
	equal := rounding * math.Abs(cost)
	return cost < r.cost-equal || cost <= r.cost+equal && slope > r.costPerPoint
}

// column is a basic column: a response of a job, or what a type has left over, or the excess.
type column struct {
	kind int // >= 0: a job
	row  int // of the leftover or the overload
	how  response
}

const (
	leftover = -1
	excess   = -2 // of all types alike
	overload = -3 // of one type, while the prices are held
)

// idle is the response of doing nothing.
var idle = response{slow: -1, fast: -1}

const (
	// holding is by how much prices may move while they are held.
	holding = 0.05
	// improvement is the relative gain below which a response counts as no better.
	improvement = 1e-12
	// rounding is the relative error of a price.
	rounding = 1e-14
	// shift keeps steps from being empty: capacities are made larger by about so much, each by another amount, so that
	// no two ratios tie and the method cannot circle. Answers are scaled back into the true capacities.
	shift = 1e-11
	// checkEvery is how many looks at jobs pass between two looks at the context.
	checkEvery = 4096
)

// load takes over a polytope.
func (s *priceSimplex) load(p Polytope) {
	s.jobs, s.types = len(p.Jobs), len(p.Capacity)
	n, t := s.jobs, s.types
	s.rates, s.values = resize(s.rates, n*t), s.values[:0]
	s.devices, s.members, s.demand = resize(s.devices, n), resize(s.members, n), resize(s.demand, n)
	s.key = resize(s.key, n)
	for _, buffer := range []*[]float64{
		&s.perUnit, &s.capacity, &s.amount, &s.residual, &s.price, &s.rate, &s.direction, &s.step, &s.lowest, &s.highest,
	} {
		*buffer = resize(*buffer, t)
	}
	s.extra, s.inverse, s.work = resize(s.extra, t), resize(s.inverse, t*t), resize(s.work, t*t)
	s.pivots, s.penalty, s.held = 0, 1, false
	clear(s.lowest)
	for j, w := range p.Capacity {
		const golden = 0.6180339887498949
		_, part := math.Modf(float64(j+1) * golden)
		s.capacity[j], s.perUnit[j] = 1+shift*(1+part), 0
		if w > 0 {
			s.perUnit[j] = 1 / w
		}
	}
	for i, job := range p.Jobs {
		s.devices[i], s.members[i] = job.Devices, job.members()
		for j, a := range job.Rates {
			if s.perUnit[j] == 0 {
				a = 0
			}
			s.rates[i*t+j] = a
		}
	}
}

// resize returns a slice of the length, on the old memory where that is large enough. Its content is arbitrary.
func resize[E any](buffer []E, length int) []E {
	if cap(buffer) < length {
		return make([]E, length)
	}
	return buffer[:length]
}

// evenPrices makes every device of the cluster worth the same and all together 1.
func (s *priceSimplex) evenPrices() {
	var all float64
	for _, u := range s.perUnit {
		if u > 0 {
			all += 1 / u
		}
	}
	for j, u := range s.perUnit {
		s.price[j] = 0
		if u > 0 {
			s.price[j] = 1 / u / all
		}
	}
	s.spreadPrices()
}

// spreadPrices computes the prices of one device.
func (s *priceSimplex) spreadPrices() {
	for j, p := range s.price {
		s.rate[j] = max(p, 0) * s.perUnit[j]
	}
}

// respond is the best response of a job to the prices: the least cost less value among the corners that meet its
// demand, idling before types and lower types before higher ones. A demand that the job cannot meet has none.
func (s *priceSimplex) respond(i int) (response, bool) {
	demand := s.demand[i]
	best, some := idle, demand <= 0
	if some && len(s.values) == 0 { // nothing is cheaper
		return best, true
	}
	if !some {
		best.cost = math.Inf(1)
	}
	rates, devices := s.rates[i*s.types:(i+1)*s.types], s.devices[i]
	var values []float64
	if len(s.values) > 0 {
		values = s.values[i*s.types : (i+1)*s.types]
	}
	for v, fast := range rates {
		if fast < demand || fast == 0 {
			continue
		}
		some = true
		costFast := devices * s.rate[v]
		if values != nil {
			costFast -= values[v]
			if costFast < best.cost {
				best = response{slow: -1, fast: v, onFast: 1, cost: costFast}
			}
			if demand <= 0 {
				continue
			}
		}
		if cost := costFast * demand / fast; best.worse(cost, costFast/fast) {
			best = response{slow: -1, fast: v, onFast: demand / fast, cost: cost, costPerPoint: costFast / fast}
		}
		for u, slow := range rates {
			if slow >= demand || slow == 0 {
				continue
			}
			costSlow := devices * s.rate[u]
			if values != nil {
				costSlow -= values[u]
			}
			if costSlow >= costFast { // the fast type alone is no dearer
				continue
			}
			slope, on := (costFast-costSlow)/(fast-slow), (demand-slow)/(fast-slow)
			if cost := (1-on)*costSlow + on*costFast; best.worse(cost, slope) {
				best = response{u, v, 1 - on, on, cost, slope}
			}
		}
	}
	return best, some
}

// costOf is the cost of a response at the prices, less its value.
func (s *priceSimplex) costOf(i int, r response) float64 {
	var cost float64
	if r.slow >= 0 {
		cost += r.onSlow * s.devices[i] * s.rate[r.slow]
	}
	if r.fast >= 0 {
		cost += r.onFast * s.devices[i] * s.rate[r.fast]
	}
	return cost - s.valueOf(i, r)
}

// valueOf is the value of a response; it is 0 while looking for a feasible division.
func (s *priceSimplex) valueOf(i int, r response) float64 {
	if len(s.values) == 0 {
		return 0
	}
	var value float64
	if r.slow >= 0 {
		value += r.onSlow * s.values[i*s.types+r.slow]
	}
	if r.fast >= 0 {
		value += r.onFast * s.values[i*s.types+r.fast]
	}
	return value
}

// use adds factor times the relative usage of a response.
func (s *priceSimplex) use(into []float64, i int, r response, factor float64) {
	factor *= s.devices[i]
	if r.slow >= 0 {
		into[r.slow] += factor * r.onSlow * s.perUnit[r.slow]
	}
	if r.fast >= 0 {
		into[r.fast] += factor * r.onFast * s.perUnit[r.fast]
	}
}

// usage writes a column of the working matrix and returns its cost: for a response, its difference to the key.
func (s *priceSimplex) usage(into []float64, c column) float64 {
	clear(into)
	switch c.kind {
	case leftover:
		into[c.row] = 1
		return -s.lowest[c.row]
	case overload:
		into[c.row] = -1
		return s.highest[c.row]
	case excess:
		for j := range into {
			into[j] = -1
		}
		return s.penalty
	}
	s.use(into, c.kind, c.how, 1)
	s.use(into, c.kind, s.key[c.kind], -1)
	return s.valueOf(c.kind, s.key[c.kind]) - s.valueOf(c.kind, c.how)
}

// start makes a first basis of the keys alone; where they need more than the
// capacities, the excess or overloads make room.
func (s *priceSimplex) start() {
	s.sumKeys()
	tightest := 0
	for j, r := range s.residual {
		s.extra[j] = column{kind: leftover, row: j}
		if s.held && r < 0 {
			s.extra[j].kind = overload
		}
		if r < s.residual[tightest] {
			tightest = j
		}
	}
	if !s.held && s.types > 0 && s.residual[tightest] < 0 {
		s.extra[tightest] = column{kind: excess}
	}
	s.factor()
}

// settle makes the keys a good start: prices near the ones given may move within bounds, which turns over the jobs that
// are close to indifferent and no others. The prices are nearly right after it.
func (s *priceSimplex) settle(ctx context.Context) error {
	for j, p := range s.price {
		s.lowest[j], s.highest[j] = p*(1-holding), p*(1+holding)+1e-6*s.penalty
	}
	s.held = true
	s.start()
	err := s.solve(ctx)
	s.held = false
	clear(s.lowest)
	return err
}

// rekey makes the response with the largest weight the key of each job, and starts from the keys.
func (s *priceSimplex) rekey() {
	s.weigh()
	for k, c := range s.extra {
		if c.kind < 0 {
			continue
		}
		heaviest := true
		left := s.members[c.kind]
		for l, other := range s.extra {
			if other.kind == c.kind {
				left -= s.amount[l]
				heaviest = heaviest && s.amount[l] <= s.amount[k]
			}
		}
		if heaviest && s.amount[k] > left {
			s.key[c.kind] = c.how
		}
	}
	s.start()
}

// short reports whether the capacities still need the excess.
func (s *priceSimplex) short() bool {
	for _, c := range s.extra {
		if c.kind == excess {
			return true
		}
	}
	return false
}

// solve improves the basis until no response gains anything, or, without values, until no excess is left. It goes round
// the jobs, each of which may take a step at once. The jobs that took one are most of those at the margin between two
// responses, so they are gone round until none of them gains before all others are looked at again.
func (s *priceSimplex) solve(ctx context.Context) error {
	s.most = s.pivots + 200*(s.jobs+s.types) + 10_000
	s.atMargin = resize(s.atMargin, s.jobs)
	clear(s.atMargin)
	s.margin = s.margin[:0]
	for seen, gained := 0, true; gained; {
		gained = false
		s.sumKeys() // anew, against rounding
		if !s.factor() {
			s.start()
		}
		for i := range s.jobs {
			if seen++; seen%checkEvery == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if s.done() {
				return nil
			}
			if s.better(i) {
				gained = true
				if !s.atMargin[i] {
					s.atMargin[i] = true
					s.margin = append(s.margin, i)
				}
			}
			if s.pivots > s.most {
				return ErrPivots
			}
		}
		for more := gained; more; {
			more = false
			for _, i := range s.margin {
				if seen++; seen%checkEvery == 0 && ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if s.done() {
					return nil
				}
				if s.better(i) {
					more = true
				}
				if s.pivots > s.most {
					return ErrPivots
				}
			}
		}
	}
	return nil
}

// done reports whether nothing more is asked for: a feasible division is found.
func (s *priceSimplex) done() bool { return len(s.values) == 0 && !s.held && !s.short() }

// better takes a step with the best response of a job, if that gains.
func (s *priceSimplex) better(i int) bool {
	r, some := s.respond(i)
	cost := s.costOf(i, s.key[i])
	if !some || r.cost >= cost-s.least(i, cost) {
		return false
	}
	if !s.enter(column{kind: i, how: r}) {
		s.start()
	}
	// A price below its bounds makes a type keep devices, one above them overloads it.
	for j := 0; j < s.types && s.pivots <= s.most; j++ {
		in := column{kind: leftover, row: j}
		switch least := improvement * s.penalty; {
		case s.price[j] < s.lowest[j]-least:
		case s.held && s.price[j] > s.highest[j]+least:
			in.kind = overload
		default:
			continue
		}
		if !s.enter(in) {
			s.start()
		}
		j = -1
	}
	return true
}

// least is the gain from which a response of the job counts as better than one of the cost: a part of what is at stake,
// and the rounding of the prices, which is in proportion to the penalty, their sum at most.
func (s *priceSimplex) least(i int, cost float64) float64 {
	var value, part float64
	for j, p := range s.perUnit {
		part = max(part, p)
		if len(s.values) > 0 {
			value = max(value, math.Abs(s.values[i*s.types+j]))
		}
	}
	return improvement*(value+math.Abs(cost)) + rounding*s.penalty*s.devices[i]*part
}

// shares is the division that the basis stands for, scaled back into the true capacities.
func (s *priceSimplex) shares() [][]float64 {
	s.sumKeys()
	s.weigh()
	flat := make([]float64, s.jobs*s.types)
	rows := make([][]float64, s.jobs)
	add := func(i int, r response, weight float64) {
		if r.slow >= 0 {
			rows[i][r.slow] += weight * r.onSlow
		}
		if r.fast >= 0 {
			rows[i][r.fast] += weight * r.onFast
		}
	}
	for i := range rows {
		rows[i] = flat[i*s.types : (i+1)*s.types : (i+1)*s.types]
		add(i, s.key[i], 1)
	}
	for k, c := range s.extra {
		if c.kind >= 0 {
			weight := min(max(s.amount[k]/s.members[c.kind], 0), 1)
			add(c.kind, c.how, weight)
			add(c.kind, s.key[c.kind], -weight)
		}
	}
	used := make([]float64, s.types)
	for i, row := range rows {
		for j, x := range row {
			row[j] = max(x, 0)
			used[j] += s.members[i] * s.devices[i] * row[j] * s.perUnit[j]
		}
	}
	for _, row := range rows {
		for j, u := range used {
			if u > 1 {
				row[j] /= u
			}
		}
	}
	return rows
}
