package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// enumerated is the largest sample of which all resamples are visited: C(2n-1, n) = 6,435 at n = 8.
	enumerated = 8
	// draws is the number of resamples of a larger sample.
	draws = 10_000
	// noise is how far numbers may be apart by rounding: means relative to the largest deviation, logarithms of ratios absolutely.
	noise = 1e-12
)

// A Bootstrap has the bootstrap intervals of a mean. docs/results/statistics.md says how often each covers the truth.
type Bootstrap struct {
	// Percentile is the interval between the quantiles of the resampled means. A quantile is the smallest value whose
	// cumulated weight reaches the level.
	Percentile Interval
	// BCa is the bias-corrected and accelerated interval. It is too narrow for small samples.
	BCa Interval
	// Expanded is BCa at a level widened for the sample size, such that it has Student's width where the values are normal.
	Expanded Interval

	Z0           float64 // bias correction, in standard deviations of the normal distribution
	Acceleration float64 // how fast the standard error changes with the mean
	Exact        bool    // all resamples were visited, with their weights: nothing is random
}

// BCa resamples the mean of x: exactly, by all C(2n-1, n) multisets with their multinomial weights, up to 8 values, by 10,000
// draws of one stream with a fixed seed above. Its intervals are unknown for fewer than two values, for values that are not
// finite and for a level outside (0, 1). It takes O(draws·n) time.
//
// Sources: Efron, Better bootstrap confidence intervals, JASA 82 (1987), for BCa; Hesterberg, What teachers should know about
// the bootstrap, The American Statistician 69 (2015), for the widened level, which he gives for the percentile interval.
func BCa(x []float64, level float64) Bootstrap {
	n := len(x)
	if n < 2 || !finite(x) || !proper(level) {
		return Bootstrap{Percentile: Unknown(), BCa: Unknown(), Expanded: Unknown(), Z0: math.NaN(), Acceleration: math.NaN()}
	}
	x = sorted(x)
	if constant(x) {
		point := Interval{x[0], x[0]}
		return Bootstrap{Percentile: point, BCa: point, Expanded: point, Exact: n <= enumerated}
	}
	mean, scale := standardize(x)
	var squares, cubes float64
	for _, v := range x {
		squares += v * v
		cubes += v * v * v
	}
	var means distribution
	resample(x, func(sum, _, weight float64) {
		m := sum / float64(n)
		if math.Abs(m) <= noise { // equal to the estimate, but for rounding
			m = 0
		}
		means.add(m, weight)
	})
	means.sort()

	b := Bootstrap{
		Z0:           distuv.UnitNormal.Quantile(means.below(0)),
		Acceleration: cubes / (6 * math.Pow(squares, 1.5)),
		Exact:        n <= enumerated,
	}
	tail := (1 - level) / 2
	between := func(low, high float64) Interval {
		return Interval{mean + scale*means.quantile(low), mean + scale*means.quantile(high)}
	}
	b.Percentile = between(tail, 1-tail)
	corrected := func(z float64) Interval { return between(b.adjusted(-z), b.adjusted(z)) }
	b.BCa = corrected(distuv.UnitNormal.Quantile(1 - tail))
	b.Expanded = corrected(expanded(float64(n), level))
	return b
}

// adjusted is the level at which BCa reads the resampled means in the place of the normal quantile z.
func (b Bootstrap) adjusted(z float64) float64 {
	shifted := b.Z0 + z
	slack := 1 - b.Acceleration*shifted
	if slack <= 0 { // beyond the pole of the transformation
		return math.Max(0, math.Copysign(1, shifted))
	}
	return distuv.UnitNormal.CDF(b.Z0 + shifted/slack)
}

// expanded is the quantile to take in the place of the normal one so that the interval of n resampled values has Student's width.
func expanded(n, level float64) float64 {
	return math.Sqrt(n/(n-1)) * studentQuantile(n-1, level)
}

// expandedP is the two-sided p of a hypothesis beyond which lies a share of the resamples of n values: what the level is of the
// expanded interval that ends there. A share below that of one resample counts as that.
func expandedP(share, n float64) float64 {
	z := -distuv.UnitNormal.Quantile(max(share, 1./draws))
	if z <= 0 {
		return 1
	}
	return twoSided(z/math.Sqrt(n/(n-1)), n-1)
}

// standardize takes their mean from sorted values and divides them by the largest deviation, so that powers of them neither
// overflow nor vanish.
func standardize(x []float64) (mean, scale float64) {
	mean = stat.Mean(x, nil)
	scale = math.Max(x[len(x)-1]-mean, mean-x[0])
	for i := range x {
		x[i] = (x[i] - mean) / scale
	}
	return mean, scale
}

// resample visits the resamples of x by the sum and the sum of squares of their values.
func resample(x []float64, visit func(sum, squares, weight float64)) {
	if len(x) <= enumerated {
		enumerate(x, visit)
	} else {
		draw(x, visit)
	}
}

// enumerate visits each multiset of n values of x with the number of ordered samples that it stands for, of n^n.
func enumerate(x []float64, visit func(sum, squares, weight float64)) {
	var choose func(i, left int, sum, squares, weight float64)
	choose = func(i, left int, sum, squares, weight float64) {
		if i == len(x)-1 {
			times := float64(left)
			visit(sum+times*x[i], squares+times*x[i]*x[i], weight)
			return
		}
		for take := range left + 1 {
			times := float64(take)
			choose(i+1, left-take, sum+times*x[i], squares+times*x[i]*x[i], weight)
			weight = weight * float64(left-take) / float64(take+1) // C(left, take+1)
		}
	}
	choose(0, len(x), 0, 0, 1)
}

// draw visits random samples of n values of x.
func draw(x []float64, visit func(sum, squares, weight float64)) {
	random := rand.New(rand.NewPCG(draws, 0))
	for range draws {
		var sum, squares float64
		for range x {
			v := x[random.IntN(len(x))]
			sum += v
			squares += v * v
		}
		visit(sum, squares, 1)
	}
}

// A distribution is a set of values with weights that are whole numbers, so that their sums are exact.
type distribution struct {
	points []point
	total  float64
}

type point struct{ value, weight float64 }

func (d *distribution) add(value, weight float64) {
	d.points = append(d.points, point{value, weight})
	d.total += weight
}

func (d *distribution) sort() {
	slices.SortFunc(d.points, func(a, b point) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
}

// below is the share of the weight below x, and half of that at x.
func (d *distribution) below(x float64) float64 {
	var sum float64
	for _, p := range d.points {
		switch {
		case p.value < x:
			sum += p.weight
		case p.value == x:
			sum += p.weight / 2
		}
	}
	return sum / d.total
}

// upTo is the share of the weight at values up to x.
func (d *distribution) upTo(x float64) float64 {
	var sum float64
	for _, p := range d.points {
		if p.value <= x {
			sum += p.weight
		}
	}
	return sum / d.total
}

// quantile is the smallest value whose cumulated weight reaches a share of the whole.
func (d *distribution) quantile(share float64) float64 {
	var sum float64
	for _, p := range d.points {
		if sum += p.weight; sum >= share*d.total {
			return p.value
		}
	}
	return d.points[len(d.points)-1].value
}
