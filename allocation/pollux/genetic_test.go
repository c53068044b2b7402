package pollux

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestRepair walks jobs, in order of rank, through the published steps on nodes of four devices.
func TestRepair(t *testing.T) {
	type rows [][]share
	for name, tc := range map[string]struct {
		avoid       bool
		most, least int
		rows, want  rows
	}{
		"earlier jobs win devices":                  {most: 8, rows: rows{{{0, 3}}, {{0, 3}}, {{0, 2}}}, want: rows{{{0, 3}}, {{0, 1}}, {}}},
		"one that spans nodes keeps others off":     {avoid: true, most: 8, rows: rows{{{0, 1}, {1, 1}}, {{1, 2}, {2, 2}}}, want: rows{{{0, 1}, {1, 1}}, {{2, 2}}}},
		"one that does not span is left":            {avoid: true, most: 8, rows: rows{{{0, 1}, {1, 1}}, {{1, 2}}}, want: rows{{{0, 1}, {1, 1}}, {{1, 2}}}},
		"what spans counts before the repair":       {avoid: true, most: 8, rows: rows{{{0, 1}, {1, 1}}, {{1, 2}, {2, 2}}, {{2, 1}, {3, 1}}}, want: rows{{{0, 1}, {1, 1}}, {{2, 2}}, {{3, 1}}}},
		"without avoidance they meet":               {most: 8, rows: rows{{{0, 1}, {1, 1}}, {{1, 2}, {2, 2}}}, want: rows{{{0, 1}, {1, 1}}, {{1, 2}, {2, 2}}}},
		"at most so many":                           {most: 2, rows: rows{{{0, 3}}}, want: rows{{{0, 2}}}},
		"too few are none, and their devices waste": {most: 8, least: 3, rows: rows{{{0, 3}}, {{0, 4}}, {{0, 4}}}, want: rows{{{0, 3}}, {}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &variation{rand: rand.New(rand.NewPCG(1, 1)), avoid: tc.avoid, left: []int32{4, 4, 4, 4}, spanned: make([]bool, 4)}
			var got rows
			for _, row := range tc.rows {
				n.row = append([]share{}, row...)
				n.repair(&job{most: tc.most, least: tc.least})
				got = append(got, append([]share{}, n.row...))
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(share{})); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGrowthIsByNode draws where a seating grows, on four nodes of four devices. Of all jobs one grows on a node that is
// open, on average, and of those that sit there one as well: of J jobs that is 2 − 1/J where some sit, 1 where none do.
func TestGrowthIsByNode(t *testing.T) {
	for name, tc := range map[string]struct {
		rows [][]share // of the first jobs
		jobs int
		want []float64 // times that somebody grows, by node
	}{
		"an empty cluster":              {nil, 10, []float64{1, 1, 1, 1}},
		"a full node":                   {[][]share{{{0, 4}}}, 10, []float64{0, 1, 1, 1}},
		"one job on a node":             {[][]share{{{1, 2}}}, 10, []float64{1, 1.9, 1, 1}},
		"two jobs on a node":            {[][]share{{{1, 1}}, {{1, 1}}}, 10, []float64{1, 1.9, 1, 1}},
		"one that spans nodes":          {[][]share{{{1, 4}, {2, 1}}}, 5, []float64{1, 0, 1.8, 1}},
		"more than a node holds":        {[][]share{{{3, 4}}, {{3, 4}}}, 5, []float64{1, 1, 1, 0}},
		"a job alone grows for certain": {nil, 1, []float64{1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &variation{rand: rand.New(rand.NewPCG(1, 1)), capacity: []int{4, 4, 4, 4}, jobs: make([]*job, tc.jobs), free: make([]int32, 4), seated: make([]int32, 4)}
			for rank := range tc.jobs {
				var row []share
				if rank < len(tc.rows) {
					row = tc.rows[rank]
				}
				n.draft.add(row)
			}
			const draws = 20000
			got := make([]float64, 4)
			for range draws {
				n.growing = n.growing[:0]
				n.drawGrowth()
				for i, at := range n.growing {
					got[at.node] += 1.0 / draws
					if i > 0 && (n.growing[i-1].rank > at.rank || n.growing[i-1] == at) {
						t.Fatalf("places %v, want them by rank, each once", n.growing)
					}
				}
			}
			for node, want := range tc.want {
				if math.Abs(got[node]-want) > 0.05 {
					t.Errorf("%.3f jobs grow on node %d, want %v", got[node], node, want)
				}
			}
		})
	}
}

func TestParetoSortsByFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []*member
		for range rapid.IntRange(1, 30).Draw(t, "members") {
			members = append(members, &member{
				fitness: float64(rapid.IntRange(0, 6).Draw(t, "fitness")), utility: float64(rapid.IntRange(0, 6).Draw(t, "utility")),
			})
		}
		var p pareto
		count := rapid.IntRange(1, len(members)).Draw(t, "count")
		p.best(members, count, rand.New(rand.NewPCG(1, 1)))
		fronts := make(map[*member]int)
		for _, m := range members { // dominators come first
			for _, other := range members {
				if other.dominates(m) {
					fronts[m] = max(fronts[m], fronts[other]+1)
				}
			}
		}
		for i, m := range members {
			if m.front != fronts[m] {
				t.Errorf("member %+v is on front %d, want %d", m, m.front, fronts[m])
			}
			if i > 0 && m.front < members[i-1].front {
				t.Errorf("front %d follows front %d", m.front, members[i-1].front)
			}
		}
	})
}

// TestCrowd is a front of four, one of them twice: extremes are alone, the twin is crowded.
func TestCrowd(t *testing.T) {
	var front []*member
	for _, o := range []objectives{{4, 0}, {3, 1}, {3, 1}, {1, 3}, {0, 4}} {
		front = append(front, &member{fitness: o.fitness, utility: o.utility})
	}
	crowd(front)
	if !(front[0].distance > 1e300 && front[4].distance > 1e300) {
		t.Errorf("extremes have the distances %v and %v, want infinite ones", front[0].distance, front[4].distance)
	}
	if got, want := []float64{front[1].distance, front[2].distance, front[3].distance}, []float64{1.5, 0, 1.5}; !cmp.Equal(got, want) {
		t.Errorf("distances %v, want %v", got, want)
	}
}

// TestGeneticImproves holds that a front that is kept and searched on never gets less fit, and that the search is
// repeatable.
func TestGeneticImproves(t *testing.T) {
	v, candidates := busy(t, 64, 20)
	search := func() (fitness []float64) {
		p := component(t, New(), map[string]any{"search": "genetic", "generations": 20}).(*allocator)
		for range 5 {
			if _, err := p.Allocate(t.Context(), v, candidates); err != nil {
				t.Fatal(err)
			}
			fitness = append(fitness, p.fitness(p.plan.cost))
		}
		return fitness
	}
	first := search()
	for i := 1; i < len(first); i++ {
		if first[i] < first[i-1] {
			t.Errorf("fitness falls from %v to %v in round %d", first[i-1], first[i], i)
		}
	}
	if first[4] <= first[0] {
		t.Errorf("fitness stays %v", first[0])
	}
	if diff := cmp.Diff(first, search()); diff != "" {
		t.Errorf("the same seed searches differently:\n%s", diff)
	}
}
