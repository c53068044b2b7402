package search_test

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/search"
)

// best is the least value that a search finds in so many trials, of which so many run at a time. The one that was started first ends first.
func best(t testing.TB, kind string, config map[string]any, f function, seed uint64, trials, parallel int) float64 {
	t.Helper()
	s := made(t, kind, config, f.space, seed)
	defer s.Close()
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

// comparison is how the distance to the least value compares over seeds.
type comparison struct {
	ratio float64 // geometric mean
	wins  int
}

const compareSeeds, compareTrials, compareParallel = 20, 100, 4

func compare(t *testing.T, f function, kind string, config map[string]any, others []float64) (c comparison, distances []float64) {
	sum := 0.0
	for i := range uint64(compareSeeds) {
		seed := 1000 + i // the constants were chosen on others
		d := best(t, kind, config, f, seed, compareTrials, compareParallel) - f.least
		distances = append(distances, d)
		if others == nil {
			continue
		}
		if d < others[i] {
			c.wins++
		}
		sum += math.Log(d / others[i])
	}
	c.ratio = math.Exp(sum / compareSeeds)
	return c, distances
}

// TPE is closer to the least value than random search with as many trials, on the same seeds.
func TestTPEBeatsRandom(t *testing.T) {
	for _, f := range functions() {
		t.Run(f.name, func(t *testing.T) {
			_, random := compare(t, f, "random", nil, nil)
			got, _ := compare(t, f, "tpe", nil, random)
			t.Logf("%.2f times the distance of random search, better on %d of %d seeds", got.ratio, got.wins, compareSeeds)
			if got.ratio > 0.25 || got.wins < 15 {
				t.Errorf("%.2f times the distance of random search, better on %d of %d seeds; want 0.25 and 15", got.ratio, got.wins, compareSeeds)
			}
		})
	}
}
