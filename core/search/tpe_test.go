package search_test

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/search"
)

// best is the least value that a search finds in so many trials, of which so many run at a time.
func best(t testing.TB, kind string, f function, seed uint64, trials, parallel int) float64 {
	t.Helper()
	chosen, problems := search.Setting{Type: kind}.Decode("search", "space", search.Problem{Space: f.space})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s, err := chosen.New(seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	least := math.Inf(1)
	var running []search.Trial
	for now := 1.0; now <= float64(trials); now++ {
		if len(running) < parallel {
			asked, err := s.Ask(t.Context(), parallel-len(running))
			if err != nil {
				t.Fatal(err)
			}
			running = append(running, asked...)
		}
		done := running[0]
		running = running[1:]
		value := f.value(done.Params)
		least = math.Min(least, value)
		if _, err := s.Tell(t.Context(), []search.Result{{Trial: done.ID, Kind: search.Finished, AtSeconds: now, Step: 1, Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	return least
}

// TPE is closer to the least value than random search with as many trials, on the same seeds.
func TestTPEBeatsRandom(t *testing.T) {
	const seeds, trials, parallel = 20, 100, 4
	for _, f := range functions() {
		t.Run(f.name, func(t *testing.T) {
			wins, sum := 0, 0.0
			for seed := range uint64(seeds) {
				r, tpe := best(t, "random", f, seed, trials, parallel)-f.least, best(t, "tpe", f, seed, trials, parallel)-f.least
				if tpe < r {
					wins++
				}
				sum += math.Log(tpe / r)
			}
			ratio := math.Exp(sum / seeds)
			t.Logf("%s: distance to the least value %.2f times that of random search, better on %d of %d seeds", f.name, ratio, wins, seeds)
		})
	}
}
