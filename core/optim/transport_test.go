package optim

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTransport(t *testing.T) {
	never := math.Inf(1)
	cases := map[string]struct {
		cost             [][]float64
		supply, capacity []int
		want             float64
		prices           []float64
	}{
		"nothing to ship":       {nil, nil, []int{1}, 0, []float64{0}},
		"each its own":          {[][]float64{{1, 5}, {5, 1}}, []int{2, 2}, []int{2, 2}, 4, nil},
		"the dearer one yields": {[][]float64{{1, 3}, {1, 9}}, []int{1, 1}, []int{1, 2}, 4, []float64{2, 0}},
		"a chain of three":      {[][]float64{{0, 1, never}, {0, never, never}, {never, 0, 4}}, []int{1, 1, 1}, []int{1, 1, 1}, 5, nil},
		"negative costs":        {[][]float64{{-3, -1}}, []int{2}, []int{1, 5}, -4, []float64{2, 0}},
		"a split supply":        {[][]float64{{1, 2, 3}}, []int{5}, []int{2, 2, 2}, 9, []float64{2, 1, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var tr Transport
			got, err := tr.Solve(t.Context(), tc.cost, tc.supply, tc.capacity)
			if err != nil {
				t.Fatal(err)
			}
			if got.Cost != tc.want {
				t.Errorf("cost %v, want %v", got.Cost, tc.want)
			}
			for i, price := range tc.prices {
				if got.Prices[i] != price {
					t.Errorf("prices %v, want %v", got.Prices, tc.prices)
				}
			}
		})
	}
}

// drawTransport draws a small table with forbidden pairs, in whole numbers.
func drawTransport(t *rapid.T) (cost [][]float64, supply, capacity []int) {
	suppliers, types := rapid.IntRange(1, 4).Draw(t, "suppliers"), rapid.IntRange(1, 4).Draw(t, "types")
	for range suppliers {
		supply = append(supply, rapid.IntRange(0, 3).Draw(t, "supply"))
		row := make([]float64, types)
		for c := range row {
			row[c] = float64(rapid.IntRange(-5, 10).Draw(t, "cost"))
			if row[c] == 10 {
				row[c] = math.Inf(1)
			}
		}
		cost = append(cost, row)
	}
	for range types {
		capacity = append(capacity, rapid.IntRange(0, 4).Draw(t, "capacity"))
	}
	return cost, supply, capacity
}

// leastShipment tries every plan, unit by unit.
func leastShipment(cost [][]float64, supply, left []int, i, units, from int) float64 {
	for i < len(supply) && units == supply[i] {
		i, units, from = i+1, 0, 0
	}
	if i == len(supply) {
		return 0
	}
	least := math.Inf(1)
	for t := from; t < len(left); t++ {
		if left[t] > 0 && !math.IsInf(cost[i][t], 1) {
			left[t]--
			least = math.Min(least, cost[i][t]+leastShipment(cost, supply, left, i, units+1, t))
			left[t]++
		}
	}
	return least
}

// A plan ships everything, exceeds nothing, costs the least there is, and its prices prove it.
func TestTransportIsExact(t *testing.T) {
	var tr Transport
	rapid.Check(t, func(t *rapid.T) {
		cost, supply, capacity := drawTransport(t)
		want := leastShipment(cost, supply, append([]int(nil), capacity...), 0, 0, 0)
		got, err := tr.Solve(context.Background(), cost, supply, capacity)
		if math.IsInf(want, 1) {
			if !errors.Is(err, ErrTransportInfeasible) {
				t.Fatalf("error %v, want %v", err, ErrTransportInfeasible)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Cost != want || got.Bound != want {
			t.Errorf("cost %v, bound %v, want %v", got.Cost, got.Bound, want)
		}
		total := make([]int, len(capacity))
		for i, row := range got.Flow {
			sum := 0
			for k, units := range row {
				sum += units
				total[k] += units
				if units > 0 && cost[i][k]+got.Prices[k] != got.MarginalCosts[i] {
					t.Errorf("supplier %d ships on type %d at %v, and pays %v at best", i, k, cost[i][k]+got.Prices[k], got.MarginalCosts[i])
				}
				if units < 0 {
					t.Errorf("supplier %d ships %d units", i, units)
				}
			}
			if sum != supply[i] {
				t.Errorf("supplier %d ships %d of %d units", i, sum, supply[i])
			}
		}
		for k := range capacity {
			if total[k] > capacity[k] || total[k] < capacity[k] && got.Prices[k] != 0 || got.Prices[k] < 0 {
				t.Errorf("type %d takes %d of %d at price %v", k, total[k], capacity[k], got.Prices[k])
			}
		}
	})
}

func TestTransportRefuses(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		ctx              context.Context
		cost             [][]float64
		supply, capacity []int
		want             string
	}{
		"all at once": {
			t.Context(),
			[][]float64{{math.NaN()}, {1, 2}, {math.Inf(-1)}},
			[]int{-1, 1},
			[]int{-2},
			`optim: transport: 3 rows of costs, want one for each of 2 suppliers
optim: transport: cost of supplier 0 on type 0 is NaN, want a number, or +Inf where it must not go
optim: transport: supplier 1 has 2 costs, want one for each of 1 types
optim: transport: cost of supplier 2 on type 0 is -Inf, want a number, or +Inf where it must not go
optim: transport: supply -1 of supplier 0 is negative
optim: transport: capacity -2 of type 0 is negative`,
		},
		"too much": {t.Context(), [][]float64{{1}}, []int{3}, []int{2}, "optim: the suppliers cannot ship everything: 1 of supplier 0 left"},
		"canceled": {canceled, [][]float64{{1}}, []int{1}, []int{2}, "optim: transport: context canceled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var tr Transport
			if _, err := tr.Solve(tc.ctx, tc.cost, tc.supply, tc.capacity); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}
