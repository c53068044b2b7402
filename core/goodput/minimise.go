package goodput

import "math"

// The limits of the search.
const (
	maxIterations = 200
	flatGradient  = 1e-7  // largest component of the projected gradient at which to stop
	flatProgress  = 1e-10 // relative decrease of the objective at which to stop
	sufficient    = 1e-4  // share of the decrease that the slope promises
)

// minimise searches the box from start, and returns the best parameters and their objective. BFGS on the coordinates
// that are not held at a bound, steps shortened until they decrease enough (Nocedal and Wright, chapter 6).
func (f *fitting) minimise(start vector) (vector, float64) {
	var y, g, nextY, nextG, direction vector
	for i := range y {
		y[i] = math.Min(math.Max(math.Log(math.Max(start[i], tiny)), f.low[i]), f.high[i])
	}
	var at point
	value := f.evaluate(&y, &at)
	f.gradient(&at, &g)
	var inverse [dimensions]vector // of the Hessian, as far as known
	fresh := true
	for range maxIterations {
		free := f.free(&y, &g)
		if largest(&g, &free) < flatGradient {
			break
		}
		if fresh {
			inverse = identity()
		}
		slope := descend(&direction, &inverse, &g, &free)
		if slope >= 0 { // curvature of another region
			inverse, fresh = identity(), true
			slope = descend(&direction, &inverse, &g, &free)
		}
		next, found := f.search(&y, &direction, value, slope, fresh, &nextY, &at)
		if !found {
			if fresh {
				break
			}
			fresh = true
			continue
		}
		f.gradient(&at, &nextG)
		fresh = !update(&inverse, &y, &nextY, &g, &nextG)
		progress := value - next
		y, g, value = nextY, nextG, next
		if progress <= flatProgress*math.Max(math.Abs(value), 1e-3) {
			break
		}
	}
	var x vector
	for i := range x {
		x[i] = math.Exp(y[i])
	}
	return x, value
}

// free tells the coordinates that can move downhill.
func (f *fitting) free(y, g *vector) (free [dimensions]bool) {
	for i := range free {
		free[i] = f.low[i] < f.high[i] && !(y[i] <= f.low[i] && g[i] > 0) && !(y[i] >= f.high[i] && g[i] < 0)
	}
	return free
}

func largest(g *vector, free *[dimensions]bool) float64 {
	most := 0.0
	for i := range g {
		if free[i] {
			most = max(most, math.Abs(g[i]))
		}
	}
	return most
}

func identity() (m [dimensions]vector) {
	for i := range m {
		m[i][i] = 1
	}
	return m
}

// descend sets direction to -H·g over the free coordinates, and returns the slope along it.
func descend(direction *vector, inverse *[dimensions]vector, g *vector, free *[dimensions]bool) float64 {
	slope := 0.0
	for i := range direction {
		direction[i] = 0
		if !free[i] {
			continue
		}
		for j := range g {
			if free[j] {
				direction[i] -= inverse[i][j] * g[j]
			}
		}
		slope += direction[i] * g[i]
	}
	return slope
}

// search shortens the step until the objective decreases enough, and leaves where that is in nextY and at.
func (f *fitting) search(y, direction *vector, value, slope float64, fresh bool, nextY *vector, at *point) (float64, bool) {
	step := 1.0
	longest := 0.0
	for i := range direction {
		longest = math.Max(longest, math.Abs(direction[i]))
	}
	if limit := 2.0; longest > limit { // e² is far enough for one step
		step = limit / longest
	}
	if fresh && longest > 0 {
		step = math.Min(step, 0.5/longest)
	}
	for range 40 {
		for i := range y {
			nextY[i] = min(max(y[i]+step*direction[i], f.low[i]), f.high[i])
		}
		next := f.evaluate(nextY, at)
		if next <= value+sufficient*step*slope {
			return next, true
		}
		step /= 2
	}
	return value, false
}

// update takes the curvature of a step into the inverse Hessian, and reports whether there was any to take.
func update(inverse *[dimensions]vector, y, nextY, g, nextG *vector) bool {
	var s, d, hd vector
	sd, dd := 0.0, 0.0
	for i := range s {
		s[i], d[i] = nextY[i]-y[i], nextG[i]-g[i]
		sd += s[i] * d[i]
		dd += d[i] * d[i]
	}
	if sd <= 1e-12*math.Sqrt(dd) || dd == 0 {
		return false
	}
	dhd := 0.0
	for i := range hd {
		for j := range d {
			hd[i] += inverse[i][j] * d[j]
		}
		dhd += d[i] * hd[i]
	}
	scale := (1 + dhd/sd) / sd
	for i := range inverse {
		for j := range inverse[i] {
			inverse[i][j] += scale*s[i]*s[j] - (hd[i]*s[j]+s[i]*hd[j])/sd
		}
	}
	return true
}
