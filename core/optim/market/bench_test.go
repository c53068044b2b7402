package market

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkPlace places the instances of both generators, one after the other.
func BenchmarkPlace(b *testing.B) {
	for _, name := range []string{"graded", "skewed"} {
		b.Run(name, func(b *testing.B) {
			var instances []instance
			for seed := range uint64(100) {
				instances = append(instances, generators[name](rand.New(rand.NewPCG(seed, 1))))
			}
			b.ReportAllocs()
			for run := uint64(0); b.Loop(); run++ {
				in := instances[run%100]
				if _, err := Place(b.Context(), in.jobs, in.workers, Options{}, rand.New(rand.NewPCG(run, 2))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
