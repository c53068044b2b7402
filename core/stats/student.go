package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// T is Student's interval of the mean of x: mean ± t(n-1) s/√n. It is unknown for fewer than two values, for values that are
// not finite and for a level outside (0, 1).
//
// Source: Student, The probable error of a mean, Biometrika 6 (1908).
func T(x []float64, level float64) Interval {
	if len(x) < 2 || !finite(x) || !proper(level) {
		return Unknown()
	}
	x = sorted(x)
	if constant(x) { // the mean of equal values is rounded, too
		return Interval{x[0], x[0]}
	}
	mean, deviation := stat.MeanStdDev(x, nil)
	n := float64(len(x))
	return around(mean, studentQuantile(n-1, level)*deviation/math.Sqrt(n))
}

// StudentP is the two-sided p of Student's test that the mean of x is zero: below 1 - level where T leaves out 0. It is NaN where T
// is unknown.
func StudentP(x []float64) float64 {
	if len(x) < 2 || !finite(x) {
		return math.NaN()
	}
	x = sorted(x)
	if constant(x) {
		if x[0] == 0 {
			return 1
		}
		return 0
	}
	mean, deviation := stat.MeanStdDev(x, nil)
	n := float64(len(x))
	return twoSided(mean/(deviation/math.Sqrt(n)), n-1)
}

// twoSided is the probability that |T| of so many degrees of freedom reaches |t|.
func twoSided(t, degrees float64) float64 {
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.CDF(-math.Abs(t))
}

// UnpairedT is Student's interval of mean(x) - mean(y) that ignores which values belong together, with the pooled variance
// and n(x)+n(y)-2 degrees of freedom. It shows what pairing gains; nothing is judged by it.
func UnpairedT(x, y []float64, level float64) Interval {
	if len(x) < 2 || len(y) < 2 || !finite(x) || !finite(y) || !proper(level) {
		return Unknown()
	}
	meanX, varianceX := stat.MeanVariance(sorted(x), nil)
	meanY, varianceY := stat.MeanVariance(sorted(y), nil)
	n, m := float64(len(x)), float64(len(y))
	pooled := ((n-1)*varianceX + (m-1)*varianceY) / (n + m - 2)
	return around(meanX-meanY, studentQuantile(n+m-2, level)*math.Sqrt(pooled*(1/n+1/m)))
}

func around(center, halfWidth float64) Interval {
	return Interval{center - halfWidth, center + halfWidth}
}

// studentQuantile is the t that |T| of so many degrees of freedom stays below with the probability level.
func studentQuantile(degrees, level float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Quantile(1 - (1-level)/2)
}

// sorted is a sorted copy: sums over it do not depend on the order of the pairs.
func sorted(x []float64) []float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return x
}

// constant reports whether sorted values are equal.
func constant(x []float64) bool { return x[0] == x[len(x)-1] }
