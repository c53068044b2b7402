package stats

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// Looks gives the confidence level to use at each of so many looks at growing data, equally far apart, such that the chance
// that the interval of any look misses the truth is 1 - level in all. The boundaries are O'Brien and Fleming's: wide at first,
// so that the last is nearly the level itself. Of a dozen looks and more, the level of the first rounds to 1, at which there is no
// interval. It is nil for no look and for a level outside (0, 1). It holds where the mean is normal; with Student's interval at such
// levels it holds closely. It takes O(total²) time.
//
// Sources: O'Brien and Fleming, A multiple testing procedure for clinical trials, Biometrics 35 (1979); the recursion over
// looks is that of Armitage, McPherson and Rowe, Repeated significance tests on accumulating data, JRSS A 132 (1969).
func Looks(total int, level float64) []float64 {
	if total < 1 || !proper(level) {
		return nil
	}
	low, high := 0.0, 1.0
	for staysWithin(high, total) < level {
		low, high = high, 2*high
	}
	for range 60 {
		if middle := (low + high) / 2; staysWithin(middle, total) < level {
			low = middle
		} else {
			high = middle
		}
	}
	levels := make([]float64, total)
	for k := range levels {
		z := high / math.Sqrt(float64(k+1)) // the sum of k+1 steps against a constant bound
		levels[k] = 1 - 2*distuv.UnitNormal.CDF(-z)
	}
	return levels
}

// LevelText writes a level in per cent, such as 95, with as many digits as keep one below 1 from 100.
func LevelText(level float64) string {
	text := ""
	for digits := 4; digits <= 17; digits++ {
		if text = strconv.FormatFloat(100*level, 'g', digits, 64); !strings.HasPrefix(text, "100") {
			break
		}
	}
	return text
}

// staysWithin is the probability that a sum of standard normal steps stays within ±bound for so many steps. Each step
// integrates the density before it over nodes of Gauss and Legendre, at most a third of a standard deviation apart.
func staysWithin(bound float64, steps int) float64 {
	nodes := 32 + 8*int(math.Ceil(bound))
	at, weight := make([]float64, nodes), make([]float64, nodes)
	quad.Legendre{}.FixedLocations(at, weight, -bound, bound)
	step := make([]float64, nodes*nodes) // the density of a step from node j to node i, times j's weight
	density := make([]float64, nodes)
	for i := range nodes {
		density[i] = distuv.UnitNormal.Prob(at[i])
		for j := range nodes {
			step[i*nodes+j] = weight[j] * distuv.UnitNormal.Prob(at[i]-at[j])
		}
	}
	next := make([]float64, nodes)
	for range steps - 1 {
		for i := range nodes {
			next[i] = 0
			for j := range nodes {
				next[i] += step[i*nodes+j] * density[j]
			}
		}
		density, next = next, density
	}
	var inside float64
	for i := range nodes {
		inside += weight[i] * density[i]
	}
	return inside
}
