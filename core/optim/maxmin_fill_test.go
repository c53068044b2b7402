package optim_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/optim"
)

func TestWaterFill(t *testing.T) {
	one := func(rates ...float64) optim.ShareJob { return optim.ShareJob{Devices: 1, Rates: rates} }
	tests := map[string]struct {
		polytope optim.Polytope
		floors   []float64
		slopes   func(frozen []bool, slope []float64)
		want     []float64
	}{
		"one type, equal": {
			optim.Polytope{Capacity: []float64{1}, Jobs: []optim.ShareJob{one(1), one(1)}}, nil, nil, []float64{0.5, 0.5},
		},
		"a small job is full, the others share the rest": {
			optim.Polytope{Capacity: []float64{1}, Jobs: []optim.ShareJob{one(0.2), one(1), one(1)}},
			nil, nil,
			// 0.2 t + ... : all rise to 1/7 (5/7 + 1/7 + 1/7 of the devices); nobody can rise alone after that.
			[]float64{1. / 7, 1. / 7, 1. / 7},
		},
		"types apart": {
			optim.Polytope{Capacity: []float64{1, 3}, Jobs: []optim.ShareJob{one(1, 0), one(1, 0), one(0, 1), one(0, 2)}},
			nil, nil,
			[]float64{0.5, 0.5, 1, 2},
		},
		"weights": {
			optim.Polytope{Capacity: []float64{1}, Jobs: []optim.ShareJob{one(1), one(1)}},
			nil,
			func(_ []bool, slope []float64) { slope[0], slope[1] = 3, 1 },
			[]float64{0.75, 0.25},
		},
		"first come, first filled": {
			optim.Polytope{Capacity: []float64{1.5}, Jobs: []optim.ShareJob{one(1), one(1), one(1)}},
			nil,
			func(frozen []bool, slope []float64) {
				clear(slope)
				if first := slices.Index(frozen, false); first >= 0 {
					slope[first] = 1
				}
			},
			[]float64{1, 0.5, 0},
		},
		"floors": {
			optim.Polytope{Capacity: []float64{1}, Jobs: []optim.ShareJob{one(1), one(1)}},
			[]float64{0.6, 0},
			nil,
			[]float64{0.8, 0.2},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var s optim.SharesSolver
			got, err := s.WaterFill(context.Background(), tc.polytope, tc.floors, tc.slopes)
			if err != nil || !got.Feasible {
				t.Fatal(err, got.Feasible)
			}
			if diff := cmp.Diff(tc.want, got.Rates, cmpopts.EquateApprox(0, 1e-8)); diff != "" {
				t.Errorf("rates (-want +got)\n%s", diff)
			}
		})
	}
}

// fillByLinear is water-filling with one linear program for each job and round to find who cannot rise.
func fillByLinear(t *rapid.T, p optim.Polytope) []float64 {
	n := len(p.Jobs)
	rates, frozen := make([]float64, n), make([]bool, n)
	for {
		level := optim.Level{Floor: rates, Slope: make([]float64, n)}
		moving := false
		for i := range frozen {
			if !frozen[i] {
				level.Slope[i], moving = 1, true
			}
		}
		if !moving {
			return rates
		}
		rise := solveLinear(t, maxMinProgram(p, level)).Value
		for i := range rates {
			rates[i] = max(0, (rates[i]+level.Slope[i]*rise)*(1-1e-11))
		}
		for i := range frozen {
			alone := optim.Level{Floor: rates, Slope: make([]float64, n)}
			alone.Slope[i] = 1
			frozen[i] = frozen[i] || solveLinear(t, maxMinProgram(p, alone)).Value < 1e-6
		}
	}
}

// Every job ends where one linear program for each job and round puts it.
func TestWaterFillAgainstLinear(t *testing.T) {
	var s optim.SharesSolver
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, rapid.IntRange(1, 5).Draw(t, "jobs"), rapid.IntRange(1, 3).Draw(t, "types"))
		for i := range p.Jobs { // rates that differ by orders of magnitude leave the program no digits
			for j, a := range p.Jobs[i].Rates {
				p.Jobs[i].Rates[j] = math.Ceil(a)
			}
		}
		got, err := s.WaterFill(context.Background(), p, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fillByLinear(t, p), got.Rates, cmpopts.EquateApprox(0, 1e-5)); diff != "" {
			t.Fatalf("rates (-want +got)\n%s", diff)
		}
		if e := p.Excess(got.Shares); e > 1e-9 {
			t.Fatalf("the shares lie %v outside", e)
		}
		for i, x := range got.Shares {
			if r := p.Rate(i, x); r < got.Rates[i]*(1-1e-9) {
				t.Fatalf("job %d has a rate of %v, promised %v", i, r, got.Rates[i])
			}
		}
	})
}
