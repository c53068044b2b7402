package optim

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// ErrAssignmentInfeasible says that the shorter side of a table cannot be matched.
var ErrAssignmentInfeasible = errors.New("optim: not every row and column of the shorter side can be matched")

// Assigner matches rows to columns one to one at the least cost; of a rectangular table the shorter side is matched
// whole. A cost of +Inf forbids a pair. Shortest augmenting paths with the row reduction of Jonker and Volgenant
// (Computing 38, 1987) in the rectangular form of Crouse (IEEE TAES 52, 2016). O(r²c) for r rows and c ≥ r columns.
//
// An Assigner holds the buffers of its calls: it is reused, by one goroutine at a time. The zero value is ready.
type Assigner struct {
	turned        [][]float64 // the table on its side
	cells         []float64
	column, owner []int // of each row; of each column, -1 when free
	u, v          []float64
	distance      []float64
	from          []int
	done          []bool
	order         []int // columns as they were labelled for good
	other         []int
}

// A Matching is an assignment of least cost with its certificate. Its slices belong to the Assigner and last until its
// next call.
type Matching struct {
	Columns []int // of each row, -1 when it has none
	Cost    float64
	// Rows and Prices are duals: a row's dual plus a column's never exceed their cost and meet it on matched pairs;
	// those of the longer side are not positive, and 0 where unmatched.
	Rows, Prices []float64
	Bound        float64 // the sum of the duals: no matching costs less
}

// Solve matches a table. It fails on a malformed table, when the shorter side cannot be matched
// (ErrAssignmentInfeasible), and when the context ends.
func (a *Assigner) Solve(ctx context.Context, cost [][]float64) (Matching, error) {
	if err := checkAssignment(cost); err != nil {
		return Matching{}, err
	}
	rows, columns := len(cost), 0
	if rows > 0 {
		columns = len(cost[0])
	}
	wide := rows <= columns
	table := cost
	if !wide {
		table = a.turn(cost, columns)
	}
	if err := a.match(ctx, table, max(rows, columns)); err != nil {
		return Matching{}, err
	}
	m := Matching{Columns: a.column, Rows: a.u, Prices: a.v}
	if !wide {
		a.other = append(a.other[:0], a.owner...)
		m = Matching{Columns: a.other, Rows: a.v, Prices: a.u}
	}
	for i, j := range m.Columns {
		if j >= 0 {
			m.Cost += cost[i][j]
		}
	}
	for _, dual := range m.Rows {
		m.Bound += dual
	}
	for _, dual := range m.Prices {
		m.Bound += dual
	}
	return m, nil
}

func checkAssignment(cost [][]float64) error {
	var faults []error
	for i, row := range cost {
		if len(row) != len(cost[0]) {
			faults = append(faults, fmt.Errorf("optim: assignment: row %d has %d costs, want %d as in the first", i, len(row), len(cost[0])))
		}
		for j, c := range row {
			if math.IsNaN(c) || math.IsInf(c, -1) {
				faults = append(faults, fmt.Errorf("optim: assignment: cost of row %d and column %d is %v, want a number, or +Inf for a forbidden pair", i, j, c))
			}
		}
	}
	return errors.Join(faults...)
}

func (a *Assigner) turn(cost [][]float64, columns int) [][]float64 {
	a.cells = zeroed(a.cells, columns*len(cost))
	a.turned = zeroed(a.turned, columns)
	for j := range a.turned {
		a.turned[j] = a.cells[j*len(cost) : (j+1)*len(cost)]
		for i, row := range cost {
			a.turned[j][i] = row[j]
		}
	}
	return a.turned
}

func (a *Assigner) match(ctx context.Context, cost [][]float64, columns int) error {
	a.column, a.u = zeroed(a.column, len(cost)), zeroed(a.u, len(cost))
	a.owner, a.v = zeroed(a.owner, columns), zeroed(a.v, columns)
	a.distance, a.from, a.done = zeroed(a.distance, columns), zeroed(a.from, columns), zeroed(a.done, columns)
	for j := range a.owner {
		a.owner[j] = -1
	}
	for i, row := range cost { // a row whose cheapest column is free takes it
		a.column[i] = -1
		cheapest := -1
		for j, c := range row {
			if !math.IsInf(c, 1) && (cheapest < 0 || c < row[cheapest]) {
				cheapest = j
			}
		}
		if cheapest < 0 {
			return fmt.Errorf("%w: line %d has no pair", ErrAssignmentInfeasible, i)
		}
		a.u[i] = row[cheapest]
		if a.owner[cheapest] < 0 {
			a.column[i], a.owner[cheapest] = cheapest, i
		}
	}
	for i := range cost {
		if a.column[i] >= 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("optim: assignment: %w", err)
		}
		if !a.augment(cost, i) {
			return fmt.Errorf("%w: line %d", ErrAssignmentInfeasible, i)
		}
	}
	return nil
}

// augment matches one more row along a path of least reduced cost.
func (a *Assigner) augment(cost [][]float64, root int) bool {
	for j := range a.distance {
		a.distance[j], a.done[j] = math.Inf(1), false
	}
	a.order = a.order[:0]
	last, length := -1, 0.0
	for i := root; ; {
		next := -1
		for j, c := range cost[i] {
			if a.done[j] {
				continue
			}
			if d := length + max(0, c-a.u[i]-a.v[j]); d < a.distance[j] {
				a.distance[j], a.from[j] = d, i
			}
			if !math.IsInf(a.distance[j], 1) && (next < 0 || a.distance[j] < a.distance[next]) {
				next = j
			}
		}
		if next < 0 {
			return false
		}
		length = a.distance[next]
		if a.owner[next] < 0 {
			last = next
			break
		}
		a.done[next] = true
		a.order = append(a.order, next)
		i = a.owner[next]
	}
	a.u[root] += length
	for _, j := range a.order {
		shift := length - a.distance[j]
		a.u[a.owner[j]] += shift
		a.v[j] -= shift
	}
	for j := last; j >= 0; {
		i := a.from[j]
		a.owner[j] = i
		a.column[i], j = j, a.column[i]
	}
	return true
}
