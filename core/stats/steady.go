package stats

import "math"

const (
	// batch is the number of observations that MSER-5 takes together.
	batch = 5
	// minBatches is the smallest number of batches by which WarmUp trusts MSER-5.
	minBatches = 10
)

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

// WarmUp is the number of leading observations to leave out: what MSER5 finds, or the given share where the series has fewer
// than 10 batches or MSER5 ends at its limit, half the series, which says that no steady state was found before it. A share
// is taken within 0 to 1.
func WarmUp(x []float64, share float64) int {
	batches := len(x) / batch
	if found := MSER5(x); batches >= minBatches && found < batches/2*batch && finite(x) {
		return found
	}
	if math.IsNaN(share) {
		share = 0
	}
	return int(math.Min(1, math.Max(0, share)) * float64(len(x)))
}
