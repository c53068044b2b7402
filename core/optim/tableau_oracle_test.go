package optim

import (
	"context"
	"math"
)

// tableau is a linear program in the form that pivots work on: every row an equation,
// solved for its basic variable, all others at
// 0. A variable at its upper bound is exchanged for its distance to it, so that it is at 0 as well.
//
// Variables are numbered: those of the program, then a logical one per row (what the row leaves over), then an
// artificial one per row, which only exists while it is basic. The logical of an equation is artificial too.
type tableau struct {
	variables, rows int
	cell            [][]float64 // by row: one for each variable and logical
	value           []float64   // of each row's basic variable
	basic           []int
	upper           []float64
	turned          []bool // exchanged for the distance to the upper bound
	equation        []bool
	gain            []float64 // by variable and logical: what a unit of it adds to the objective
	size            float64   // of the objective's largest coefficient
	factor          []float64 // the row of the program was multiplied by this
	unit            []float64 // the variable of the program was divided by this

	pivots, most int
}

const (
	// pivotTolerance is the least cell, relative to scaled rows, that counts as not 0.
	pivotTolerance = 1e-9
	// gainTolerance is the least gain, relative to the objective, that counts as one.
	gainTolerance = 1e-11
)

// newTableau scales a program and starts with the logicals and artificials as basis.
func newTableau(p LinearProgram) *tableau {
	n, m := len(p.Objective), len(p.Rows)
	t := &tableau{
		variables: n, rows: m, cell: make([][]float64, m), value: make([]float64, m), basic: make([]int, m),
		upper: make([]float64, n+2*m), turned: make([]bool, n+2*m), equation: make([]bool, m), gain: make([]float64, n+m),
		factor: make([]float64, m), unit: make([]float64, n), most: p.MaxPivots,
	}
	if t.most == 0 {
		t.most = 100*(n+m) + 1000
	}
	largest := make([]float64, n)
	for i, row := range p.Rows {
		var size float64
		for _, a := range row.Coefficients {
			size = max(size, math.Abs(a))
		}
		t.factor[i] = toUnit(size)
		for k, a := range row.Coefficients {
			largest[k] = max(largest[k], math.Abs(a*t.factor[i]))
		}
		t.equation[i] = row.Relation == Equal
		if row.Relation == AtLeast || row.Relation == Equal && row.Bound < 0 {
			t.factor[i] = -t.factor[i]
		}
	}
	for k := range n {
		t.unit[k] = toUnit(largest[k])
		t.upper[k] = p.upper(k) / t.unit[k]
	}
	for k := n; k < len(t.upper); k++ {
		t.upper[k] = math.Inf(1)
	}
	for i, row := range p.Rows {
		sign := 1.0
		t.basic[i] = n + i
		if row.Bound*t.factor[i] < 0 { // an inequality that idling breaks
			sign, t.basic[i] = -1, n+m+i
		}
		t.cell[i] = make([]float64, n+m)
		for k, a := range row.Coefficients {
			t.cell[i][k] = sign * t.factor[i] * a * t.unit[k]
		}
		t.cell[i][n+i] = sign
		t.value[i] = sign * t.factor[i] * row.Bound
	}
	return t
}

// toUnit is the power of two that brings a size near 1.
func toUnit(size float64) float64 {
	if size == 0 {
		return 1
	}
	_, exponent := math.Frexp(size)
	return math.Ldexp(1, 1-exponent)
}

// artificial tells whether a variable must end at 0.
func (t *tableau) artificial(variable int) bool {
	return variable >= t.variables+t.rows || variable >= t.variables && t.equation[variable-t.variables]
}

// price sets the objective from the coefficient of each variable.
func (t *tableau) price(of func(variable int) float64) {
	t.size = 0
	for k := range t.gain {
		t.gain[k] = of(k)
		t.size = max(t.size, math.Abs(t.gain[k]))
		if t.turned[k] {
			t.gain[k] = -t.gain[k]
		}
	}
	for i, b := range t.basic {
		c := of(b)
		if t.turned[b] {
			c = -c
		}
		if c == 0 {
			continue
		}
		t.size = max(t.size, math.Abs(c))
		for k, a := range t.cell[i] {
			t.gain[k] -= c * a
		}
	}
}

// missed is by how much the rows are missed, relative to their bounds.
func (t *tableau) missed() float64 {
	var missed float64
	size := 1.0
	for i, b := range t.basic {
		if t.artificial(b) {
			missed += t.value[i]
		}
		size = max(size, math.Abs(t.value[i]))
	}
	return missed / size
}

// retire takes the artificial variables, which are 0 up to rounding, out of the basis. Those in
// rows that say nothing new stay there for good.
func (t *tableau) retire() {
	for i, b := range t.basic {
		if !t.artificial(b) {
			continue
		}
		t.value[i] = 0
		best := -1
		for k, a := range t.cell[i] {
			if !t.artificial(k) && math.Abs(a) > pivotTolerance && (best < 0 || math.Abs(a) > math.Abs(t.cell[i][best])) {
				best = k
			}
		}
		if best >= 0 {
			t.pivot(i, best)
			continue
		}
		for k := range t.cell[i] {
			if !t.artificial(k) {
				t.cell[i][k] = 0
			}
		}
	}
}

// improve pivots until no variable gains, and returns -1, or until one gains without end, and returns that.
func (t *tableau) improve(ctx context.Context) (int, error) {
	for still := 0; ; t.pivots++ {
		if t.pivots%16 == 0 && ctx.Err() != nil {
			return -1, context.Cause(ctx)
		}
		if t.pivots >= t.most {
			return -1, ErrPivots
		}
		entering := t.entering(still > 2*t.rows+16)
		if entering < 0 {
			return -1, nil
		}
		row, length := t.leaving(entering)
		if math.IsInf(length, 1) {
			return entering, nil
		}
		still++
		if length > 0 {
			still = 0
		}
		if row < 0 {
			t.turn(entering)
			continue
		}
		if b := t.basic[row]; t.cell[row][entering] < 0 { // it leaves at its upper bound
			t.turnBasic(row, b)
		}
		t.pivot(row, entering)
	}
}

// entering is the variable of the largest gain, or the first that gains; -1 if none does.
func (t *tableau) entering(first bool) int {
	best, most := -1, gainTolerance*t.size
	for k, g := range t.gain {
		if g > most && t.upper[k] > 0 && !t.artificial(k) {
			if first {
				return k
			}
			best, most = k, g
		}
	}
	return best
}

// leaving is the row whose basic variable first stops the entering one, and how far
// that gets; -1 where its own upper bound does.
func (t *tableau) leaving(entering int) (row int, length float64) {
	row, length = -1, t.upper[entering]
	for i, b := range t.basic {
		l := math.Inf(1)
		switch a := t.cell[i][entering]; {
		case a > pivotTolerance:
			l = max(t.value[i], 0) / a
		case a < -pivotTolerance && !math.IsInf(t.upper[b], 1):
			l = max(t.upper[b]-t.value[i], 0) / -a
		}
		if l < length || l == length && row >= 0 && b < t.basic[row] && !math.IsInf(l, 1) {
			row, length = i, l
		}
	}
	return row, length
}

// turn exchanges a variable that is not basic for its distance to its upper bound.
func (t *tableau) turn(variable int) {
	for i, row := range t.cell {
		t.value[i] -= row[variable] * t.upper[variable]
		row[variable] = -row[variable]
	}
	t.gain[variable] = -t.gain[variable]
	t.turned[variable] = !t.turned[variable]
}

// turnBasic exchanges a row's basic variable for its distance to its upper bound.
func (t *tableau) turnBasic(row, variable int) {
	for k, a := range t.cell[row] {
		if k != variable {
			t.cell[row][k] = -a
		}
	}
	t.value[row] = t.upper[variable] - t.value[row]
	t.turned[variable] = !t.turned[variable]
}

// pivot makes a variable basic in a row.
func (t *tableau) pivot(row, variable int) {
	pivotal := t.cell[row]
	inverse := 1 / pivotal[variable]
	for k := range pivotal {
		pivotal[k] *= inverse
	}
	pivotal[variable] = 1
	t.value[row] *= inverse
	for i, cells := range t.cell {
		if f := cells[variable]; i != row && f != 0 {
			subtract(cells, pivotal, f)
			cells[variable] = 0
			t.value[i] -= f * t.value[row]
		}
	}
	if f := t.gain[variable]; f != 0 {
		subtract(t.gain, pivotal, f)
		t.gain[variable] = 0
	}
	t.basic[row] = variable
}

// subtract takes factor times row from cells.
func subtract(cells, row []float64, factor float64) {
	row = row[:len(cells)]
	for k := range cells {
		cells[k] -= factor * row[k]
	}
}

// solution is the value of the program's variables.
func (t *tableau) solution() []float64 {
	x := make([]float64, t.variables)
	for i, b := range t.basic {
		if b < t.variables {
			x[b] = max(t.value[i], 0)
		}
	}
	for k := range x {
		if t.turned[k] {
			x[k] = max(t.upper[k]-x[k], 0)
		}
		x[k] *= t.unit[k]
	}
	return x
}

// ray is the direction in which the program's variables move with one that gains without end.
func (t *tableau) ray(entering int) []float64 {
	x := make([]float64, t.variables)
	if entering < t.variables {
		x[entering] = 1
	}
	for i, b := range t.basic {
		if b < t.variables {
			x[b] = -t.cell[i][entering]
			if t.turned[b] {
				x[b] = -x[b]
			}
			if math.Abs(x[b]) <= pivotTolerance {
				x[b] = 0
			}
		}
	}
	for k := range x {
		x[k] *= t.unit[k]
	}
	return x
}

// duals is the price of each row of the program, where the logicals of equations had the given
// coefficient. What is rounding beside the largest is 0.
func (t *tableau) duals(p LinearProgram, ofEquations float64) []float64 {
	duals := make([]float64, t.rows)
	largest := t.size
	for i, row := range p.Rows {
		duals[i] = -t.gain[t.variables+i]
		if row.Relation == Equal {
			duals[i] += ofEquations
		} else {
			duals[i] = max(duals[i], 0)
		}
		largest = max(largest, math.Abs(duals[i]))
	}
	for i, y := range duals {
		if math.Abs(y) <= gainTolerance*largest {
			y = 0
		}
		duals[i] = y * t.factor[i]
	}
	return duals
}
