package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// minBlocks is the smallest number of blocks that a trace is resampled by.
const minBlocks = 20

// Blocks is the length of block to begin with for n jobs: n^(1/3), but such that there are at least 20 blocks. It is 0 below 20
// jobs, which are too few.
func Blocks(n int) int {
	return min(int(math.Round(math.Cbrt(float64(n)))), n/minBlocks)
}

// BlockLength is the length of block that serves the mean of a series best, as far as its own autocorrelations show: the rule of
// Politis and White, but at least Blocks(n) and such that there are at least 20 blocks. It is Blocks(n) for values that are not finite. It takes
// O(n^1.5) time at most.
//
// Sources: Politis and White, Automatic block-length selection for the dependent bootstrap, Econometric Reviews 23 (2004), with
// the correction of Patton, Politis and White, ibid. 28 (2009): circular blocks of length (2G²/D)^(1/3) n^(1/3).
func BlockLength(x []float64) int {
	n := len(x)
	if n < minBlocks {
		return 0
	}
	if !finite(x) {
		return Blocks(n)
	}
	size := float64(n)
	mean := stat.Mean(x, nil)
	covariance := func(lag int) float64 {
		var sum float64
		for i := lag; i < n; i++ {
			sum += (x[i] - mean) * (x[i-lag] - mean)
		}
		return sum / size
	}
	run := max(5, int(math.Ceil(math.Sqrt(math.Log10(size))))) // of insignificant lags that ends the search
	most := int(math.Ceil(math.Sqrt(size))) + run
	significant := 2 * math.Sqrt(math.Log10(size)/size)
	r := []float64{covariance(0)}
	if r[0] == 0 {
		return Blocks(n)
	}
	last := 0 // the last significant lag
	for lag := 1; lag < min(most, n) && lag-last <= run; lag++ {
		r = append(r, covariance(lag))
		if math.Abs(r[lag]) > significant*r[0] {
			last = lag
		}
	}
	bandwidth := 2 * max(last, 1)
	var g, spectrum float64
	for lag := -bandwidth; lag <= bandwidth; lag++ {
		k := max(lag, -lag)
		for len(r) <= k {
			r = append(r, covariance(len(r)))
		}
		taper := math.Min(1, 2*(1-float64(k)/float64(bandwidth))) // flat to half the bandwidth
		g += taper * float64(k) * r[k]
		spectrum += taper * r[k]
	}
	if spectrum == 0 {
		return Blocks(n)
	}
	best := math.Cbrt(2*g*g/(4./3*spectrum*spectrum)) * math.Cbrt(size)
	return max(Blocks(n), int(math.Min(math.Round(best), size/minBlocks)))
}
