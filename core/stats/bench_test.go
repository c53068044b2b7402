package stats_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core/stats"
)

// sample is n standard normal values of a stream of their own.
func sample(n int, seed uint64) []float64 {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	x := make([]float64, n)
	for i := range x {
		x[i] = random.NormFloat64()
	}
	return x
}

func BenchmarkBCa(b *testing.B) {
	for _, n := range []int{5, 8, 20, 40} {
		x := sample(n, 1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				stats.BCa(x, 0.95)
			}
		})
	}
}

func BenchmarkCompareWithin(b *testing.B) {
	const n = 82_247
	x, y := sample(n, 1), sample(n, 2)
	for i := range x {
		x[i], y[i] = x[i]*x[i], y[i]*y[i]
	}
	for b.Loop() {
		if _, err := stats.CompareWithin(x, y, 0, 0.95); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLooks(b *testing.B) {
	for b.Loop() {
		stats.Looks(4, 0.95)
	}
}
