package market

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	ctx := context.Background()
	per := 100
	for name, generate := range generators {
		var gaps, micros []float64
		var opt time.Duration
		for seed := range per {
			in := generate(rand.New(rand.NewPCG(uint64(seed), 7)))
			start := time.Now()
			best, err := Optimum(ctx, in.jobs, in.workers)
			opt += time.Since(start)
			if err != nil {
				t.Fatal(err)
			}
			start = time.Now()
			var k int
			fmt.Sscan(os.Getenv("K"), &k)
			got, err := Place(ctx, in.jobs, in.workers, Options{Kicks: k}, rand.New(rand.NewPCG(uint64(seed), 8)))
			micros = append(micros, float64(time.Since(start).Nanoseconds())/1e3)
			if err != nil {
				t.Fatal(err)
			}
			gap := got.Mean/best.Mean - 1
			if gap < -1e-9 {
				t.Error("beats optimum", gap)
			}
			if os.Getenv("V") != "" {
				fmt.Println(name, seed, len(in.jobs), in.workers.Count, gap, got.Jain, got.Mean/got.Bound-1)
			}
			gaps = append(gaps, gap)
		}
		slices.Sort(gaps)
		slices.Sort(micros)
		sum := 0.0
		for _, g := range gaps {
			sum += g
		}
		fmt.Printf("%s mean %.4f%% p95 %.3f%% max %.3f%%; place p50 %.0f max %.0f us; opt %v\n", name, 100*sum/float64(per), 100*gaps[per*95/100], 100*gaps[per-1], micros[per/2], micros[per-1], opt/time.Duration(per))
	}
}
