package optim

import (
	"context"
	"math"
)

// Finish describes jobs by what finish-time fairness asks of them. At a rate r, job i finishes rho times later than it
// would have alone in its share of the cluster:
//
//	rho_i = (Elapsed[i] + Remaining[i]/r) / Alone[i]
type Finish struct {
	// Elapsed is the time since the job came, Alone the whole time it would take by itself. Remaining is in the
	// units of the rates times the unit of time.
	Elapsed, Remaining, Exclusive []float64
}

// ratio is the finish-time ratio of a job at a rate.
func (f *Finish) ratio(i int, rate float64) float64 {
	if f.Remaining[i] == 0 {
		return f.Elapsed[i] / f.Exclusive[i]
	}
	return (f.Elapsed[i] + f.Remaining[i]/rate) / f.Exclusive[i]
}

// at is the rate a job needs for a ratio, and how fast that grows as the ratio falls.
func (f *Finish) at(i int, rho float64) (demand, slope float64) {
	left := rho*f.Exclusive[i] - f.Elapsed[i]
	if f.Remaining[i] == 0 {
		return 0, 0
	}
	demand = f.Remaining[i] / left
	return demand, demand * f.Exclusive[i] / left
}

// FinishResult is the division with the least worst finish-time ratio.
type FinishResult struct {
	// Feasible is false when the job Short can never finish.
	Feasible bool
	// Shares is the fraction of time that a member of each row spends on each type; nil if one can never finish.
	Shares [][]float64
	// Ratio is the worst rho under Shares, Bound a proof that no division has a
	// smaller one; they differ by rounding only.
	Ratio, Bound float64
	// Prices are per device of each type: the jobs' Polytope.Cost at Bound is the Budget. They are 0
	// where the job Short alone sets the ratio.
	Prices []float64
	// Short is the index of the job that can never finish or sets the ratio alone, -1 where Prices are the proof.
	Short int
}

// FinishTimes finds the shares that minimise the worst finish-time ratio.
func (s *SharesSolver) FinishTimes(ctx context.Context, p Polytope, finish Finish) (FinishResult, error) {
	var found problems
	p.check(&found)
	for _, list := range []struct {
		name   string
		values []float64
	}{{"elapsed time", finish.Elapsed}, {"remaining work", finish.Remaining}, {"time alone", finish.Exclusive}} {
		if list.values == nil && len(p.Jobs) > 0 {
			found.add("optim: no %s", list.name)
		}
		p.checkPerJob(&found, list.name, list.values)
	}
	for i, alone := range finish.Exclusive {
		if alone == 0 {
			found.add("optim: time alone of job %d is 0, want more", i)
		}
	}
	if err := found.err(); err != nil {
		return FinishResult{}, err
	}
	s.targets = targets{finish: &finish}
	r, err := s.highest(ctx, p)
	s.targets.finish = nil
	result := FinishResult{Feasible: r.Feasible, Shares: r.Shares, Bound: -r.Bound, Prices: r.Prices, Short: r.Short}
	for i, x := range r.Shares {
		result.Ratio = max(result.Ratio, finish.ratio(i, p.Rate(i, x)))
	}
	return result, err
}

// MakespanResult is the division that ends all work first.
type MakespanResult struct {
	// Feasible is false when the job Short can never finish.
	Feasible bool
	// Shares is the fraction of time that a member of each row spends on each type; nil if one can never finish.
	Shares [][]float64
	// Seconds is when the last job ends if Shares are held, in the unit of time of the rates;
	// Bound proves that it cannot be sooner.
	Seconds, Bound float64
	// Short is the index of the job that can never finish or ends last whatever the others get, -1 where there is none.
	Short int
}

// Makespan finds the shares under which the last job ends first: one max-min over rates per remaining work.
func (s *SharesSolver) Makespan(ctx context.Context, p Polytope, remaining []float64) (MakespanResult, error) {
	r, err := s.MaxMin(ctx, p, Level{Slope: remaining})
	result := MakespanResult{
		Feasible: r.Feasible && r.Level > 0, Shares: r.Shares, Seconds: 1 / r.Level, Bound: 1 / r.Bound, Short: r.Short,
	}
	if err != nil || math.IsInf(r.Level, 1) {
		result.Seconds, result.Bound = 0, 0
	}
	return result, err
}
