package market

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func enumerate(p *problem, visit func([]int)) {
	sizes := make([]int, len(p.agents))
	var walk func(i, room int)
	walk = func(i, room int) {
		if i == len(sizes) {
			visit(sizes)
			return
		}
		for n := 1; n <= min(room-(len(sizes)-1-i), p.agents[i].most); n++ {
			sizes[i] = n
			walk(i+1, room-n)
		}
	}
	walk(0, p.total)
}

func TestEnum(t *testing.T) {
	ctx := context.Background()
	for name, generate := range generators {
		for seed := range 40 {
			in := generate(rand.New(rand.NewPCG(uint64(seed), 7)))
			p, _ := newProblem(in.jobs, in.workers)
			p.admit()
			n := 0
			enumerate(p, func([]int) { n++ })
			if n > 20000 {
				continue
			}
			m := newMatching(p, Transport)
			best := math.Inf(1)
			start := time.Now()
			e := newExchanger(p)
			enumerate(p, func(c []int) {
				if _, err := m.solve(ctx, c); err != nil {
					t.Fatal(err)
				}
				e.load(m.held)
				v, _ := e.improve(ctx, true)
				best = min(best, v)
			})
			all := time.Since(start)
			opt, _ := Optimum(ctx, in.jobs, in.workers)
			for _, k := range []int{-1, 3, 0} {
				start = time.Now()
				const rep = 20
				var got Assignment
				for range rep {
					got, _ = Place(ctx, in.jobs, in.workers, Options{Kicks: k}, rand.New(rand.NewPCG(uint64(seed), 8)))
				}
				ours := time.Since(start) / rep
				fmt.Printf("%s %d S=%d K=%d T=%d n=%d per match %v all %v ours(%d) %v ratio %.0f gap enum %.4f ours %.4f\n", name, seed, len(p.agents), p.total, len(p.count), n, all/time.Duration(n), all, k, ours, float64(all)/float64(ours), best/float64(len(p.agents))/opt.Mean-1, got.Mean/opt.Mean-1)
			}
		}
	}
}
