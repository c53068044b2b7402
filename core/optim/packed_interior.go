package optim

import "math"

// interior is a primal-dual interior point method (Mehrotra's) for the linear program of Packed and its rows: the least fall below the level
// that no job alone could reach,
//
//	minimise fall,  s.t.  A x = b,  x >= 0,
//
// where x is the time of classes and of pairs, the fall, and what each row leaves. Barriers weigh as much as the single jobs and pairs that a
// variable stands for, so that the path is that of the problem of single jobs, and so is its end.
type interior struct {
	rows, columns int
	start, row    []int     // of the entries of each column but those of what rows leave
	value         []float64 // of the entries
	unit          []float64 // what a column counts in
	sign          []float64 // of what rows leave: -1 for rows of at least
	bound, cost   []float64 // b, c
	weight        []float64 // of the barriers

	x, z, dx, dz, target, dual, change, need, lack []float64
	normal                                         []float64 // A D A', then its Cholesky factor
}

const (
	// interiorSteps bounds the steps; mostly some 20 are taken.
	interiorSteps = 100
	// interiorGap is the relative gap at which the path is left.
	interiorGap = 1e-9
)

// begin makes room for so many rows.
func (s *interior) begin(rows int) {
	s.rows, s.columns = rows, 0
	s.start, s.row, s.value, s.unit, s.cost = append(s.start[:0], 0), s.row[:0], s.value[:0], s.unit[:0], s.cost[:0]
	s.weight, s.sign, s.bound = s.weight[:0], resize(s.sign, rows), resize(s.bound, rows)
}

// entry adds an entry to the column that is being made.
func (s *interior) entry(row int, value float64) {
	if value != 0 {
		s.row, s.value = append(s.row, row), append(s.value, value)
	}
}

// end ends the column: its variable counts in units, and stands for so many.
func (s *interior) end(unit, weight, cost float64) {
	for k := s.start[s.columns]; k < len(s.row); k++ {
		s.value[k] *= unit
	}
	s.columns++
	s.start = append(s.start, len(s.row))
	s.unit, s.weight, s.cost = append(s.unit, unit), append(s.weight, weight), append(s.cost, cost)
}

// load writes the program of a division with rows for what members reach, below a level.
func (s *interior) load(p Packed, cuts []packedCut, most float64) {
	types, classes := len(p.Capacity), len(p.Classes)
	s.begin(types + classes + len(cuts))
	of := make([][]int, classes) // rows of the cuts of each class
	for i, cut := range cuts {
		of[cut.class] = append(of[cut.class], i)
	}
	reaches := func(class int, rate float64) {
		for _, i := range of[class] {
			s.entry(types+classes+i, max(rate-cuts[i].above, 0))
		}
	}
	for a := range p.Classes {
		c := &p.Classes[a]
		n := float64(len(c.Members))
		for j, rate := range c.Rates {
			if p.Capacity[j] <= 0 || rate <= 0 {
				continue
			}
			s.entry(j, c.Devices)
			s.entry(types+a, 1)
			reaches(a, rate)
			s.end(min(n, p.Capacity[j]/c.Devices), n, 0)
		}
	}
	for _, pair := range p.Pairs {
		if !p.runs(pair) {
			continue
		}
		first, second := &p.Classes[pair.First], &p.Classes[pair.Second]
		n, m := float64(len(first.Members)), float64(len(second.Members))
		weight := n * m
		s.entry(pair.Type, first.Devices)
		if pair.First == pair.Second {
			weight = n * (n - 1) / 2
			s.entry(types+pair.First, 2)
			for _, i := range of[pair.First] {
				above := cuts[i].above
				s.entry(types+classes+i, max(pair.Rates[0]-above, 0)+max(pair.Rates[1]-above, 0))
			}
		} else {
			s.entry(types+pair.First, 1)
			s.entry(types+pair.Second, 1)
			reaches(pair.First, pair.Rates[0])
			reaches(pair.Second, pair.Rates[1])
		}
		s.end(min(n, m, p.Capacity[pair.Type]/first.Devices), weight, 0)
	}
	for i, cut := range cuts {
		s.entry(types+classes+i, cut.slope)
	}
	s.end(max(math.Abs(most), 1e-12), 1, 1)
	for j, w := range p.Capacity {
		s.bound[j], s.sign[j] = w, 1
	}
	for a := range p.Classes {
		s.bound[types+a], s.sign[types+a] = float64(len(p.Classes[a].Members)), 1
	}
	for i, cut := range cuts {
		s.bound[types+classes+i], s.sign[types+classes+i] = cut.floor+cut.slope*most-float64(cut.count)*cut.above, -1
	}
	for r := range s.rows {
		weight := 1.0
		if k := r - types; k >= 0 && k < classes {
			weight = float64(len(p.Classes[k].Members))
		} else if k >= classes {
			if cut := &cuts[k-classes]; cut.above == 0 {
				weight = float64(cut.count)
			}
		}
		s.weight = append(s.weight, weight)
	}
	s.scale()
}

// runs reports whether the members of a pair can be together.
func (p Packed) runs(pair PackedPair) bool {
	return p.Capacity[pair.Type] > 0 && pair.Rates[0] > 0 && pair.Rates[1] > 0 &&
		(pair.First != pair.Second || len(p.Classes[pair.First].Members) > 1)
}

// scale brings the largest entry of each row to 1; what it leaves counts in the same unit.
func (s *interior) scale() {
	largest := resize(s.need, s.rows)
	clear(largest)
	for k, r := range s.row {
		largest[r] = max(largest[r], math.Abs(s.value[k]))
	}
	for r := range largest {
		if largest[r] == 0 {
			largest[r] = 1
		}
		s.bound[r] /= largest[r]
	}
	for k, r := range s.row {
		s.value[k] /= largest[r]
	}
	s.need = largest
}

// solve finds the division and what it reaches.
func (s *interior) solve(p Packed, cuts []packedCut, most float64) classResult {
	s.load(p, cuts, most)
	s.walk()
	r := classResult{alone: p.nothing(), together: make([]float64, len(p.Pairs)), level: most}
	inside := s.usage(len(p.Capacity) + len(p.Classes))
	at := 0
	for a := range p.Classes {
		for j, rate := range p.Classes[a].Rates {
			if p.Capacity[j] > 0 && rate > 0 {
				r.alone[a][j] = s.x[at] * s.unit[at] / inside
				at++
			}
		}
	}
	for i, pair := range p.Pairs {
		if p.runs(pair) {
			r.together[i] = s.x[at] * s.unit[at] / inside
			at++
		}
	}
	for i, cut := range cuts {
		if cut.slope <= 0 {
			continue
		}
		above := float64(cut.count)*cut.above - cut.floor
		for _, has := range p.services(&r, cut.class, nil) {
			above += max(has.rate-cut.above, 0) * has.time
		}
		r.level = min(r.level, above/cuts[i].slope)
	}
	r.bound = max(most-s.proof()*s.unit[s.columns-1], r.level)
	return r
}

// usage is how many times what there is the variables take at most, 1 at least: the method ends near the inside, on either side.
func (s *interior) usage(rows int) float64 {
	s.times(s.lack, s.x)
	most := 1.0
	for r := range rows {
		if b := s.bound[r]; b > 0 {
			most = max(most, (s.lack[r]-s.x[s.columns+r])/b)
		}
	}
	return most
}

// proof is the least fall that the prices prove, in the unit of its column: prices are brought to where no column gains by raising those of time.
// Every column but that of the fall is of some class, whose row follows that of its type.
func (s *interior) proof() float64 {
	fall, asked := s.columns-1, 0.0
	for r, y := range s.dual {
		s.dual[r] = s.sign[r] * min(s.sign[r]*y, 0)
	}
	for k := s.start[fall]; k < s.start[fall+1]; k++ {
		asked += s.value[k] * s.dual[s.row[k]]
	}
	if asked > 1 {
		for r := range s.dual {
			s.dual[r] /= asked
		}
	}
	for c := range fall {
		gain := 0.0
		for k := s.start[c]; k < s.start[c+1]; k++ {
			gain += s.value[k] * s.dual[s.row[k]]
		}
		if time := s.start[c] + 1; gain > 0 {
			s.dual[s.row[time]] -= gain / s.value[time]
		}
	}
	value := 0.0
	for r, b := range s.bound {
		value += b * s.dual[r]
	}
	return value
}

// walk follows the path from a start of Mehrotra's to the gap.
func (s *interior) walk() {
	n := s.columns + s.rows
	for _, list := range []*[]float64{&s.x, &s.z, &s.dx, &s.dz, &s.target} {
		*list = resize(*list, n)
	}
	for _, list := range []*[]float64{&s.dual, &s.change, &s.need, &s.lack} {
		*list = resize(*list, s.rows)
	}
	s.normal = resize(s.normal, s.rows*s.rows)
	s.initial()
	weights := 0.0
	for _, w := range s.weight {
		weights += w
	}
	centre := 0
	for range interiorSteps {
		gap, primal, dual := s.gap(), s.residuals(), s.dualResidual()
		value := math.Abs(s.cost[s.columns-1] * s.x[s.columns-1])
		if gap <= 1e-4*interiorGap { // what is left of the residuals is rounding
			return
		}
		done := gap <= interiorGap*(1+value) && primal <= 1e-9 && dual <= 1e-9
		if done {
			if centre++; centre > 2 {
				return
			}
		}
		mu := gap / weights
		if !s.factor() {
			return
		}
		sigma := 1.0
		if centre == 0 {
			for i := range s.target { // the predictor
				s.target[i] = -s.x[i] * s.z[i]
			}
			s.direction()
			toX, toZ := s.longest(s.x, s.dx, 1), s.longest(s.z, s.dz, 1)
			ahead := 0.0
			for i := range s.x {
				ahead += (s.x[i] + toX*s.dx[i]) * (s.z[i] + toZ*s.dz[i])
			}
			sigma = math.Pow(max(ahead, 0)/gap, 3)
			second := 1.0
			if min(toX, toZ) < 0.1 { // far from the path: back to it
				sigma, second = 0.8, 0
			}
			for i := range s.target {
				s.target[i] = sigma*mu*s.weight[i] - s.x[i]*s.z[i] - second*s.dx[i]*s.dz[i]
			}
		} else {
			for i := range s.target {
				s.target[i] = sigma*mu*s.weight[i] - s.x[i]*s.z[i]
			}
		}
		s.direction()
		toX, toZ := s.longest(s.x, s.dx, 0.995), s.longest(s.z, s.dz, 0.995)
		if max(toX, toZ) < 1e-8 {
			return
		}
		for i := range s.x {
			s.x[i] += toX * s.dx[i]
			s.z[i] += toZ * s.dz[i]
		}
		for r := range s.dual {
			s.dual[r] += toZ * s.change[r]
		}
	}
}

// longest is the step at which a variable comes so near to 0, and 1 at most.
func (s *interior) longest(x, dx []float64, near float64) float64 {
	step := 1.0
	for i, d := range dx {
		if d < 0 {
			step = min(step, -near*x[i]/d)
		}
	}
	return step
}

// initial is Mehrotra's start: the least squares, moved into the inside.
func (s *interior) initial() {
	for i := range s.x {
		s.x[i], s.z[i] = 1, 1
	}
	for r := range s.dual {
		s.dual[r] = 0
	}
	copy(s.lack, s.bound)
	s.factor()
	s.backsolve(s.lack)
	s.transposed(s.x, s.lack) // A'(AA')⁻¹b
	s.times(s.change, s.extended())
	copy(s.lack, s.change)
	s.backsolve(s.lack)
	copy(s.dual, s.lack)
	s.transposed(s.z, s.dual)
	for i := range s.z {
		s.z[i] = s.costOf(i) - s.z[i]
	}
	shiftX, shiftZ := 0.0, 0.0
	for i := range s.x {
		shiftX, shiftZ = max(shiftX, -1.5*s.x[i]), max(shiftZ, -1.5*s.z[i])
	}
	product, sumX, sumZ := 0.0, 0.0, 0.0
	for i := range s.x {
		s.x[i] += shiftX
		s.z[i] += shiftZ
		product += s.x[i] * s.z[i]
		sumX += s.x[i]
		sumZ += s.z[i]
	}
	moreX, moreZ := 0.5*product/max(sumZ, 1e-12), 0.5*product/max(sumX, 1e-12)
	for i := range s.x {
		s.x[i] = max(s.x[i]+moreX, 1e-3)
		s.z[i] = max(s.z[i]+moreZ, 1e-3)
	}
}

// extended is the cost of every variable.
func (s *interior) extended() []float64 {
	for i := range s.target {
		s.target[i] = s.costOf(i)
	}
	return s.target
}

func (s *interior) costOf(i int) float64 {
	if i < s.columns {
		return s.cost[i]
	}
	return 0
}

func (s *interior) gap() float64 {
	sum := 0.0
	for i, x := range s.x {
		sum += x * s.z[i]
	}
	return sum
}

// residuals keeps b - A x, and returns its largest part.
func (s *interior) residuals() float64 {
	s.times(s.lack, s.x)
	most := 0.0
	for r, b := range s.bound {
		s.lack[r] = b - s.lack[r]
		most = max(most, math.Abs(s.lack[r])/(1+math.Abs(b)))
	}
	return most
}

// dualResidual keeps c - A'y - z in the direction of z, and returns its largest part.
func (s *interior) dualResidual() float64 {
	s.transposed(s.dz, s.dual)
	most := 0.0
	for i := range s.dz {
		s.dz[i] = s.costOf(i) - s.dz[i] - s.z[i]
		most = max(most, math.Abs(s.dz[i]))
	}
	return most
}

// times is A v.
func (s *interior) times(into, v []float64) {
	clear(into)
	for c := range s.columns {
		if v[c] == 0 {
			continue
		}
		for k := s.start[c]; k < s.start[c+1]; k++ {
			into[s.row[k]] += s.value[k] * v[c]
		}
	}
	for r := range into {
		into[r] += s.sign[r] * v[s.columns+r]
	}
}

// transposed is A'v.
func (s *interior) transposed(into, v []float64) {
	for c := range s.columns {
		sum := 0.0
		for k := s.start[c]; k < s.start[c+1]; k++ {
			sum += s.value[k] * v[s.row[k]]
		}
		into[c] = sum
	}
	for r := range s.rows {
		into[s.columns+r] = s.sign[r] * v[r]
	}
}

// factor factors A D A', D = x/z.
func (s *interior) factor() bool {
	clear(s.normal)
	m := s.rows
	for c := range s.columns {
		d := s.x[c] / s.z[c]
		for k := s.start[c]; k < s.start[c+1]; k++ {
			part := d * s.value[k]
			for l := s.start[c]; l <= k; l++ {
				s.normal[max(s.row[k], s.row[l])*m+min(s.row[k], s.row[l])] += part * s.value[l]
			}
		}
	}
	for r := range m {
		s.normal[r*m+r] += s.x[s.columns+r] / s.z[s.columns+r]
	}
	return cholesky(s.normal, m)
}

// cholesky turns the lower half of a symmetric matrix into its factor. A row that hangs on those before it counts for nothing. It is false where
// a number is none.
func cholesky(a []float64, n int) bool {
	for i := range n {
		line := a[i*n : i*n+i+1]
		whole := line[i]
		for j := range i {
			other := a[j*n : j*n+j+1]
			sum := line[j]
			for k, v := range other[:j] {
				sum -= v * line[k]
			}
			line[j] = sum / other[j]
		}
		left := whole
		for _, v := range line[:i] {
			left -= v * v
		}
		switch {
		case math.IsNaN(left) || math.IsInf(left, 0):
			return false
		case left <= 1e-14*whole || left <= 0:
			line[i] = 1e64
		default:
			line[i] = math.Sqrt(left)
		}
	}
	return true
}

// backsolve solves with the factor.
func (s *interior) backsolve(v []float64) {
	m := s.rows
	for i := range m {
		line := s.normal[i*m : i*m+i+1]
		sum := v[i]
		for k, l := range line[:i] {
			sum -= l * v[k]
		}
		v[i] = sum / line[i]
	}
	for i := m - 1; i >= 0; i-- {
		v[i] /= s.normal[i*m+i]
		for k, l := range s.normal[i*m : i*m+i] {
			v[k] -= l * v[i]
		}
	}
}

// direction solves for the step to the products in target: z dx + x dz = target, A dx = b - A x, A'dy + dz = c - A'y - z.
func (s *interior) direction() {
	s.residuals()
	s.dualResidual() // in dz
	for i := range s.dx {
		s.dx[i] = s.x[i] / s.z[i] * (s.dz[i] - s.target[i]/s.x[i])
	}
	s.times(s.change, s.dx)
	for r := range s.change {
		s.change[r] += s.lack[r]
	}
	s.backsolve(s.change)
	s.transposed(s.dx, s.change) // A'dy
	for i := range s.dx {
		s.dz[i] -= s.dx[i]
		s.dx[i] = (s.target[i] - s.x[i]*s.dz[i]) / s.z[i]
	}
}
