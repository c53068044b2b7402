package pollux

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// TestOccupancyStaysConsistent repeats decisions on changing gains and compares the books of the occupancy with its rows.
func TestOccupancyStaysConsistent(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			v, candidates := busy(t, 40, 14)
			r := rand.New(rand.NewPCG(seed, 0))
			p := component(t, New(), nil).(*allocator)
			for round := range 10 {
				for i := range candidates {
					candidates[i].Response.Curves[0] = saturating(r, 64)
				}
				if _, err := p.Allocate(t.Context(), v, candidates); err != nil {
					t.Fatal(err)
				}
				checkOccupancy(t, p)
				if gap := p.GapRatio(); !(gap >= 0 && gap <= 0.2) {
					t.Errorf("round %d: gap %v", round, gap)
				}
			}
		})
	}
}

func checkOccupancy(t *testing.T, p *allocator) {
	t.Helper()
	f := &p.search.occupancy
	free, spans := make([]int32, len(p.usable)), make([]int32, len(p.usable))
	for n, devices := range p.usable {
		free[n] = int32(devices)
	}
	// The seating that lost is the occupancy's again once the plan was taken from it, so that the plan is checked.
	for i, row := range p.plan.rows {
		j := &p.jobs[i]
		if k := replicasOf(row); k > j.most || k > 0 && k < j.least {
			t.Errorf("job %d has %d replicas, can use %d to %d", j.id, k, j.least, j.most)
		}
		for at, s := range row {
			if at > 0 && row[at-1].node >= s.node || s.replicas < 1 {
				t.Errorf("job %d has the row %v", j.id, row)
			}
			free[s.node] -= s.replicas
			if len(row) > 1 {
				spans[s.node]++
			}
		}
	}
	for n := range free {
		if free[n] < 0 || spans[n] > 1 {
			t.Errorf("node %d has %d devices free and %d jobs that span nodes", n, free[n], spans[n])
		}
	}
	for n := range f.free {
		if !f.byFree[f.free[n]].has(int32(n)) {
			t.Errorf("node %d with %d devices free is not listed so", n, f.free[n])
		}
	}
	cost := 0.0
	for i := range p.jobs {
		cost += p.jobs[i].costOf(p.plan.rows[i])
	}
	if math.Abs(cost-p.plan.cost) > 1e-9 {
		t.Errorf("plan costs %v, says %v", cost, p.plan.cost)
	}
}

func (s nodeSet) has(n int32) bool { return s[n/64]>>(n%64)&1 == 1 }

// TestCertify tells what is proven from what the numbers leave open.
func TestCertify(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	cases := map[string]struct {
		power, cost, bound float64
		want               float64
	}{
		"best":                        {-1, 2, 2, 0},
		"best but for rounding":       {-1, 2 + 1e-13, 2, 0},
		"half as fit":                 {-1, 4, 2, 0.5},
		"half as fit, of a sum":       {1, -1, -2, 0.5},
		"nothing to gain":             {1, 0, 0, 0},
		"nothing gained":              {1, 0, -2, 1},
		"no cost":                     {-1, nan, 2, nan},
		"no bound":                    {-1, 2, nan, nan},
		"a bound that proves nothing": {1, -2, -inf, nan},
		"both beyond all bounds":      {1, -inf, -inf, nan},
		"fitness underflows":          {0, 4000, 2000, nan},
		"fitness overflows":           {0, -2000, -4000, nan},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &allocator{config: Config{FairnessP: tc.power}, weight: 1}
			p.plan.cost = tc.cost
			p.certify(tc.bound)
			if got := p.GapRatio(); math.Abs(got-tc.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(tc.want) {
				t.Errorf("gap %v, want %v", got, tc.want)
			}
		})
	}
}

// TestExactStays holds the search to what jobs have when nothing is better: two that fill a node each.
func TestExactStays(t *testing.T) {
	v, candidates := busy(t, 8, 2)
	for i := range candidates {
		j := candidates[i].Job
		j.Seats, j.Held = []core.Seat{{Node: core.NodeID(1 - i), Devices: 15}}, 4
		candidates[i].Response.MaxReplicas = 4
	}
	grants, err := component(t, New(), nil).Allocate(t.Context(), v, candidates)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if !core.SameSeats(g.Proposed, v.Jobs[g.Job].Seats) {
			t.Errorf("job %d moves from %v to %v", g.Job, v.Jobs[g.Job].Seats, g.Proposed)
		}
	}
	if len(grants) != 2 {
		t.Errorf("%d jobs stay, want 2", len(grants))
	}
}
