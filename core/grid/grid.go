// Package grid says when rounds are due that come at a fixed interval. The grid is the multiples of the interval, each the product k×interval as
// rounded. Quotients are rounded too, so the grid is searched around them: now/interval alone may name the point before, or the one just reached.
package grid

import "math"

// From is the first point of the grid that is not before t. The interval must be positive.
func From(t, interval float64) float64 {
	k := math.Floor(t / interval)
	for _, point := range [...]float64{k * interval, (k + 1) * interval} {
		if point >= t {
			return point
		}
	}
	return t // the clock is coarser than the grid, and every moment lies on it
}

// After is the first point of the grid after t. The interval must be positive.
func After(t, interval float64) float64 {
	k := math.Floor(t / interval)
	for _, point := range [...]float64{k * interval, (k + 1) * interval, (k + 2) * interval} {
		if point > t {
			return point
		}
	}
	return math.Nextafter(t, math.Inf(1))
}
