package optim

import (
	"context"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// drawAuction draws whole values with a few workers some jobs cannot use.
func drawAuction(t *rapid.T) (value [][]float64, demand []int) {
	jobs, workers := rapid.IntRange(1, 4).Draw(t, "jobs"), rapid.IntRange(1, 9).Draw(t, "workers")
	for range jobs {
		demand = append(demand, rapid.IntRange(0, 3).Draw(t, "demand"))
		row := make([]float64, workers)
		for k := range row {
			row[k] = float64(rapid.IntRange(-4, 30).Draw(t, "value"))
			if row[k] == -4 {
				row[k] = math.Inf(-1)
			}
		}
		value = append(value, row)
	}
	return value, demand
}

// With whole values, the auction sells for exactly what the transport problem gives. Its prices are an equilibrium:
// every job holds one of its best sets up to the raise, and a worker nobody wants is free.
func TestAuctionIsExactOnWholeValues(t *testing.T) {
	var a Auction
	var tr Transport
	rapid.Check(t, func(t *rapid.T) {
		value, demand := drawAuction(t)
		cost, ones := make([][]float64, len(value)), make([]int, len(value[0]))
		total := 0
		for i, row := range value {
			total += demand[i]
			for k, v := range row {
				ones[k] = 1
				cost[i] = append(cost[i], -v)
			}
		}
		want, infeasible := tr.Solve(context.Background(), cost, demand, ones)
		got, err := a.Solve(context.Background(), value, demand)
		if infeasible != nil {
			if !errors.Is(err, ErrAuctionInfeasible) {
				t.Fatalf("error %v, want %v", err, ErrAuctionInfeasible)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Value != -want.Cost {
			t.Errorf("value %v, want %v", got.Value, -want.Cost)
		}
		if got.Bound < got.Value-1e-9 || got.Bound > got.Value+1 {
			t.Errorf("bound %v of a value %v", got.Bound, got.Value)
		}
		held := make([]int, len(value))
		for k, i := range got.Owners {
			switch {
			case i >= 0:
				held[i]++
			case got.Prices[k] != 0:
				t.Errorf("worker %d is unsold at price %v", k, got.Prices[k])
			}
		}
		for i := range value {
			if held[i] != demand[i] {
				t.Errorf("job %d holds %d workers, want %d", i, held[i], demand[i])
			}
			least, most := math.Inf(1), math.Inf(-1)
			for k, v := range value[i] {
				if got.Owners[k] == i {
					least = math.Min(least, v-got.Prices[k])
				} else {
					most = math.Max(most, v-got.Prices[k])
				}
			}
			if demand[i] > 0 && least < most-1/float64(max(total, 1))-1e-9 {
				t.Errorf("job %d holds a worker that pays %v, and would rather have one that pays %v", i, least, most)
			}
		}
	})
}

func TestAuctionRefuses(t *testing.T) {
	a := Auction{Epsilon: -1}
	_, err := a.Solve(t.Context(), [][]float64{{1, math.NaN()}, {1}}, []int{1, -1, 0})
	want := `optim: auction: 2 rows of values, want one for each of 3 jobs
optim: auction: raise -1, want a positive number, or 0 to choose one
optim: auction: value of worker 1 to job 0 is NaN, want a number, or -Inf where it is worth nothing
optim: auction: job 1 has 1 values, want one for each of 2 workers
optim: auction: demand -1 of job 1 is negative`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %v", err, want)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(Auction).Solve(canceled, [][]float64{{1}}, []int{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestAuctionRaises holds the raise that Solve chooses: whole values are sold for exactly the most, others to a thousandth of
// their span.
func TestAuctionRaises(t *testing.T) {
	none := math.Inf(-1)
	tests := map[string]struct {
		epsilon             float64
		value               [][]float64
		wantRaise, wantSpan float64
	}{
		"whole values":               {value: [][]float64{{3, 1}, {2, none}}, wantRaise: 0.999 / 4, wantSpan: 2},
		"a fraction first":           {value: [][]float64{{1.5, 3}, {2, 1}}, wantRaise: 2.0 / 1000 / 4, wantSpan: 2},
		"a fraction last":            {value: [][]float64{{1, 3}, {2, 1.5}}, wantRaise: 2.0 / 1000 / 4, wantSpan: 2},
		"fractions":                  {value: [][]float64{{0.5, 0.25}, {none, 0.75}}, wantRaise: 0.5 / 1000 / 4, wantSpan: 0.5},
		"a raise that was asked for": {epsilon: 0.25, value: [][]float64{{3, 1}, {2, 2}}, wantRaise: 0.25, wantSpan: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := Auction{Epsilon: tc.epsilon}
			if raise, span := a.raise(tc.value, []int{1, 3}); raise != tc.wantRaise || span != tc.wantSpan {
				t.Errorf("raise %v, span %v, want %v and %v", raise, span, tc.wantRaise, tc.wantSpan)
			}
		})
	}
}
