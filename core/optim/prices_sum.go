package optim

import (
	"context"
	"math"
)

// MaxSumResult is the division of the largest total value.
type MaxSumResult struct {
	// Feasible reports whether the floors can be met; Prices and Short prove it where not, as in FeasibleResult.
	Feasible bool
	// Shares is the fraction of time that a member of each row spends on each type. Beyond mixes that just meet a
	// floor, at most as many rows as there are types are split.
	Shares [][]float64
	// Value is the total of Shares, Bound what the prices prove to be the most: the Budget and what each job gains
	// beyond them at best. They differ by rounding only.
	Value, Bound float64
	// Prices are per device of each type: what one more would add to the value.
	Prices []float64
	// Short is the index of a job that cannot meet its floor by itself, -1 where there is none.
	Short int
}

// MaxSum finds the shares of the largest Σ_i N_i Σ_j values[i][j] x[i][j] under which every member of row i progresses
// at floors[i] at least; no floors stands for all 0. A value where the rate is 0 does not count.
func (s *SharesSolver) MaxSum(ctx context.Context, p Polytope, values [][]float64, floors []float64) (MaxSumResult, error) {
	var found problems
	p.check(&found)
	p.checkPerJob(&found, "floor", floors)
	if len(values) != len(p.Jobs) {
		found.add("optim: %d rows of values, want one for each of %d jobs", len(values), len(p.Jobs))
	}
	for i, row := range values {
		if len(row) != len(p.Capacity) {
			found.add("optim: job %d has %d values, want one for each of %d types", i, len(row), len(p.Capacity))
		}
		for j, v := range row {
			if !sane(v) {
				found.add("optim: value of job %d on type %d is %v, "+wanted+" or its negative", i, j, v)
			}
		}
	}
	if err := found.err(); err != nil {
		return MaxSumResult{}, err
	}
	if floors != nil {
		r, err := s.Feasible(ctx, p, floors)
		if err != nil || !r.Feasible {
			return MaxSumResult{Prices: r.Prices, Short: r.Short}, err
		}
	}
	return s.largest(ctx, p, values, floors)
}

// largest finds the division of the largest value where floors can be met, or nearly so.
func (s *SharesSolver) largest(ctx context.Context, p Polytope, values [][]float64, floors []float64) (MaxSumResult, error) {
	m := &s.prices
	m.load(p)
	var scale float64
	for _, row := range values {
		for _, v := range row {
			scale = max(scale, math.Abs(v))
		}
	}
	if scale == 0 {
		scale = 1
	}
	m.values = resize(m.values, m.jobs*m.types)
	for i, row := range values {
		for j, v := range row {
			m.values[i*m.types+j] = v / scale
		}
	}
	if err := s.guessValues(ctx, p, values, floors, scale); err != nil {
		return MaxSumResult{}, err
	}
	for i := range m.jobs {
		m.demand[i] = 0
		if floors != nil {
			m.demand[i] = min(floors[i], m.fastest(i))
		}
		m.key[i], _ = m.respond(i)
	}
	if m.jobs >= sampleFrom {
		if err := m.settle(ctx); err != nil {
			return MaxSumResult{}, err
		}
		m.rekey()
	} else {
		m.start()
	}
	for {
		if err := m.solve(ctx); err != nil {
			return MaxSumResult{}, err
		}
		if !m.short() || m.penalty > 1e12*float64(m.jobs) { // more than any price: the excess left is rounding
			break
		}
		m.penalty *= 8
	}
	result := MaxSumResult{Feasible: true, Shares: m.shares(), Prices: make([]float64, m.types), Short: -1}
	var gain float64
	for i := range m.jobs {
		r, _ := m.respond(i)
		gain -= m.members[i] * r.cost
		for j, x := range result.Shares[i] {
			if x > 0 {
				result.Value += m.members[i] * values[i][j] * x
			}
		}
	}
	for j, rate := range m.rate {
		result.Prices[j] = rate * scale
	}
	result.Bound = gain*scale + p.budget(result.Prices)
	return result, nil
}

// guessValues sets prices to start from, those of a sample of the jobs, and a penalty above them.
func (s *SharesSolver) guessValues(ctx context.Context, p Polytope, values [][]float64, floors []float64, scale float64) error {
	m := &s.prices
	clear(m.price)
	m.spreadPrices()
	m.penalty = float64(m.jobs)
	if m.jobs < sampleFrom {
		return nil
	}
	if s.sample == nil {
		s.sample = new(SharesSolver)
	}
	small := make([][]float64, 0, m.jobs/sampleEvery+1)
	for i := 0; i < m.jobs; i += sampleEvery {
		small = append(small, values[i])
	}
	r, err := s.sample.largest(ctx, p.sample(), small, every(floors))
	if err != nil {
		return err
	}
	var budget float64
	for j, w := range p.Capacity {
		m.price[j] = r.Prices[j] * w / scale
		budget += m.price[j]
	}
	m.spreadPrices()
	m.penalty = max(4*budget, 1e-3*m.penalty)
	return nil
}
