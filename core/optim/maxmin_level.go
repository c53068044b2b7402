package optim

import (
	"context"
	"math"
	"slices"
)

// targets says what every job must reach at a level; a higher level is harder. It is a convex function of the level.
type targets struct {
	floor, slope []float64 // the straight kind; nil stands for 0 and for 1
	finish       *Finish   // the kind of finish times: the level is -rho
}

// linear makes targets of the straight kind.
func (t *targets) linear(level Level) {
	*t = targets{floor: level.Floor, slope: level.Slope}
}

// straight is the line of a job's target.
func (t *targets) straight(i int) (floor, slope float64) {
	slope = 1
	if t.floor != nil {
		floor = t.floor[i]
	}
	if t.slope != nil {
		slope = t.slope[i]
	}
	return floor, slope
}

// at is what a job must reach at a level, and how fast it grows with the level.
func (t *targets) at(i int, level float64) (demand, slope float64) {
	if t.finish != nil {
		return t.finish.at(i, -level)
	}
	floor, slope := t.straight(i)
	return floor + slope*level, slope
}

// limit is the highest level that a job can reach at a rate.
func (t *targets) limit(i int, rate float64) float64 {
	if t.finish != nil {
		return -t.finish.ratio(i, rate)
	}
	floor, slope := t.straight(i)
	switch left := rate - floor; {
	case left < 0:
		if left < -tolerance*floor {
			return math.Inf(-1)
		}
		return 0
	case slope == 0:
		return math.Inf(1)
	default:
		return left / slope
	}
}

// lowest is the level that any division reaches if one does.
func (t *targets) lowest() float64 {
	if t.finish != nil {
		return math.Inf(-1)
	}
	return 0
}

// tolerance is the relative error of a rate or a usage that passes for rounding.
const tolerance = 1e-9

// highest finds the highest level at which the polytope meets the targets.
func (s *SharesSolver) highest(ctx context.Context, p Polytope) (MaxMinResult, error) {
	m, t := &s.prices, &s.targets
	m.load(p)
	d := descent{m: m, t: t, result: MaxMinResult{Prices: make([]float64, m.types), Short: -1}}
	if d.begin(); math.IsInf(d.level, -1) {
		return d.result, context.Cause(ctx)
	}
	if err := s.guess(ctx, p); err != nil {
		return MaxMinResult{}, err
	}
	if !math.IsInf(d.level, 1) {
		d.lower()
	}
	for steps := 0; ; steps++ {
		if steps > 1000 {
			return MaxMinResult{}, ErrPivots
		}
		last := d.level < t.lowest()
		if last {
			d.level = t.lowest()
			if m.tooDear(t, d.level) {
				return d.noLevel(ctx)
			}
		}
		m.aim(t, d.level)
		if again, err := d.approach(ctx, last); err != nil {
			return MaxMinResult{}, err
		} else if again {
			continue
		}
		if err := m.solve(ctx); err != nil {
			return MaxMinResult{}, err
		}
		if !m.short() {
			break
		}
		if math.IsInf(d.level, 1) { // there is no level, and what there is of floors cannot be met
			copy(d.result.Prices, m.rate)
			return d.result, nil
		}
		before := d.level
		d.lower()
		if last {
			d.level = before
			if m.tooDear(t, d.level) { // at the prices that led here it cost just the budget, at these it does not
				return d.noLevel(ctx)
			}
		}
		if d.level == before { // the excess left is rounding
			break
		}
	}
	return d.conclude(p), nil
}

// descent lowers a level until the polytope meets it.
type descent struct {
	m      *priceSimplex
	t      *targets
	result MaxMinResult
	level  float64
	proven bool // by the prices, otherwise by the job result.Short
}

// begin sets the level to the highest that each job could reach alone.
func (d *descent) begin() {
	d.level = math.Inf(1)
	for i := range d.m.jobs {
		if own := d.t.limit(i, d.m.fastest(i)); own < d.level {
			d.level, d.result.Short = own, i
		}
	}
}

// lower lowers the level to what the prices allow, and keeps the prices if they do lower it.
func (d *descent) lower() {
	if to := d.m.fall(d.t, d.level); to < d.level {
		d.level, d.proven = to, true
		copy(d.result.Prices, d.m.rate)
	}
}

// approach starts the search at the level: with many jobs at prices that settle on a sample of them first, by which the level
// may fall so far that it is worth aiming again.
func (d *descent) approach(ctx context.Context, last bool) (again bool, err error) {
	m := d.m
	if math.IsInf(d.level, 1) || m.jobs < sampleFrom {
		m.start()
		return false, nil
	}
	if err := m.settle(ctx); err != nil {
		return false, err
	}
	before := d.level
	if d.lower(); !last && d.level < before-tolerance*math.Abs(before) {
		return true, nil
	}
	d.level = before
	for i := range m.jobs {
		m.demandAt(d.t, i, d.level)
	}
	m.rekey()
	return false, nil
}

// noLevel is the result when no level can be met.
func (d *descent) noLevel(ctx context.Context) (MaxMinResult, error) {
	d.result.Short = -1
	return d.result, context.Cause(ctx)
}

// conclude is the result at the level that was met.
func (d *descent) conclude(p Polytope) MaxMinResult {
	m, r := d.m, &d.result
	if d.proven {
		r.Short = -1
	}
	r.Feasible, r.Bound, r.Shares = true, d.level, m.shares()
	copy(m.rate, r.Prices)
	r.Bottleneck = m.bottlenecks(d.t, d.level)
	r.Level = math.Inf(1)
	for i, x := range r.Shares {
		if _, slope := d.t.at(i, min(d.level, math.MaxFloat64)); slope > 0 {
			r.Level = min(r.Level, d.t.limit(i, p.Rate(i, x)))
		}
	}
	return *r
}

// fastest is the rate of a job that runs on its best type all the time.
func (s *priceSimplex) fastest(i int) float64 {
	var best float64
	for _, a := range s.rates[i*s.types : (i+1)*s.types] {
		best = max(best, a)
	}
	return best
}

// demandAt sets a job's demand at a level and returns its slope. Rounding may not put it beyond what the job can do.
func (s *priceSimplex) demandAt(t *targets, i int, level float64) float64 {
	var demand, slope float64
	if math.IsInf(level, 1) {
		demand, _ = t.straight(i)
	} else {
		demand, slope = t.at(i, level)
	}
	s.demand[i] = min(demand, s.fastest(i))
	return slope
}

// aim sets the demands of a level and starts from the best responses to the prices.
func (s *priceSimplex) aim(t *targets, level float64) {
	for i := range s.jobs {
		s.demandAt(t, i, level)
		s.key[i], _ = s.respond(i)
	}
}

// fall is the level below the given one at which the jobs' least cost at the prices meets the budget:
// no higher one can be reached. It is minus infinity when the cost is above the budget at every
// level, and the level itself when it is within.
func (s *priceSimplex) fall(t *targets, level float64) float64 {
	for range 200 { // the cost is convex and has pieces: each step ends one for good, and a few do
		cost, slope, budget := s.spend(t, level)
		if cost <= budget*(1+1e-15) {
			break
		}
		if slope <= 0 {
			return math.Inf(-1)
		}
		next := level - (cost-budget)/slope
		if next >= level {
			break
		}
		level = next
	}
	return level
}

// tooDear reports whether the prices prove that a level cannot be reached. A cost above the budget by rounding proves nothing.
func (s *priceSimplex) tooDear(t *targets, level float64) bool {
	cost, _, budget := s.spend(t, level)
	return cost > budget*(1+tolerance)
}

// spend is the jobs' least cost of a level at the prices, how fast it grows with the level, and the budget.
func (s *priceSimplex) spend(t *targets, level float64) (cost, slope, budget float64) {
	for j, p := range s.price {
		if s.perUnit[j] > 0 {
			budget += max(p, 0)
		}
	}
	for i := range s.jobs {
		rise := s.demandAt(t, i, level)
		r, _ := s.respond(i)
		cost += s.members[i] * r.cost
		slope += s.members[i] * r.costPerPoint * rise
	}
	return cost, slope, budget
}

// bottlenecks says which jobs cannot rise above their demand at the level unless another falls: a little more of it
// costs something at prices at which the whole budget is spent, or they run at their best type all the time.
func (s *priceSimplex) bottlenecks(t *targets, level float64) []bool {
	stuck := make([]bool, s.jobs)
	for i := range stuck {
		s.demandAt(t, i, level)
		r, _ := s.respond(i)
		slope := math.Inf(1)
		most := s.fastest(i)
		stuck[i] = true
		for v, a := range s.rates[i*s.types : (i+1)*s.types] {
			if a > s.demand[i]+tolerance*most {
				slope = min(slope, (s.devices[i]*s.rate[v]-r.cost)/(a-s.demand[i]))
				stuck[i] = slope*most*s.members[i]*float64(s.jobs) > tolerance
			}
		}
	}
	return stuck
}

const (
	// sampleEvery is the share of jobs in a sample, sampleFrom the number of jobs from which a sample pays.
	sampleEvery = 4
	sampleFrom  = 64
)

// guess sets prices to start from: those of a sample of the jobs in as small a
// cluster, found in the same way, or even ones.
func (s *SharesSolver) guess(ctx context.Context, p Polytope) error {
	s.prices.evenPrices()
	if len(p.Jobs) < sampleFrom {
		return nil
	}
	if s.sample == nil {
		s.sample = new(SharesSolver)
	}
	s.sample.targets = s.targets.sample()
	r, err := s.sample.highest(ctx, p.sample())
	if err == nil {
		s.prices.adopt(p, r.Prices)
	}
	return err
}

// sample is every so manieth job, and its part of the cluster.
func (p Polytope) sample() Polytope {
	small := Polytope{Capacity: make([]float64, len(p.Capacity))}
	var all, some float64
	for i, job := range p.Jobs {
		all += job.members() * job.Devices
		if i%sampleEvery == 0 {
			some += job.members() * job.Devices
			small.Jobs = append(small.Jobs, job)
		}
	}
	for j, w := range p.Capacity {
		small.Capacity[j] = w * some / all
	}
	return small
}

// sample is the targets of the jobs in a sample. Where no job has a slope, the floors
// stand for slopes, for there to be a level.
func (t *targets) sample() targets {
	if t.finish != nil {
		return targets{finish: &Finish{every(t.finish.Elapsed), every(t.finish.Remaining), every(t.finish.Exclusive)}}
	}
	small := targets{floor: every(t.floor), slope: every(t.slope)}
	if small.slope != nil && !slices.ContainsFunc(small.slope, func(v float64) bool { return v > 0 }) {
		return targets{slope: small.floor}
	}
	return small
}

// every picks the values of a sample.
func every(values []float64) []float64 {
	var small []float64
	for i := 0; i < len(values); i += sampleEvery {
		small = append(small, values[i])
	}
	return small
}

// adopt takes over prices per device, unless they are all 0.
func (s *priceSimplex) adopt(p Polytope, prices []float64) {
	budget := p.budget(prices)
	if budget <= 0 {
		return
	}
	for j, w := range p.Capacity {
		s.price[j] = prices[j] * w / budget
	}
	s.spreadPrices()
}
