package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// exactRanks is the largest number of differences whose signed ranks are counted exactly.
const exactRanks = 200

// Wilcoxon is the two-sided p of the signed rank test: the probability, if each difference were as likely to have the other
// sign, of a rank sum at least as far from its mean. Zeros are dropped and ties share their mean rank. Up to 200 differences p
// is exact, by the distribution of the rank sum over all 2^n signs, ties included; beyond, normal with Wilcoxon's correction
// for ties. It is NaN where a difference is, and 1 where none is left. It takes O(n³) time up to 200, O(n log n) beyond.
//
// Source: Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1 (1945).
func Wilcoxon(d []float64) (p float64, exact bool) {
	ranks, positive, ok := signedRanks(d)
	if !ok {
		return math.NaN(), false
	}
	n := len(ranks)
	total := 0
	for _, r := range ranks {
		total += r
	}
	lower := min(positive, total-positive)
	if n > exactRanks {
		var squares float64 // a sum of doubled ranks has the variance Σr²/4
		for _, r := range ranks {
			squares += float64(r) * float64(r)
		}
		z := (float64(lower) + 1 - float64(total)/2) / math.Sqrt(squares/4) // 1 is half a rank, for continuity
		return math.Min(1, 2*distuv.UnitNormal.CDF(z)), false
	}
	chance := make([]float64, lower+1) // that the positive ranks seen so far have this sum
	chance[0] = 1
	for _, r := range ranks {
		for sum := lower; sum >= 0; sum-- {
			chance[sum] /= 2
			if sum >= r {
				chance[sum] += chance[sum-r] / 2
			}
		}
	}
	var tail float64
	for _, c := range chance {
		tail += c
	}
	return math.Min(1, 2*tail), true
}

// signedRanks gives the doubled ranks of the magnitudes, which are whole numbers even where ties share a rank, without those
// of zeros, and the sum of those of positive differences. It refuses NaN.
func signedRanks(d []float64) (ranks []int, positive int, ok bool) {
	var rest []float64
	for _, v := range d {
		if math.IsNaN(v) {
			return nil, 0, false
		}
		if v != 0 {
			rest = append(rest, v)
		}
	}
	slices.SortFunc(rest, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	for first := 0; first < len(rest); {
		end := first + 1
		for end < len(rest) && math.Abs(rest[end]) == math.Abs(rest[first]) {
			end++
		}
		rank := first + 1 + end // twice the mean of the ranks first+1 to end
		for _, v := range rest[first:end] {
			ranks = append(ranks, rank)
			if v > 0 {
				positive += rank
			}
		}
		first = end
	}
	return ranks, positive, true
}

// SignCount counts the differences below zero, as wins, and those that are zero.
func SignCount(d []float64) (wins, ties int) {
	for _, v := range d {
		switch {
		case v < 0:
			wins++
		case v == 0:
			ties++
		}
	}
	return wins, ties
}
