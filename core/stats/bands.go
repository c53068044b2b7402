package stats

import "math"

// DKW is the half-width of a band around the empirical distribution of n independent values that holds all of the true
// distribution with the probability level, at most 1. Values of one run are not independent: bands are for values of
// workloads. It is NaN without values and for a level outside (0, 1).
//
// Sources: Dvoretzky, Kiefer and Wolfowitz, Annals of Mathematical Statistics 27 (1956); the constant is Massart's, The tight
// constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Annals of Probability 18 (1990).
func DKW(n int, level float64) float64 {
	if n < 1 || !proper(level) {
		return math.NaN()
	}
	return math.Min(1, math.Sqrt(math.Log(2/(1-level))/(2*float64(n))))
}

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
