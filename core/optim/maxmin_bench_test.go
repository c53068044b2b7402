package optim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core/optim"
)

// sizes are the jobs × types of the benchmarks. The first is that of the published comparison.
var sizes = []struct{ jobs, types int }{{800, 6}, {2048, 3}, {20_000, 3}, {20_000, 8}}

// workloads are jobs of three kinds: all different; each of 26 kinds of rates on a scale of its own, which ties
// all jobs of a kind at once; and 83 classes.
func workloads(jobs, types int) map[string]optim.Polytope {
	differ := scarce(differing(jobs, types, 7))
	scaled := optim.Polytope{Capacity: differ.Capacity}
	classes := optim.Polytope{Capacity: differ.Capacity}
	rng := rand.New(rand.NewPCG(11, 1))
	for i := range differ.Jobs {
		job := differ.Jobs[rng.IntN(26)]
		scale := 1 + 9*rng.Float64()
		own := make([]float64, types)
		for j, a := range job.Rates {
			own[j] = a * scale
		}
		scaled.Jobs = append(scaled.Jobs, optim.ShareJob{Devices: job.Devices, Rates: own})
		classes.Jobs = append(classes.Jobs, differ.Jobs[i%83])
	}
	return map[string]optim.Polytope{"differing": differ, "scaled": scaled, "classes": classes}
}

var kinds = []string{"differing", "scaled", "classes"}

func BenchmarkMaxMin(b *testing.B) {
	for _, size := range sizes {
		all := workloads(size.jobs, size.types)
		for _, kind := range kinds {
			b.Run(fmt.Sprintf("%s/%dx%d", kind, size.jobs, size.types), func(b *testing.B) {
				var s optim.SharesSolver
				var gap float64
				b.ReportAllocs()
				for b.Loop() {
					p := all[kind]
					if kind == "classes" {
						p, _ = p.Group()
					}
					r, err := s.MaxMin(context.Background(), p, optim.Level{})
					if err != nil {
						b.Fatal(err)
					}
					gap = r.Bound/r.Level - 1
				}
				b.ReportMetric(gap, "gap")
			})
		}
	}
}

func BenchmarkMaxSum(b *testing.B) {
	for _, size := range sizes {
		all := workloads(size.jobs, size.types)
		for _, kind := range kinds {
			b.Run(fmt.Sprintf("%s/%dx%d", kind, size.jobs, size.types), func(b *testing.B) {
				var s optim.SharesSolver
				var gap float64
				b.ReportAllocs()
				for b.Loop() {
					p := all[kind]
					if kind == "classes" {
						p, _ = p.Group()
					}
					r, err := s.MaxSum(context.Background(), p, rates(p), nil)
					if err != nil {
						b.Fatal(err)
					}
					gap = r.Bound/r.Value - 1
				}
				b.ReportMetric(gap, "gap")
			})
		}
	}
}

func BenchmarkFinishTimes(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dx%d", size.jobs, size.types), func(b *testing.B) {
			p := workloads(size.jobs, size.types)["scaled"]
			rng := rand.New(rand.NewPCG(13, 1))
			var f optim.Finish
			for range p.Jobs {
				f.Elapsed = append(f.Elapsed, 1000*rng.Float64())
				f.Remaining = append(f.Remaining, 1e5*rng.Float64())
				f.Exclusive = append(f.Exclusive, 1e5*rng.Float64()+1000)
			}
			var s optim.SharesSolver
			var gap float64
			for b.Loop() {
				r, err := s.FinishTimes(context.Background(), p, f)
				if err != nil {
					b.Fatal(err)
				}
				gap = r.Ratio/r.Bound - 1
			}
			b.ReportMetric(gap, "gap")
		})
	}
}

func BenchmarkWaterFill(b *testing.B) {
	for _, size := range sizes[:2] { // the larger ones take minutes
		b.Run(fmt.Sprintf("%dx%d", size.jobs, size.types), func(b *testing.B) {
			p := workloads(size.jobs, size.types)["scaled"]
			var s optim.SharesSolver
			var rounds int
			for b.Loop() {
				r, err := s.WaterFill(context.Background(), p, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				rounds = r.Rounds
			}
			b.ReportMetric(float64(rounds), "rounds")
		})
	}
}
