package optim_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/optim"
)

// drawValues draws values of any sign.
func drawValues(t *rapid.T, p optim.Polytope) [][]float64 {
	values := make([][]float64, len(p.Jobs))
	for i := range values {
		values[i] = perJob(t, "value", len(p.Capacity), 4)
		for j := range values[i] {
			values[i][j]--
		}
	}
	return values
}

// sumBound is what prices prove to be the most of a sum without floors.
func sumBound(p optim.Polytope, values [][]float64, prices []float64) float64 {
	bound := p.Budget(prices)
	for i, job := range p.Jobs {
		var gain float64
		for j, v := range values[i] {
			if job.Rates[j] > 0 && p.Capacity[j] > 0 {
				gain = max(gain, v-job.Devices*prices[j])
			}
		}
		bound += gain * float64(max(job.Count, 1))
	}
	return bound
}

// The largest sum is the optimum of the linear program, with and without floors, and its prices prove it.
func TestMaxSumAgainstLinear(t *testing.T) {
	var s optim.SharesSolver
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, rapid.IntRange(1, 7).Draw(t, "jobs"), rapid.IntRange(1, 4).Draw(t, "types"))
		values := drawValues(t, p)
		var floors []float64
		if rapid.Bool().Draw(t, "floors") {
			floors = perJob(t, "floor", len(p.Jobs), 1)
		}
		got, err := s.MaxSum(context.Background(), p, values, floors)
		if err != nil {
			t.Fatal(err)
		}
		seen[got.Feasible]++
		lp := program(p, 1)
		for i, row := range values {
			for j, v := range row {
				if p.Jobs[i].Rates[j] > 0 {
					lp.Objective[i*len(row)+j] = v * float64(max(p.Jobs[i].Count, 1))
				}
			}
			reach(&lp, p, i, at(floors, i, 0), 0)
		}
		want := solveLinear(t, lp)
		if got.Feasible != (want.Outcome == optim.Optimal) {
			t.Fatalf("feasible: %v, the linear program is %v", got.Feasible, want.Outcome)
		}
		if !got.Feasible {
			return
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-8*(10+math.Abs(want.Value)) }
		if !near(got.Value, want.Value) || !near(got.Bound, want.Value) {
			t.Fatalf("value %v, bound %v, want %v", got.Value, got.Bound, want.Value)
		}
		if e := p.Excess(got.Shares); e > 1e-9 {
			t.Fatalf("the shares lie %v outside", e)
		}
		for i, x := range got.Shares {
			if r, f := p.Rate(i, x), at(floors, i, 0); r < f*(1-1e-9) {
				t.Fatalf("job %d has a rate of %v, floor %v", i, r, f)
			}
		}
		if b := sumBound(p, values, got.Prices); floors == nil && !near(b, want.Value) {
			t.Fatalf("the prices %v prove %v, want %v", got.Prices, b, want.Value)
		}
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("one-sided draws: %v", seen)
	}
}

// Of a few hundred jobs, with every device alike wanted by many (whole numbers: nothing but ties),
// few are split and the prices prove the value.
func TestMaxSumOfMany(t *testing.T) {
	for _, size := range []struct{ jobs, types int }{{300, 2}, {700, 3}, {500, 6}} {
		p := differing(size.jobs, size.types, uint64(size.jobs))
		for i := range p.Jobs {
			for j := range p.Jobs[i].Rates {
				p.Jobs[i].Rates[j] = float64(1 + (i*7+j*5)%4)
			}
		}
		for name, floors := range map[string][]float64{"no floors": nil, "floors": constant(size.jobs, 0.1)} {
			var s optim.SharesSolver
			got, err := s.MaxSum(context.Background(), p, rates(p), floors)
			if err != nil || !got.Feasible {
				t.Fatal(err, got.Feasible)
			}
			split := 0
			for _, x := range got.Shares {
				whole := 0.0
				for _, v := range x {
					whole = max(whole, v)
				}
				if floors == nil && whole > 1e-9 && whole < 1-1e-9 {
					split++
				}
			}
			if split > size.types || got.Bound-got.Value > 1e-9*got.Bound || p.Excess(got.Shares) > 1e-9 {
				t.Errorf("%d jobs, %s: %d split, value %v, bound %v, excess %v", size.jobs, name, split, got.Value, got.Bound,
					p.Excess(got.Shares))
			}
		}
	}
}

func constant(n int, v float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

func TestMaxSumRefuses(t *testing.T) {
	var s optim.SharesSolver
	p := optim.Polytope{Capacity: []float64{1}, Jobs: []optim.ShareJob{{Devices: 1, Rates: []float64{1}}}}
	_, err := s.MaxSum(context.Background(), p, [][]float64{{math.NaN(), 1}, nil}, []float64{-1})
	want := `optim: floor of job 0 is -1, want 0 or 1e-50 to 1e50
optim: 2 rows of values, want one for each of 1 jobs
optim: job 0 has 2 values, want one for each of 1 types
optim: value of job 0 on type 0 is NaN, want 0 or 1e-50 to 1e50 or its negative
optim: job 1 has 0 values, want one for each of 1 types`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
