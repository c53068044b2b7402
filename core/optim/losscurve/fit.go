package losscurve

import "math"

// The parameters of a fit are those of the scaled points: (a, b, c, d), (b₀, b₁, b₂), and of the super-linear family (A, g, c) of
// A e^(-g (x - x₀)) + c, x₀ being the first step.

const (
	// mostSteps is how many Gauss-Newton steps are taken: on exact data, up to some 50 bring the parameters to 1e-6.
	mostSteps = 60
	// exact is the mean square error from which on a fit is as good as numbers are.
	exact = 1e-32
	// still is the part of the error that a step must take away for another one to follow, where the error is that of noise.
	still = 1e-9
	// noise is the mean square error above which points are taken to be disturbed.
	noise = 1e-14
)

// value is the curve at a scaled step.
func (d *data) value(family Family, p *[4]float64, x float64) float64 {
	switch family {
	case SuperLinear:
		return p[0]*math.Exp(-p[1]*(x-d.x[0])) + p[2]
	case Optimus:
		return 1/(p[0]*x+p[1]) + p[2]
	default:
		return 1/((p[0]*x+p[1])*x+p[2]) + p[3]
	}
}

// slopes are the derivatives of the curve at a scaled step by its parameters, and its value.
func (d *data) slopes(family Family, p *[4]float64, x float64) (value float64, by [4]float64) {
	switch family {
	case SuperLinear:
		e := math.Exp(-p[1] * (x - d.x[0]))
		return p[0]*e + p[2], [4]float64{e, -p[0] * e * (x - d.x[0]), 1}
	case Optimus:
		q := 1 / (p[0]*x + p[1])
		return q + p[2], [4]float64{-q * q * x, -q * q, 1}
	default:
		q := 1 / ((p[0]*x+p[1])*x + p[2])
		return q + p[3], [4]float64{-q * q * x * x, -q * q * x, -q * q, 1}
	}
}

// bounded is how many parameters of a family, from the first on, may not be negative.
func bounded(family Family) int { return family.Parameters() - 1 }

// fit fits a family to at least as many points as it has parameters.
func (d *data) fit(family Family) ([4]float64, bool) {
	p, ok := d.start(family)
	if !ok {
		return p, false
	}
	p, missed := d.descend(family, p)
	return p, !math.IsInf(missed, 1)
}

// grid is where the parameter in which a family is not linear is looked for, by its decimal logarithm. Of fractions that is how far the curve ends below
// all losses, of the others how fast it falls over all steps.
type grid struct {
	low, width float64
	count      int
}

func gridOf(family Family) grid {
	if family == SuperLinear {
		return grid{-2, 5, 17}
	}
	return grid{-6, 8.5, 27}
}

// sections is how often the part of the grid around the best is divided: enough for what is left of it to be as good as straight.
const sections = 24

// start finds where to descend from: the best of a grid, and of the golden sections around it.
func (d *data) start(family Family) (best [4]float64, ok bool) {
	g := gridOf(family)
	at, least := -1, math.Inf(1)
	try := func(logarithm float64) float64 {
		p, solved := d.rest(family, math.Pow(10, logarithm))
		if !solved {
			return math.Inf(1)
		}
		e := d.error(family, &p)
		if e < least {
			best, least, ok = p, e, true
		}
		return e
	}
	stride := g.width / float64(g.count-1)
	for i := range g.count {
		before := least
		if try(g.low + float64(i)*stride); least < before {
			at = i
		}
	}
	if !ok {
		return best, false
	}
	const golden = 0.6180339887498949
	low, high := g.low+float64(at-1)*stride, g.low+float64(at+1)*stride
	left, right := high-golden*(high-low), low+golden*(high-low)
	onLeft, onRight := try(left), try(right)
	for range sections {
		if onLeft <= onRight {
			high, right, onRight = right, left, onLeft
			left = high - golden*(high-low)
			onLeft = try(left)
		} else {
			low, left, onLeft = left, right, onRight
			right = low + golden*(high-low)
			onRight = try(right)
		}
	}
	return best, true
}

// rest is a curve by the parameter in which its family is not linear. Of the losses above what a fraction comes down to, the reciprocals are linear in
// the other parameters; they are weighed so that an error counts as it does of the loss.
func (d *data) rest(family Family, tried float64) (p [4]float64, ok bool) {
	var normal normalEquations
	switch family {
	case SuperLinear:
		for k, x := range d.x {
			normal.add(d.w[k], [4]float64{math.Exp(-tried * (x - d.x[0])), 1}, 2, d.y[k])
		}
		s, solved := normal.solve(2, [4]bool{true, true})
		return [4]float64{s[0], tried, s[1]}, solved && s[0] > 0
	case Optimus:
		for k, x := range d.x {
			above := d.y[k] + tried
			w := d.w[k] * above * above * above * above
			normal.add(w, [4]float64{x, 1}, 2, 1/above)
		}
		p, ok = normal.solveNonNegative(2)
		p[2] = -tried
	default:
		for k, x := range d.x {
			above := d.y[k] + tried
			w := d.w[k] * above * above * above * above
			normal.add(w, [4]float64{x * x, x, 1}, 3, 1/above)
		}
		p, ok = normal.solveNonNegative(3)
		p[3] = -tried
	}
	return p, ok
}

// error is the weighed mean square error of a curve; +Inf where it has no value.
func (d *data) error(family Family, p *[4]float64) float64 {
	sum, weight := 0.0, 0.0
	for i, x := range d.x {
		r := d.value(family, p, x) - d.y[i]
		sum += d.w[i] * r * r
		weight += d.w[i]
	}
	if !(sum <= math.MaxFloat64) {
		return math.Inf(1)
	}
	return sum / weight
}

// descend takes damped Gauss-Newton steps. A parameter that may not be negative stays at 0 while the error wants it below.
func (d *data) descend(family Family, p [4]float64) (at [4]float64, missed float64) {
	m, bound := family.Parameters(), bounded(family)
	missed, damping := d.error(family, &p), 1e-4
	for step := 0; step < mostSteps && missed > exact; step++ {
		falls := d.linearise(family, &p)
		var free [4]bool
		for i := range m {
			free[i] = i >= bound || p[i] > 0 || falls[i] > 0
		}
		better := false
		for range 12 {
			if by, ok := d.step(m, free, damping); ok {
				next := p
				for i := range m {
					next[i] += by[i]
					if i < bound {
						next[i] = max(next[i], 0)
					}
				}
				if e := d.error(family, &next); e < missed {
					better = e < missed*(1-still) || missed < noise
					p, missed, damping = next, e, damping/64
					if damping < 1e-12 {
						damping = 0
					}
					break
				}
			}
			damping = max(damping*8, 1e-12)
		}
		if !better {
			break
		}
	}
	return p, missed
}

// linearise writes down the least squares problem of a step: its columns, scaled to a length of 1, what is missing, and for each parameter whether
// the error falls as it grows.
func (d *data) linearise(family Family, p *[4]float64) (falls [4]float64) {
	m, n := family.Parameters(), len(d.x)
	for j := range d.columns {
		d.columns[j] = d.columns[j][:0]
	}
	for i, x := range d.x {
		value, by := d.slopes(family, p, x)
		root := math.Sqrt(d.w[i])
		for j := range m {
			d.columns[j] = append(d.columns[j], root*by[j])
		}
		d.columns[4] = append(d.columns[4], root*(d.y[i]-value))
	}
	for j := range m {
		length := math.Sqrt(dot(d.columns[j], d.columns[j]))
		falls[j] = dot(d.columns[j], d.columns[4])
		d.lengths[j] = length
		for i := range n {
			d.columns[j][i] /= length
		}
	}
	return falls
}

// step solves the problem for the free parameters, the others staying as they are, by an orthogonal decomposition. Damping draws all of them to 0.
func (d *data) step(m int, free [4]bool, damping float64) (by [4]float64, ok bool) {
	var which [4]int
	count, n := 0, len(d.x)
	for j := range m {
		if free[j] {
			which[count] = j
			count++
		}
	}
	rows := n + count
	for c := range count + 1 {
		j := 4
		if c < count {
			j = which[c]
		}
		d.rows[c] = append(append(d.rows[c][:0], d.columns[j]...), 0, 0, 0, 0)[:rows]
		if c < count {
			d.rows[c][n+c] = math.Sqrt(damping)
		}
	}
	var r [4][5]float64
	for c := range count {
		length := math.Sqrt(dot(d.rows[c], d.rows[c]))
		if !(length > 1e-14) { // as good as a multiple of those before it
			return by, false
		}
		r[c][c] = length
		for i := range d.rows[c] {
			d.rows[c][i] /= length
		}
		for o := c + 1; o <= count; o++ {
			part := dot(d.rows[c], d.rows[o])
			r[c][o] = part
			for i := range d.rows[o] {
				d.rows[o][i] -= part * d.rows[c][i]
			}
		}
	}
	for c := count - 1; c >= 0; c-- {
		sum := r[c][count]
		for o := c + 1; o < count; o++ {
			sum -= r[c][o] * by[which[o]]
		}
		by[which[c]] = sum / r[c][c]
	}
	for j := range m {
		if by[j] != 0 {
			by[j] /= d.lengths[j]
		}
		if math.IsNaN(by[j]) || math.IsInf(by[j], 0) {
			return by, false
		}
	}
	return by, true
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// normalEquations are those of a least squares problem of up to four unknowns.
type normalEquations struct {
	left  [4][4]float64
	right [4]float64
}

// add adds an equation of a weight: the product of row and unknowns is to be value.
func (n *normalEquations) add(weight float64, row [4]float64, m int, value float64) {
	for i := range m {
		wi := weight * row[i]
		for j := range i + 1 {
			n.left[i][j] += wi * row[j]
		}
		n.right[i] += wi * value
	}
}

// solve solves for the free unknowns, the others being 0, by a Cholesky decomposition of the scaled equations.
func (n *normalEquations) solve(m int, free [4]bool) (x [4]float64, ok bool) {
	var l [4][4]float64
	var scale, z [4]float64
	for i := range m {
		if !free[i] {
			continue
		}
		if !(n.left[i][i] > 0 && n.left[i][i] <= math.MaxFloat64) {
			return x, false
		}
		scale[i] = 1 / math.Sqrt(n.left[i][i])
		for j := range i + 1 {
			if !free[j] {
				continue
			}
			sum := n.left[i][j] * scale[i] * scale[j]
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			if i > j {
				l[i][j] = sum / l[j][j]
				continue
			}
			if !(sum > 0) {
				return x, false
			}
			l[i][i] = math.Sqrt(sum)
		}
		sum := n.right[i] * scale[i]
		for k := range i {
			sum -= l[i][k] * z[k]
		}
		z[i] = sum / l[i][i]
	}
	for i := m - 1; i >= 0; i-- {
		if !free[i] {
			continue
		}
		sum := z[i]
		for k := i + 1; k < m; k++ {
			if free[k] {
				sum -= l[k][i] * x[k]
			}
		}
		x[i] = sum / l[i][i]
		if math.IsNaN(x[i]) || math.IsInf(x[i], 0) {
			return x, false
		}
	}
	for i := range m {
		x[i] *= scale[i]
	}
	return x, true
}

// solveNonNegative solves for unknowns of which none is negative: the best of the solutions with some of them 0, there being no more than seven.
func (n *normalEquations) solveNonNegative(m int) (best [4]float64, ok bool) {
	least := math.Inf(1)
	for set := 1<<m - 1; set > 0; set-- {
		var free [4]bool
		for i := range m {
			free[i] = set>>i&1 == 1
		}
		x, solved := n.solve(m, free)
		if !solved || x[0] < 0 || x[1] < 0 || x[2] < 0 {
			continue
		}
		if set == 1<<m-1 { // nothing binds
			return x, true
		}
		if e := n.objective(m, &x); e < least {
			best, least, ok = x, e, true
		}
	}
	return best, ok
}

// objective is the squared error of unknowns, less what is the same for all.
func (n *normalEquations) objective(m int, x *[4]float64) (e float64) {
	for i := range m {
		for j := range i {
			e += 2 * n.left[i][j] * x[i] * x[j]
		}
		e += n.left[i][i]*x[i]*x[i] - 2*n.right[i]*x[i]
	}
	return e
}
