package stats

import "math"

// batch is the number of observations that MSER-5 takes together.
const batch = 5

// MSER5 is the number of leading observations to leave out of a series so that the mean of the rest has the least standard
// error, in batches of 5: the marginal standard error rule. It looks at the first half only, and at whole batches. It is 0 for
// fewer than 4 batches and for values that are not finite.
//
// Source: White, Cobb and Spratt, A comparison of five steady-state truncation heuristics for simulation, Winter Simulation
// Conference (2000).
func MSER5(x []float64) int {
	batches := len(x) / batch
	if batches < 4 || !finite(x) {
		return 0
	}
	means := make([]float64, batches)
	for i := range means {
		for _, v := range x[i*batch : (i+1)*batch] {
			means[i] += v / batch
		}
	}
	// Sums from the end on, of the deviations from the last batch: they round less than those of the values.
	best, least := 0, math.Inf(1)
	var sum, squares float64
	for first := batches - 1; first >= 0; first-- {
		v := means[first] - means[batches-1]
		sum += v
		squares += v * v
		left := float64(batches - first)
		if first > batches/2 {
			continue
		}
		if e := math.Max(0, squares-sum*sum/left) / (left * left); e <= least { // of equals the earliest keeps most
			best, least = first, e
		}
	}
	return best * batch
}
