package queue

import (
	"fmt"
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

// An order that asks about few jobs is the one that asks about all, through rounds in which jobs come, run, change, wait and end, nodes change, and some rounds
// ask again about a part of them.
func TestOrderOfThoseThatChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var few, all Order
		all.Drifts = true
		var candidates []core.Candidate
		v, asked := &core.View{}, 0
		some := func(name string, of int) bool { return rapid.IntRange(1, of).Draw(t, name) == 1 }
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			v.Round++
			for n := rapid.IntRange(0, 6).Draw(t, "come"); n > 0; n-- {
				id := core.JobID(len(v.Jobs))
				v.Jobs = append(v.Jobs, &core.Job{JobSpec: &core.JobSpec{ID: id}, State: core.Waiting})
				v.NoteChange(id)
			}
			candidates, v.Active = candidates[:0], v.Active[:0]
			for id, j := range v.Jobs {
				if j != nil && some("happens", 4) {
					v.NoteChange(core.JobID(id))
					j.State, j.Progress = rapid.SampledFrom([]core.JobState{core.Waiting, core.Running}).Draw(t, "state"), float64(rapid.IntRange(0, 3).Draw(t, "progress"))
					if some("ends", 4) {
						v.Jobs[id] = nil
					}
				}
				if j = v.Jobs[id]; j == nil || j.State == core.Waiting && some("is held back", 9) {
					v.NoteChange(core.JobID(id))
					continue
				}
				if j.State == core.Running {
					j.Progress++
				}
				v.Active, candidates = append(v.Active, j.ID), append(candidates, core.Candidate{Job: j})
			}
			factor := 1.0
			if some("nodes change", 6) {
				v.HealthChanges++
			}
			if v.HealthChanges%2 == 1 {
				factor = -1
			}
			key := func(c *core.Candidate) float64 { return factor * c.Progress }
			for questions := rapid.IntRange(0, 2).Draw(t, "questions"); questions > 0; questions-- {
				got := few.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 { asked++; return key(c) })
				if want := all.ArrangeChanged(v, candidates, key); !slices.Equal(got, want) {
					t.Fatalf("got %v, want %v", got, want)
				}
				candidates = slices.Clone(candidates[:rapid.IntRange(0, len(candidates)).Draw(t, "shown")])
			}
		}
	})
}

// Many jobs that wait are not asked about.
func TestOrderPassesOverThoseThatWait(t *testing.T) {
	v := &core.View{}
	var candidates []core.Candidate
	for id := range core.JobID(1000) {
		j := &core.Job{JobSpec: &core.JobSpec{ID: id}, State: core.Waiting}
		if id%100 == 0 {
			j.State = core.Running
		}
		v.Jobs, v.Active = append(v.Jobs, j), append(v.Active, id)
		candidates = append(candidates, core.Candidate{Job: j})
	}
	var o Order
	for round, want := range []int{1000, 10, 11} {
		asked := 0
		if v.Round++; round == 2 {
			v.NoteChange(7)
		}
		if o.ArrangeChanged(v, candidates, func(*core.Candidate) float64 { asked++; return 0 }); asked != want {
			t.Errorf("round %d asks for %d keys, want %d", round, asked, want)
		}
	}
}

// Where many change places, the order is that of a sort, too: jobs that fall behind all others, with gangs of several sizes, over many rounds.
func TestOrderOfThoseThatFallBehind(t *testing.T) {
	for name, jobs := range map[string]int{"few": 40, "many": 3000} {
		t.Run(name, func(t *testing.T) {
			r := core.NewRand(1, name)
			var o Order
			candidates := make([]core.Candidate, jobs)
			for i := range candidates {
				candidates[i].Job = &core.Job{JobSpec: &core.JobSpec{ID: core.JobID(i), Requested: 1 + r.IntN(8)}, Progress: float64(r.IntN(100))}
			}
			for range 60 {
				ranks := o.Arrange(candidates, func(c *core.Candidate) float64 { return c.Progress })
				if !slices.IsSortedFunc(ranks, compareRanks) || len(ranks) != jobs {
					t.Fatal("the ranks are not in order")
				}
				seen := make([]bool, jobs)
				for _, at := range ranks {
					seen[at.Job] = true
				}
				if slices.Contains(seen, false) {
					t.Fatal("a rank was lost")
				}
				for _, at := range ranks[:jobs/8] { // who runs attains
					j := candidates[at.Index].Job
					j.Progress += float64(60 * j.Requested)
				}
			}
		})
	}
}

// BenchmarkOrder is a round of those that fall behind, by merging and by a general sort.
func BenchmarkOrder(b *testing.B) {
	for name, jobs := range map[string]int{"1000": 1000, "10000": 10000} {
		for _, merged := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/merged=%v", name, merged), func(b *testing.B) {
				var o Order
				r := core.NewRand(1, name)
				progress, size := make([]float64, jobs), make([]float64, jobs)
				for i := range jobs {
					o.ranks = append(o.ranks, Rank{Job: core.JobID(i)})
					size[i] = float64(1 + r.IntN(8))
				}
				for b.Loop() {
					for i := range o.ranks {
						at := &o.ranks[i]
						if i < jobs/8 {
							progress[at.Job] += 60 * size[at.Job]
						}
						at.Key = progress[at.Job]
					}
					if inserted(o.ranks) {
						continue
					}
					if merged {
						o.merge()
					} else {
						slices.SortFunc(o.ranks, compareRanks)
					}
				}
			})
		}
	}
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
