package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Studentized is the bootstrap-t interval of the mean of x: Student's, with the quantiles of the t statistics of the resamples in
// the place of his table. It follows skewed values better than T and BCa, and is much wider for few values. Resamples, limits and
// time are those of BCa; an end is infinite where the quantile is that of resamples of a single value.
//
// Source: Efron and Tibshirani, An introduction to the bootstrap (1993), chapter 12.
func Studentized(x []float64, level float64) Interval {
	if len(x) < 2 || !finite(x) || !proper(level) {
		return Unknown()
	}
	x = sorted(x)
	if constant(x) {
		return Interval{x[0], x[0]}
	}
	mean, scale := standardize(x)
	n := len(x)
	var pivots distribution
	resample(x, func(sum, squares, weight float64) {
		pivots.add(pivot(sum/float64(n), squares, n), weight)
	})
	pivots.sort()
	standardError := scale * stat.StdErr(stat.StdDev(x, nil), float64(n))
	tail := (1 - level) / 2
	return Interval{mean - pivots.quantile(1-tail)*standardError, mean - pivots.quantile(tail)*standardError}
}

// pivot is the t statistic of a resample with a mean m and a sum of squares. It is infinite, away from m = 0, where all values
// of the resample are equal: such a resample says nothing of the spread, and the interval must not be narrow because of it.
func pivot(m, squares float64, n int) float64 {
	size := float64(n)
	variance := (squares - size*m*m) / (size - 1)
	switch {
	case math.Abs(m) <= noise:
		return 0
	case variance <= noise:
		return math.Copysign(math.Inf(1), m)
	default:
		return m / math.Sqrt(variance/size)
	}
}
