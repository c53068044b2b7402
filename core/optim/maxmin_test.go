package optim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core/optim"
)

// differing is a polytope of jobs that all differ, with half as many devices as they ask for.
func differing(jobs, types int, seed uint64) optim.Polytope {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := optim.Polytope{Capacity: make([]float64, types), Jobs: make([]optim.ShareJob, jobs)}
	var asked float64
	for i := range p.Jobs {
		p.Jobs[i] = optim.ShareJob{Devices: float64(int(1) << rng.IntN(4)), Rates: make([]float64, types)}
		asked += p.Jobs[i].Devices
		scale := 1 + 9*rng.Float64()
		for j := range p.Jobs[i].Rates {
			p.Jobs[i].Rates[j] = scale * (1 + float64(j)*rng.Float64())
		}
	}
	for j := range p.Capacity {
		p.Capacity[j] = float64(int(asked / 8 / float64(types)))
	}
	return p
}

func BenchmarkMaxMin(b *testing.B) {
	for _, size := range []struct{ jobs, types int }{{800, 3}, {800, 6}, {2048, 3}, {2048, 8}, {20_000, 3}, {20_000, 8}} {
		b.Run(fmt.Sprintf("differing/%dx%d", size.jobs, size.types), func(b *testing.B) {
			p := differing(size.jobs, size.types, 7)
			for i := range p.Jobs { var m float64; for _,a := range p.Jobs[i].Rates {m+=a}; for j := range p.Jobs[i].Rates {p.Jobs[i].Rates[j]*=p.Jobs[i].Devices/m}}
			var s optim.SharesSolver
			b.ReportAllocs()
			var gap float64
			for b.Loop() {
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

func BenchmarkMaxSum(b *testing.B) {
	for _, size := range []struct{ jobs, types int }{{800, 3}, {800, 6}, {2048, 3}, {2048, 8}, {20_000, 3}, {20_000, 8}} {
		b.Run(fmt.Sprintf("differing/%dx%d", size.jobs, size.types), func(b *testing.B) {
			p := differing(size.jobs, size.types, 7)
			values := make([][]float64, len(p.Jobs))
			for i, job := range p.Jobs {
				values[i] = make([]float64, size.types)
				for j, a := range job.Rates {
					values[i][j] = a / job.Rates[0]
				}
			}
			var s optim.SharesSolver
			b.ReportAllocs()
			var gap float64
			for b.Loop() {
				r, err := s.MaxSum(context.Background(), p, values, nil)
				if err != nil {
					b.Fatal(err)
				}
				gap = r.Bound/r.Value - 1
			}
			b.ReportMetric(gap, "gap")
		})
	}
}
