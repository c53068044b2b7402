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
