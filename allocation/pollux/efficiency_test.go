package pollux

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// TestEfficientPlansAreWithinTheirGap compares with every seating on two nodes of two devices, when the worth of devices
// is part of the objective. The gap is a part of the fitness, at the efficiency of the plan.
func TestEfficientPlansAreWithinTheirGap(t *testing.T) {
	for _, power := range append([]float64{0.25, 0.5}, powers...) {
		t.Run(fmt.Sprint(power), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawJobs(t, rapid.IntRange(2, 3).Draw(t, "jobs"), 2, 2)
				config := Default
				config.FairnessP, config.EfficiencyWeight = power, rapid.SampledFrom([]float64{0.1, 1, 30}).Draw(t, "weight")
				p := searchWith(t, config, v, candidates)
				optimum := leastOnTwo(p.jobs, [2]int32{int32(p.usable[0]), int32(p.usable[1])}, [2]bool(p.claimed))
				if p.plan.cost < optimum && !near(p.plan.cost, optimum) {
					t.Errorf("plan costs %v, the best of all seatings %v", p.plan.cost, optimum)
				}
				efficiency := p.planEfficiency()
				best, got, gap := p.fitness(optimum+efficiency), p.fitness(p.plan.cost+efficiency), p.GapRatio()
				if !math.IsNaN(gap) && !math.IsNaN(best) && got != best && !(got >= best*(1-gap)-1e-9*math.Abs(best)) {
					t.Errorf("fitness %v, certified to be at most %v below the best, which is %v", got, gap, best)
				}
			})
		})
	}
}

// TestEfficiencyNarrowsJobs shares eight devices among a job that scales and one that hardly does: the more a device is
// worth, the fewer the second gets. What does not count is the unit of either curve.
func TestEfficiencyNarrowsJobs(t *testing.T) {
	scaling, flat := make([]float64, 8), make([]float64, 8)
	for k := range scaling {
		scaling[k], flat[k] = float64(k+1), 1+0.3*float64(k)
	}
	for name, unit := range map[string]float64{"same unit": 1, "other unit": 1e6} {
		t.Run(name, func(t *testing.T) {
			scaled := make([]float64, 8)
			for k := range flat {
				scaled[k] = flat[k] * unit
			}
			var got []int
			for _, weight := range []float64{0, 0.3} {
				v, candidates := busy(t, 8, 2)
				for i, rates := range [][]float64{scaling, scaled} {
					j := candidates[i].Job
					j.State, j.Seats, j.Held = core.Waiting, nil, 0
					candidates[i].Response.MaxReplicas = 8
					candidates[i].Response.Curves[0] = core.Curve{OneNode: rates[:4], ManyNodes: rates}
				}
				p := component(t, New(), map[string]any{"efficiency_weight": weight, "fairness_p": 0.5, "reference": "best", "restart": "horizon"})
				grants, err := p.Allocate(t.Context(), v, candidates)
				if err != nil {
					t.Fatal(err)
				}
				for _, g := range grants {
					if g.Job == 1 {
						got = append(got, g.Replicas)
					}
				}
			}
			if diff := cmp.Diff([]int{2, 1}, got); diff != "" {
				t.Errorf("devices of the job that hardly scales, by weight (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBestRate(t *testing.T) {
	for name, tc := range map[string]struct {
		response core.Response
		want     float64
	}{
		"nothing measured":          {core.Response{MinReplicas: 1, MaxReplicas: 1}, 1},
		"best alone":                {core.Response{Curves: []core.Curve{{OneNode: []float64{5, 8, 9}}}}, 5},
		"best on a node":            {core.Response{Curves: []core.Curve{{OneNode: []float64{5, 12, 15}}}}, 6},
		"beyond a node is not seen": {core.Response{Curves: []core.Curve{{OneNode: []float64{5, 9, 9, 9, 90}}}}, 5},
		"never fits on a node":      {core.Response{MinReplicas: 6, MaxReplicas: 8, Curves: []core.Curve{{ManyNodes: []float64{0, 0, 0, 0, 0, 12, 14, 24}}}}, 2},
		"cannot run":                {core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: []core.Curve{{OneNode: []float64{0}, ManyNodes: []float64{0}}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &allocator{perNode: 4}
			if got := p.bestRate(&tc.response); got != tc.want {
				t.Errorf("%v per device, want %v", got, tc.want)
			}
		})
	}
}
