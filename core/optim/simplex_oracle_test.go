package optim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Relation is how a row of a linear program compares with its bound.
type Relation int

// The relations of a row.
const (
	AtMost Relation = iota
	Equal
	AtLeast
)

// String is the sign of the relation.
func (r Relation) String() string {
	switch r {
	case AtMost:
		return "<="
	case Equal:
		return "="
	case AtLeast:
		return ">="
	}
	return fmt.Sprintf("relation %d", int(r))
}

// Row is one constraint of a linear program: Σ_k Coefficients[k] x[k] Relation Bound.
type Row struct {
	Coefficients []float64
	Relation     Relation
	Bound        float64
}

// LinearProgram asks for the x >= 0 of the largest Σ_k Objective[k] x[k] that keeps all rows.
type LinearProgram struct {
	Objective []float64
	Rows      []Row
	// Upper bounds the variables; nil, or an infinite value, is no bound.
	Upper []float64
	// MaxPivots ends a solve that takes longer; 0 stands for more than any sound program needs.
	MaxPivots int
}

// Outcome is how the solve of a linear program ended.
type Outcome int

// The outcomes of a solve.
const (
	// Optimal has X, Value and Duals, whose Bound is the value.
	Optimal Outcome = iota
	// Infeasible has Duals that add the rows up to a contradiction: their Bound of the zero objective is below 0.
	Infeasible
	// Unbounded has an X that keeps all rows and a Ray along which it may go on for ever, gaining value.
	Unbounded
)

// String is the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Optimal:
		return "optimal"
	case Infeasible:
		return "infeasible"
	case Unbounded:
		return "unbounded"
	}
	return fmt.Sprintf("outcome %d", int(o))
}

// LinearSolution is the answer to a linear program.
type LinearSolution struct {
	Outcome Outcome
	X       []float64
	Value   float64
	// Duals is the price of each row: >= 0 for AtMost, <= 0 for AtLeast, any for Equal.
	Duals  []float64
	Ray    []float64
	Pivots int
}

// check notes what is wrong with the program.
func (p LinearProgram) check(found *problems) {
	n := len(p.Objective)
	number := func(v float64, name string, args ...any) {
		if !sane(v) {
			found.add("optim: %s is %v, want 0 or 1e-50 to 1e50 or its negative", fmt.Sprintf(name, args...), v)
		}
	}
	for k, v := range p.Objective {
		number(v, "objective of variable %d", k)
	}
	for i, row := range p.Rows {
		if row.Relation < AtMost || row.Relation > AtLeast {
			found.add("optim: row %d has %v, want AtMost, Equal or AtLeast", i, row.Relation)
		}
		if len(row.Coefficients) != n {
			found.add("optim: row %d has %d coefficients, want one for each of %d variables", i, len(row.Coefficients), n)
		}
		for k, v := range row.Coefficients {
			number(v, "coefficient %d of row %d", k, i)
		}
		number(row.Bound, "bound of row %d", i)
	}
	if p.Upper != nil && len(p.Upper) != n {
		found.add("optim: %d upper bounds, want one for each of %d variables", len(p.Upper), n)
	}
	for k, v := range p.Upper {
		if math.IsNaN(v) || v < 0 {
			found.add("optim: upper bound of variable %d is %v, want a number >= 0", k, v)
		}
	}
	if p.MaxPivots < 0 {
		found.add("optim: at most %d pivots, want >= 0", p.MaxPivots)
	}
}

// upper is the upper bound of a variable.
func (p LinearProgram) upper(k int) float64 {
	if p.Upper == nil || p.Upper[k] > 1e50 {
		return math.Inf(1)
	}
	return p.Upper[k]
}

// Bound is what the duals prove to be the largest value of an objective: no x that keeps the rows has more. It is
// infinite where they prove nothing. A gain of up to 1e-9 of the objective's largest coefficient passes for rounding.
func (p LinearProgram) Bound(objective, duals []float64) float64 {
	if len(duals) != len(p.Rows) {
		return math.Inf(1) // they prove nothing
	}
	var bound, scale float64
	for i, row := range p.Rows {
		y := duals[i]
		if row.Relation == AtMost && y < 0 || row.Relation == AtLeast && y > 0 {
			return math.Inf(1)
		}
		bound += y * row.Bound
	}
	for k, c := range objective {
		gain, size := c, math.Abs(c)
		for i, row := range p.Rows {
			gain -= duals[i] * row.Coefficients[k]
			size = max(size, math.Abs(duals[i]*row.Coefficients[k]))
		}
		scale = max(scale, size)
		if gain <= tolerance*scale {
			continue
		}
		bound += gain * p.upper(k)
	}
	return bound
}

// ErrRange is returned when the numbers of a problem are too far apart for its solution to be told.
var ErrRange = errors.New("optim: the numbers are too far apart")

// SolveLinear solves a linear program on a dense tableau in two phases. The entering variable is the one of the
// largest gain, or, after steps that change nothing, the first that gains (Bland's rule, which cannot circle).
// A pivot costs O(rows × (variables + rows)).
func SolveLinear(ctx context.Context, p LinearProgram) (LinearSolution, error) {
	var found problems
	p.check(&found)
	if err := found.err(); err != nil {
		return LinearSolution{}, err
	}
	t := newTableau(p)
	t.price(func(variable int) float64 { // first phase: the least that the rows are missed by
		if t.artificial(variable) {
			return -1
		}
		return 0
	})
	if _, err := t.improve(ctx); err != nil {
		return LinearSolution{}, err
	}
	if t.missed() > tolerance {
		return LinearSolution{Outcome: Infeasible, Duals: t.duals(p, -1), Pivots: t.pivots}, nil
	}
	t.retire()
	t.price(func(variable int) float64 {
		if variable < t.variables {
			return p.Objective[variable] * t.unit[variable]
		}
		return 0
	})
	ray, err := t.improve(ctx)
	if err != nil {
		return LinearSolution{}, err
	}
	solution := LinearSolution{X: t.solution(), Pivots: t.pivots}
	for k, c := range p.Objective {
		solution.Value += c * solution.X[k]
	}
	if ray >= 0 {
		solution.Outcome, solution.Ray = Unbounded, t.ray(ray)
		return solution, nil
	}
	solution.Duals = t.duals(p, 0)
	for _, v := range slices.Concat(solution.X, solution.Duals) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return LinearSolution{}, ErrRange
		}
	}
	return solution, nil
}
