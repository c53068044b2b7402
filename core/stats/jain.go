package stats

import "math"

// Jain is the fairness index (Σx)²/(nΣx²): 1 where all have the same, 1/n where one has all. It is NaN without values, for
// values that are negative or not finite, and where all are zero.
//
// Source: Jain, Chiu and Hawe, A quantitative measure of fairness and discrimination, DEC TR-301 (1984).
func Jain(x []float64) float64 {
	if !finite(x) {
		return math.NaN()
	}
	var most float64
	for _, v := range x {
		if v < 0 {
			return math.NaN()
		}
		most = math.Max(most, v)
	}
	var sum, squares float64
	for _, v := range sorted(x) {
		v /= most // squares neither overflow nor vanish
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}
