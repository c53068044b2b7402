package market

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// BenchmarkPlace places the instances of both generators, one after the other.
func BenchmarkPlace(b *testing.B) {
	for _, name := range []string{"graded", "skewed"} {
		b.Run(name, func(b *testing.B) {
			var drawn []instance
			for seed := range uint64(100) {
				drawn = append(drawn, generators[name](rand.New(rand.NewPCG(seed, 100))))
			}
			b.ReportAllocs()
			for run := uint64(0); b.Loop(); run++ {
				in := drawn[run%100]
				if _, err := Place(b.Context(), in.jobs, in.workers, Options{}, rand.New(rand.NewPCG(run, 101))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEnumeration matches every category, workers idle included, as well as Place matches equal sizes, and reports
// how many times as long that takes as Place, and how far each is from the optimum. Run it with -benchtime=1x;
// instances of more than 20,000 categories, where the ratio only grows, are left out.
func BenchmarkEnumeration(b *testing.B) {
	const repeats = 20
	for _, name := range []string{"graded", "skewed"} {
		b.Run(name, func(b *testing.B) {
			var all, ours, logs, gap, ourGap float64
			var ratios []float64
			for seed := uint64(0); len(ratios) < 40; seed++ {
				in := generators[name](rand.New(rand.NewPCG(seed, 100)))
				p, err := newProblem(in.jobs, in.workers)
				if err != nil {
					b.Fatal(err)
				}
				p.admit()
				if categories(p.total, len(p.agents)) > 20_000 {
					continue
				}
				best, err := Optimum(b.Context(), in.jobs, in.workers)
				if err != nil {
					b.Fatal(err)
				}
				start := b.Elapsed()
				least := leastCategory(b, p)
				middle := b.Elapsed()
				var got Assignment
				for range repeats {
					if got, err = Place(b.Context(), in.jobs, in.workers, Options{}, rand.New(rand.NewPCG(seed, 101))); err != nil {
						b.Fatal(err)
					}
				}
				end := b.Elapsed()
				every, one := (middle - start).Seconds(), (end-middle).Seconds()/repeats
				all, ours, logs = all+every, ours+one, logs+math.Log(every/one)
				ratios = append(ratios, every/one)
				gap, ourGap = gap+least/best.Mean-1, ourGap+got.Mean/best.Mean-1
			}
			n := float64(len(ratios))
			slices.Sort(ratios)
			b.ReportMetric(all/ours, "times_in_all")
			b.ReportMetric(math.Exp(logs/n), "times_geomean")
			b.ReportMetric(ratios[len(ratios)/10], "times_p10")
			b.ReportMetric(ratios[0], "times_least")
			b.ReportMetric(100*gap/n, "%gap_of_all")
			b.ReportMetric(100*ourGap/n, "%gap")
		})
	}
}

// categories is the number of categories: jobs cut points among the workers.
func categories(workers, jobs int) float64 {
	n := 1.0
	for i := range jobs {
		n *= float64(workers-i) / float64(i+1)
	}
	return n
}

// leastCategory is the least mean over all categories.
func leastCategory(b *testing.B, p *problem) float64 {
	m, e, least := newMatching(p, Options{}), newExchanger(p), math.Inf(1)
	sizes := make([]int, len(p.agents))
	var walk func(i, room int)
	walk = func(i, room int) {
		if i == len(sizes) {
			if _, err := m.solve(b.Context(), sizes, rounds); err != nil {
				b.Fatal(err)
			}
			e.load(m.held)
			sum, err := e.improve(b.Context(), true)
			if err != nil {
				b.Fatal(err)
			}
			least = min(least, sum/float64(len(sizes)))
			return
		}
		for size := 1; size <= room-(len(sizes)-1-i); size++ {
			sizes[i] = size
			walk(i+1, room-size)
		}
	}
	walk(0, p.total)
	return least
}

// BenchmarkEachCategory holds a market for each of so many categories, over 20 instances of each generator, and reports
// how far the outcome is from the optimum.
func BenchmarkEachCategory(b *testing.B) {
	for _, name := range []string{"graded", "skewed"} {
		for _, samples := range []int{1, 4, 16, 64, 256, 1024} {
			b.Run(fmt.Sprintf("%s/%d", name, samples), func(b *testing.B) {
				const count = 20
				var drawn []instance
				var least []float64
				for seed := range uint64(count) {
					in := generators[name](rand.New(rand.NewPCG(seed, 100)))
					best, err := Optimum(b.Context(), in.jobs, in.workers)
					if err != nil {
						b.Fatal(err)
					}
					drawn, least = append(drawn, in), append(least, best.Mean)
				}
				var gaps []float64
				for b.Loop() {
					gaps = gaps[:0]
					for seed, in := range drawn {
						got, err := Place(b.Context(), in.jobs, in.workers, Options{EachCategory: true, Samples: samples}, rand.New(rand.NewPCG(uint64(seed), 101)))
						if err != nil {
							b.Fatal(err)
						}
						gaps = append(gaps, got.Mean/least[seed]-1)
					}
				}
				slices.Sort(gaps)
				b.ReportMetric(100*mean(gaps), "%gap")
				b.ReportMetric(100*gaps[(count*95-1)/100], "%gap_p95")
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)/count, "ms/decision")
			})
		}
	}
}
