package optim_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/optim"
)

// The worst ratio is where bisection with a linear program for each trial puts it.
func TestFinishTimesAgainstBisection(t *testing.T) {
	var s optim.SharesSolver
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "jobs")
		p := drawPolytope(t, n, rapid.IntRange(1, 3).Draw(t, "types"))
		f := optim.Finish{Elapsed: perJob(t, "elapsed", n, 3), Remaining: perJob(t, "remaining", n, 3), Exclusive: perJob(t, "alone", n, 3)}
		possible := true
		for i := range f.Exclusive {
			f.Exclusive[i] += 0.1
			possible = possible && (f.Remaining[i] == 0 || best(p, i) > 0)
		}
		got, err := s.FinishTimes(context.Background(), p, f)
		if err != nil {
			t.Fatal(err)
		}
		if got.Feasible != possible {
			t.Fatalf("feasible: got %v, want %v", got.Feasible, possible)
		}
		if !possible {
			return
		}
		reached := func(rho float64) bool {
			lp := program(p, 1)
			for i := range p.Jobs {
				left := rho*f.Exclusive[i] - f.Elapsed[i]
				if left < 0 || left == 0 && f.Remaining[i] > 0 {
					return false
				}
				if f.Remaining[i] > 0 {
					reach(&lp, p, i, f.Remaining[i]/left, 0)
				}
			}
			return solveLinear(t, lp).Outcome != optim.Infeasible
		}
		low, high := 0.0, 1.0
		for !reached(high) {
			low, high = high, 2*high
		}
		for range 40 {
			if middle := (low + high) / 2; reached(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		if math.Abs(got.Ratio-high) > 1e-5*(1+high) || math.Abs(got.Bound-got.Ratio) > 1e-7*(1+high) {
			t.Fatalf("ratio %v, bound %v, want %v", got.Ratio, got.Bound, high)
		}
		if e := p.Excess(got.Shares); e > 1e-9 {
			t.Fatalf("the shares lie %v outside", e)
		}
	})
}

func TestMakespan(t *testing.T) {
	p := optim.Polytope{
		Capacity: []float64{1, 1},
		Jobs:     []optim.ShareJob{{Devices: 1, Rates: []float64{1, 2}}, {Devices: 1, Rates: []float64{1, 4}}},
	}
	tests := map[string]struct {
		remaining []float64
		want      float64
	}{
		"one on each":  {[]float64{10, 40}, 10},
		"shared":       {[]float64{20, 40}, 100. / 7}, // 0.6 of the slow and 0.4 of the fast for the first: 1.4 and 2.8
		"nothing left": {[]float64{0, 0}, 0},
		"one done":     {[]float64{0, 40}, 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var s optim.SharesSolver
			got, err := s.Makespan(context.Background(), p, tc.remaining)
			if err != nil || !got.Feasible || math.Abs(got.Seconds-tc.want) > 1e-8*tc.want ||
				math.Abs(got.Bound-tc.want) > 1e-8*tc.want {
				t.Errorf("got %+v (%v), want %v", got, err, tc.want)
			}
		})
	}
	p.Jobs = append(p.Jobs, optim.ShareJob{Devices: 1, Rates: []float64{0, 0}})
	var s optim.SharesSolver
	if got, err := s.Makespan(context.Background(), p, []float64{1, 1, 1}); err != nil || got.Feasible || got.Short != 2 {
		t.Errorf("a job that cannot run: got %+v (%v)", got, err)
	}
}
