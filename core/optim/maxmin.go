package optim

import (
	"context"
	"errors"
)

// ErrPivots is returned when a solver gives up after more steps than any sound input needs: numbers that lie more than a
// million times apart may end so.
var ErrPivots = errors.New("optim: too many pivots")

// SharesSolver finds time shares over a Polytope. It keeps its buffers from one call to the next. The zero value is
// ready to use; one SharesSolver serves one goroutine at a time. What it returns is the caller's.
type SharesSolver struct {
	prices  priceSimplex
	targets targets
	sample  *SharesSolver // for a first guess of the prices
}

// Level says what the jobs must reach at a level t: job i progresses at Floor[i] + Slope[i] t at least. No Floor stands
// for all 0, no Slope for all 1. A job with slope 0 stays out of the minimum and keeps its floor.
type Level struct {
	Floor []float64 // progress of each job at level 0
	Slope []float64 // progress of each job for each unit of the level
}

// MaxMinResult is the fairest division.
type MaxMinResult struct {
	// Feasible reports whether the floors can be met. If they cannot, Shares is nil and either
	// Prices prove it (Polytope.Cost of the floors above Budget), or the job Short can never
	// reach its floor, however empty the cluster.
	Feasible bool
	// Shares is the fraction of time that a member of each row spends on each type. But for rows of
	// many members, at most as many rows as there are types use more types than their own demand
	// asks for, and none uses more than needed.
	Shares [][]float64
	// Level is the level that Shares reach; it is infinite when no job has a slope.
	Level float64
	// Bound is a proof that no level above it can be reached: Level and Bound differ
	// by rounding only: mostly about 1e-9 of Bound, 3.4e-4 at worst in some
	// 3,000 random instances, where numbers lie many magnitudes apart.
	Bound float64
	// Prices are per device of each type. Where they are not all 0, the jobs' Polytope.Cost at Bound is the Budget;
	// where they are, the job Short runs at its best type all the time and cannot go faster.
	Prices []float64
	// Short is the index of that job, -1 where Prices are the proof.
	Short int
	// Bottleneck reports which jobs cannot rise above what they have at Level while all others keep theirs. It is proven
	// where true. At least one job with a slope has it.
	Bottleneck []bool
}

// MaxMin finds the highest level that the polytope allows.
//
// It is exact, not a search over levels: the level falls from a bound that the prices prove to the next (Newton's
// method on a convex function with finitely many pieces) until shares reach it.
func (s *SharesSolver) MaxMin(ctx context.Context, p Polytope, level Level) (MaxMinResult, error) {
	var found problems
	p.check(&found)
	p.checkPerJob(&found, "floor", level.Floor)
	p.checkPerJob(&found, "slope", level.Slope)
	if err := found.err(); err != nil {
		return MaxMinResult{}, err
	}
	s.targets.linear(level)
	return s.highest(ctx, p)
}

// FeasibleResult is an answer to a demand.
type FeasibleResult struct {
	// Feasible reports whether the demand can be met, to a relative 1e-9.
	Feasible bool
	// Shares meet the demand and take no more than they need; nil if there are none.
	Shares [][]float64
	// Prices prove that there are none: Polytope.Cost of the demand is above Budget. If they are all 0 or nil, the job
	// Short cannot meet its demand by itself.
	Prices []float64
	// Short is the index of a job that cannot meet its demand by itself, -1 where Prices are the proof.
	Short int
}

// Feasible finds shares under which every member of row i progresses at
// demand[i] at least, or proves that there are none.
func (s *SharesSolver) Feasible(ctx context.Context, p Polytope, demand []float64) (FeasibleResult, error) {
	result, err := s.MaxMin(ctx, p, Level{Floor: demand, Slope: make([]float64, len(p.Jobs))})
	return FeasibleResult{result.Feasible, result.Shares, result.Prices, result.Short}, err
}
