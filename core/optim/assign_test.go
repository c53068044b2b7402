package optim

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// leastMatching tries every matching of the rows from i on, which are no more than the columns.
func leastMatching(cost [][]float64, taken []bool, i int) float64 {
	if i == len(cost) {
		return 0
	}
	least := math.Inf(1)
	for j, c := range cost[i] {
		if !taken[j] {
			taken[j] = true
			least = math.Min(least, c+leastMatching(cost, taken, i+1))
			taken[j] = false
		}
	}
	return least
}

// A matching costs the least there is, and its duals prove it, wide or tall, with forbidden pairs.
func TestAssignerIsExact(t *testing.T) {
	var a Assigner
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(0, 5).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "columns")
		wide := make([][]float64, rows)
		for i := range wide {
			wide[i] = make([]float64, max(rows, columns))
			for j := range wide[i] {
				wide[i][j] = float64(rapid.IntRange(-3, 9).Draw(t, "cost"))
				if wide[i][j] == 9 {
					wide[i][j] = math.Inf(1)
				}
			}
		}
		cost := wide
		if rapid.Bool().Draw(t, "turned") && rows > 0 {
			cost = make([][]float64, len(wide[0]))
			for j := range cost {
				for i := range wide {
					cost[j] = append(cost[j], wide[i][j])
				}
			}
		}
		want := leastMatching(wide, make([]bool, max(rows, columns)), 0)
		got, err := a.Solve(context.Background(), cost)
		if math.IsInf(want, 1) {
			if !errors.Is(err, ErrAssignmentInfeasible) {
				t.Fatalf("error %v, want %v", err, ErrAssignmentInfeasible)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Cost != want || got.Bound != want {
			t.Errorf("cost %v, bound %v, want %v", got.Cost, got.Bound, want)
		}
		matched, owner := 0, map[int]int{}
		for i, row := range cost {
			if j := got.Columns[i]; j >= 0 {
				matched++
				owner[j]++
				if owner[j] > 1 {
					t.Errorf("column %d has %d rows", j, owner[j])
				}
			}
			for j, c := range row {
				if sum := got.Rows[i] + got.Prices[j]; sum > c || j == got.Columns[i] && sum != c {
					t.Errorf("duals of row %d and column %d add to %v, cost is %v, matched to %d", i, j, sum, c, got.Columns[i])
				}
			}
		}
		if matched != rows {
			t.Errorf("%d matched of %d", matched, rows)
		}
	})
}

func TestAssignerRefuses(t *testing.T) {
	var a Assigner
	if _, err := a.Solve(t.Context(), [][]float64{{1, 2}, {math.NaN()}}); err == nil || err.Error() != `optim: assignment: row 1 has 1 costs, want 2 as in the first
optim: assignment: cost of row 1 and column 0 is NaN, want a number, or +Inf for a forbidden pair` {
		t.Errorf("error %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Solve(canceled, [][]float64{{1, 1}, {1, 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func BenchmarkAssigner(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	cost := make([][]float64, 300)
	for i := range cost {
		cost[i] = make([]float64, 400)
		for j := range cost[i] {
			cost[i][j] = rng.Float64()
		}
	}
	var a Assigner
	for b.Loop() {
		if _, err := a.Solve(b.Context(), cost); err != nil {
			b.Fatal(err)
		}
	}
}
