package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// CompareWithin compares the jobs of one trace under two schedulers: a[i] and b[i] are of the same job, in order of submission.
// The change is that of the mean. Its interval says how much it varies within the trace, not how far it holds elsewhere: jobs
// share a queue, so circular blocks of consecutive jobs are resampled, 10,000 times by one stream with a fixed seed. Percentile is
// between the quantiles of the resampled changes; Expanded widens its level for the number of blocks. An end is infinite where b
// is zero in too many resamples. A block length of 0 means BlockLength of the jobs' shares in the change. There is no interval
// below 20 jobs. It refuses what Compare refuses, but for zeros, and a block length that leaves fewer than 20 blocks. It takes
// O(n + draws·n/block) time.
//
// Sources: Künsch, The jackknife and the bootstrap for general stationary observations, Annals of Statistics 17 (1989);
// Politis and Romano, A circular block-resampling procedure for stationary data (1992).
func CompareWithin(a, b []float64, block int, level float64) (Paired, error) {
	if err := check(a, b, level, func(v float64) bool { return v >= 0 }, "at least 0 and finite"); err != nil {
		return Paired{}, err
	}
	n := len(a)
	longest := n / minBlocks
	if block < 0 || block > longest && longest > 0 {
		return Paired{}, fmt.Errorf("compare: blocks of %d jobs: %d jobs allow 1 to %d, for at least %d blocks; 0 chooses", block, n, longest, minBlocks)
	}
	p := Paired{
		Method: MethodBlocks, N: n, Wilcoxon: math.NaN(), P: math.NaN(),
		T: Unknown(), Percentile: Unknown(), BCa: Unknown(), Expanded: Unknown(), Unpaired: Unknown(),
	}
	meanA, meanB := stat.Mean(a, nil), stat.Mean(b, nil)
	if n == 0 || meanA == 0 || meanB == 0 {
		p.Change, p.RatioOfMeans = math.NaN(), math.NaN()
		return p, nil
	}
	p.Change = meanA/meanB - 1
	p.RatioOfMeans = p.Change
	shares := make([]float64, n) // to first order, the mean of these is what the log ratio of a resample differs by
	differences := make([]float64, n)
	for i := range a {
		differences[i] = a[i] - b[i]
		shares[i] = a[i]/meanA - b[i]/meanB
	}
	p.Wins, p.Ties = SignCount(differences)
	p.Equal = slices.Equal(a, b)
	if longest == 0 {
		return p, nil
	}
	if p.Block = block; block == 0 {
		p.Block = BlockLength(shares)
	}
	ratios := resampledRatios(a, b, p.Block)
	between := func(tail float64) Interval {
		return Interval{ratios.quantile(tail) - 1, ratios.quantile(1-tail) - 1}
	}
	p.Percentile = between((1 - level) / 2)
	blocks := float64(n) / float64(p.Block)
	p.Expanded = between(distuv.UnitNormal.CDF(-expanded(blocks, level)))
	p.P = expandedP(min(ratios.upTo(1), 1-ratios.upTo(math.Nextafter(1, 0))), blocks)
	p.Degenerate = p.Percentile.Width() <= noise
	return p, nil
}

// resampledRatios is the distribution of mean(a)/mean(b) over samples of n jobs made of circular blocks.
func resampledRatios(a, b []float64, block int) *distribution {
	n := len(a)
	fullA, fullB := circularSums(a, block), circularSums(b, block)
	whole, rest := n/block, n%block
	restA, restB := circularSums(a, rest), circularSums(b, rest)
	random := rand.New(rand.NewPCG(draws, uint64(block)))
	var ratios distribution
	for range draws {
		var sumA, sumB float64
		for range whole {
			at := random.IntN(n)
			sumA += fullA[at]
			sumB += fullB[at]
		}
		if rest > 0 {
			at := random.IntN(n)
			sumA += restA[at]
			sumB += restB[at]
		}
		if sumB == 0 { // there is nothing to compare with
			sumA, sumB = 1, 0
		}
		ratios.add(sumA/sumB, 1)
	}
	ratios.sort()
	return &ratios
}

// circularSums has the sum of length consecutive values from each place on, the end followed by the beginning.
func circularSums(x []float64, length int) []float64 {
	n := len(x)
	upTo := make([]float64, n+1)
	for i, v := range x {
		upTo[i+1] = upTo[i] + v
	}
	sums := make([]float64, n)
	for first := range sums {
		if end := first + length; end <= n {
			sums[first] = upTo[end] - upTo[first]
		} else {
			sums[first] = upTo[n] - upTo[first] + upTo[end-n]
		}
	}
	return sums
}
