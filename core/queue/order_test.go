package queue

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// Through rounds in which jobs come, go and change their keys, the order is the one that sorting from scratch gives.
func TestOrderSortsFromAnyOrderBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o Order
		keys := rapid.SampledFrom([]float64{0, 1, 2, 3, 1e9, -5, math.Inf(1), math.NaN()})
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			var candidates []core.Candidate
			var want []Rank
			for id := range core.JobID(rapid.IntRange(0, 60).Draw(t, "jobs")) {
				if rapid.IntRange(0, 3).Draw(t, "absent") == 0 {
					continue
				}
				key := keys.Draw(t, "key")
				spec := &core.JobSpec{ID: id}
				candidates = append(candidates, core.Candidate{Job: &core.Job{JobSpec: spec, Progress: key}})
				if math.IsNaN(key) {
					key = math.Inf(1)
				}
				want = append(want, Rank{Key: key, Job: id, Index: int32(len(candidates) - 1)})
			}
			slices.SortStableFunc(want, func(a, b Rank) int {
				switch {
				case a.Key < b.Key:
					return -1
				case a.Key > b.Key:
					return 1
				}
				return 0
			})
			got := o.Arrange(candidates, func(c *core.Candidate) float64 { return c.Progress })
			if !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	})
}

// More ranks out of place than insertion is allowed to move.
func TestSortRanksReversed(t *testing.T) {
	var ranks, want []Rank
	for i := range 1000 {
		ranks = append(ranks, Rank{Key: float64(1000 - i), Job: core.JobID(i)})
		want = append(want, Rank{Key: float64(i + 1), Job: core.JobID(999 - i)})
	}
	SortRanks(ranks)
	if !slices.Equal(ranks, want) {
		t.Error("the ranks are not in order")
	}
}
