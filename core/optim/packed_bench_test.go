package optim

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkPacked holds jobs of 83 kinds of four sizes on three types, with all pairs of a size: with equal demands, and with demands of their own.
func BenchmarkPacked(b *testing.B) {
	for _, jobs := range []int{100, 300, 700} {
		for name, alike := range map[string]bool{"alike": true, "unlike": false} {
			b.Run(fmt.Sprintf("%s-%d", name, jobs), func(b *testing.B) {
				p, level := manyPacked(jobs, alike)
				s := new(PackedSolver)
				gap := 0.0
				for b.Loop() {
					r, err := s.MaxMin(b.Context(), p, level, false)
					if err != nil {
						b.Fatal(err)
					}
					gap = 1 - r.Level/r.Bound
				}
				b.ReportMetric(gap, "gap")
			})
		}
	}
}

func manyPacked(jobs int, alike bool) (Packed, Level) {
	draw := rand.New(rand.NewPCG(1, 2))
	p := Packed{Capacity: []float64{36, 36, 36}}
	var level Level
	kinds := 83
	for k := range kinds {
		c := PackedClass{Devices: float64(int(1) << (k % 4))}
		for t := range p.Capacity {
			c.Rates = append(c.Rates, (0.5+0.5*draw.Float64())/float64(t+1))
		}
		p.Classes = append(p.Classes, c)
	}
	for i := range jobs {
		k := draw.IntN(kinds)
		p.Classes[k].Members = append(p.Classes[k].Members, i)
		level.Slope = append(level.Slope, 1)
		if !alike {
			level.Slope[i] = 0.01 + draw.ExpFloat64()*draw.ExpFloat64()
		}
	}
	var classes []PackedClass
	for _, c := range p.Classes {
		if len(c.Members) > 0 {
			classes = append(classes, c)
		}
	}
	p.Classes = classes
	for a := range p.Classes {
		for o := a; o < len(p.Classes); o++ {
			for t := range p.Capacity {
				if p.Classes[a].Devices == p.Classes[o].Devices {
					pair := PackedPair{First: a, Second: o, Type: t, Rates: [2]float64{p.Classes[a].Rates[t] * (0.3 + 0.6*draw.Float64()), p.Classes[o].Rates[t] * (0.3 + 0.6*draw.Float64())}}
					if a == o {
						pair.Rates[1] = pair.Rates[0]
					}
					p.Pairs = append(p.Pairs, pair)
				}
			}
		}
	}
	return p, level
}
