package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts the p of several comparisons so that the chance of any false positive among them stays below the level each is
// compared with. The result is in the order of p. A NaN stays one and does not count as a comparison.
//
// Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
func Holm(p []float64) []float64 {
	adjusted := slices.Clone(p)
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	least := 0.0
	for rank, i := range order {
		least = math.Min(1, math.Max(least, float64(len(order)-rank)*p[i]))
		adjusted[i] = least
	}
	return adjusted
}
