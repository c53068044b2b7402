package optim

import "math"

// The working basis of priceSimplex: a row and a column for each type with a price, whatever the number of jobs.

// sumKeys computes what the keys leave over.
func (s *priceSimplex) sumKeys() {
	copy(s.residual, s.capacity)
	for i := range s.jobs {
		s.use(s.residual, i, s.key[i], -s.members[i])
	}
}

// factor inverts the working matrix and computes weights and prices from it. It is false where rounding has made the
// matrix singular.
func (s *priceSimplex) factor() bool {
	t := s.types
	clear(s.inverse)
	for k, c := range s.extra {
		s.step[k] = s.usage(s.direction, c)
		for j, v := range s.direction {
			s.work[j*t+k] = v
		}
		s.inverse[k*t+k] = 1
	}
	if !invert(s.work, s.inverse, t) {
		return false
	}
	s.weigh()
	clear(s.price)
	for k, cost := range s.step {
		for j := range s.price {
			s.price[j] -= cost * s.inverse[k*t+j]
		}
	}
	s.spreadPrices()
	return true
}

// weigh computes the weights of the extra columns.
func (s *priceSimplex) weigh() {
	for k := range s.amount {
		s.amount[k] = 0
		for j, r := range s.residual {
			s.amount[k] += s.inverse[k*s.types+j] * r
		}
	}
}

// invert turns the unit matrix in into the inverse of the n×n matrix a, which it
// destroys (Gauss-Jordan, partial pivoting).
func invert(a, in []float64, n int) bool {
	for c := range n {
		at := c
		for r := c + 1; r < n; r++ {
			if math.Abs(a[r*n+c]) > math.Abs(a[at*n+c]) {
				at = r
			}
		}
		pivot := a[at*n+c]
		if math.Abs(pivot) < 1e-200 {
			return false
		}
		for j := range n {
			a[c*n+j], a[at*n+j] = a[at*n+j], a[c*n+j]
			in[c*n+j], in[at*n+j] = in[at*n+j], in[c*n+j]
		}
		for j := range n {
			a[c*n+j] /= pivot
			in[c*n+j] /= pivot
		}
		for r := range n {
			if f := a[r*n+c]; r != c && f != 0 {
				for j := range n {
					a[r*n+j] -= f * a[c*n+j]
					in[r*n+j] -= f * in[c*n+j]
				}
			}
		}
	}
	return true
}

// keyWeight is the weight of a job's key, and how fast it falls along the step.
func (s *priceSimplex) keyWeight(job, entering int) (left, falls float64) {
	left = s.members[job]
	if job == entering {
		falls = 1
	}
	for k, c := range s.extra {
		if c.kind == job {
			left -= s.amount[k]
			falls -= s.step[k]
		}
	}
	return left, falls
}

// enter takes a column into the basis, and out the one whose weight first falls to 0. It
// is false when rounding leaves no sound step.
func (s *priceSimplex) enter(in column) bool {
	s.pivots++
	s.usage(s.direction, in)
	var largest float64
	for k := range s.step {
		s.step[k] = 0
		for j, d := range s.direction {
			s.step[k] += s.inverse[k*s.types+j] * d
		}
		largest = max(largest, math.Abs(s.step[k]))
	}
	tiny := 1e-11 * max(largest, 1e-3)
	length, slot, job := math.Inf(1), -1, -1
	for k, y := range s.step {
		if y > tiny {
			if l := max(s.amount[k], 0) / y; l < length {
				length, slot, job = l, k, -1
			}
		}
	}
	for k := range s.types + 1 {
		kind := in.kind
		if k < s.types {
			kind = s.extra[k].kind
		}
		if kind < 0 {
			continue
		}
		if left, falls := s.keyWeight(kind, in.kind); falls > tiny {
			if l := max(left, 0) / falls; l < length {
				length, slot, job = l, -1, kind
			}
		}
	}
	switch {
	case slot >= 0:
		s.extra[slot] = in
	case job < 0:
		return false
	case job == in.kind:
		shared := false
		for _, c := range s.extra {
			shared = shared || c.kind == job
		}
		s.replaceKey(job, in.how)
		if !shared { // the whole job turns over: the working matrix and the prices stay
			for k, y := range s.step {
				s.amount[k] -= length * y
			}
			return true
		}
	default: // another of that job's responses becomes its key and makes room
		for k, c := range s.extra {
			if c.kind == job && (slot < 0 || s.step[k] < s.step[slot]) {
				slot = k
			}
		}
		s.replaceKey(job, s.extra[slot].how)
		s.extra[slot] = in
	}
	return s.factor()
}

// replaceKey makes a response the key of a job.
func (s *priceSimplex) replaceKey(job int, r response) {
	s.use(s.residual, job, s.key[job], s.members[job])
	s.key[job] = r
	s.use(s.residual, job, r, -s.members[job])
}
