package optim_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/optim"
)

// drawPolytope draws a polytope that is tight now and then: whole numbers for ties, jobs that cannot run on some types
// or on any, types without devices, and rows of several members.
func drawPolytope(t *rapid.T, jobs, types int) optim.Polytope {
	rate := rapid.Map(rapid.IntRange(0, 4), func(v int) float64 { return float64(v) })
	if rapid.Bool().Draw(t, "smooth") {
		rate = rapid.Map(rapid.IntRange(0, 500), func(v int) float64 { return float64(v) / 97 })
	}
	p := optim.Polytope{
		Capacity: rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 6), func(v int) float64 { return float64(v) }), types, types).Draw(t, "capacity"),
		Jobs:     make([]optim.ShareJob, jobs),
	}
	for i := range p.Jobs {
		p.Jobs[i] = optim.ShareJob{
			Devices: float64(int(1) << rapid.IntRange(0, 2).Draw(t, "devices")),
			Rates:   rapid.SliceOfN(rate, types, types).Draw(t, "rates"),
			Count:   rapid.IntRange(0, 3).Draw(t, "count"),
		}
	}
	return p
}

// perJob draws a value for each job.
func perJob(t *rapid.T, label string, jobs, most int) []float64 {
	return rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 97*most), func(v int) float64 { return float64(v) / 97 }), jobs, jobs).Draw(t, label)
}

// program writes a polytope out as a linear program: a variable for each row and type (n×types of
// them), then as many further ones as asked for.
func program(p optim.Polytope, further int) optim.LinearProgram {
	types := len(p.Capacity)
	width := len(p.Jobs)*types + further
	lp := optim.LinearProgram{Objective: make([]float64, width)}
	for j, w := range p.Capacity {
		row := optim.Row{Coefficients: make([]float64, width), Bound: w}
		for i, job := range p.Jobs {
			row.Coefficients[i*types+j] = float64(max(job.Count, 1)) * job.Devices
		}
		lp.Rows = append(lp.Rows, row)
	}
	for i, job := range p.Jobs {
		row := optim.Row{Coefficients: make([]float64, width), Bound: 1}
		for j := range types {
			if job.Rates[j] > 0 { // elsewhere its share is of no use, and 0 in an answer
				row.Coefficients[i*types+j] = 1
			}
		}
		lp.Rows = append(lp.Rows, row)
	}
	return lp
}

// reach adds to a program of a polytope that a job's rate is at least floor + slope times the last variable.
func reach(lp *optim.LinearProgram, p optim.Polytope, i int, floor, slope float64) {
	row := optim.Row{Coefficients: make([]float64, len(lp.Objective)), Relation: optim.AtLeast, Bound: floor}
	copy(row.Coefficients[i*len(p.Capacity):], p.Jobs[i].Rates)
	row.Coefficients[len(row.Coefficients)-1] -= slope
	lp.Rows = append(lp.Rows, row)
}

func TestGroup(t *testing.T) {
	p := optim.Polytope{
		Capacity: []float64{4, 4},
		Jobs: []optim.ShareJob{
			{Devices: 1, Rates: []float64{1, 2}},
			{Devices: 2, Rates: []float64{1, 2}},
			{Devices: 1, Rates: []float64{1, 2}, Count: 3},
			{Devices: 1, Rates: []float64{1, 3}},
			{Devices: 1, Rates: []float64{1, 2}},
		},
	}
	floors := []float64{0, 0, math.Copysign(0, -1), 0, 1}
	got, groups := p.Group(floors)
	want := optim.Polytope{
		Capacity: []float64{4, 4},
		Jobs: []optim.ShareJob{
			{Devices: 1, Rates: []float64{1, 2}, Count: 4},
			{Devices: 2, Rates: []float64{1, 2}, Count: 1},
			{Devices: 1, Rates: []float64{1, 3}, Count: 1},
			{Devices: 1, Rates: []float64{1, 2}, Count: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(optim.Groups{Of: []int{0, 1, 0, 2, 3}, Members: [][]int{{0, 2}, {1}, {3}, {4}}}, groups); diff != "" {
		t.Errorf("groups (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]float64{0, 0, 0, 1}, groups.Pick(floors)); diff != "" {
		t.Errorf("floors (-want +got)\n%s", diff)
	}
	spread := groups.Spread([][]float64{{0}, {1}, {2}, {3}})
	if diff := cmp.Diff([][]float64{{0}, {1}, {0}, {2}, {3}}, spread); diff != "" {
		t.Errorf("spread (-want +got)\n%s", diff)
	}
}

// The cost of a demand is that of the cheapest shares, by a linear program.
func TestCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, 1, rapid.IntRange(1, 4).Draw(t, "types"))
		types := len(p.Capacity)
		demand, prices := perJob(t, "demand", 1, 3), perJob(t, "price", types, 3)
		lp := program(p, 1)
		lp.Rows = lp.Rows[types:] // prices stand for the capacities
		for j, w := range p.Capacity {
			lp.Objective[j] = -prices[j] * p.Jobs[0].Devices
			if w == 0 {
				lp.Rows = append(lp.Rows, optim.Row{Coefficients: make([]float64, types+1)})
				lp.Rows[len(lp.Rows)-1].Coefficients[j] = 1
			}
		}
		reach(&lp, p, 0, demand[0], 0)
		want := math.Inf(1)
		if s := solveLinear(t, lp); s.Outcome == optim.Optimal {
			want = -s.Value * float64(max(p.Jobs[0].Count, 1))
		}
		if got := p.Cost(prices, demand); got != want && math.Abs(got-want) > 1e-8*(1+want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestExcess(t *testing.T) {
	p := optim.Polytope{
		Capacity: []float64{2, 4},
		Jobs:     []optim.ShareJob{{Devices: 2, Rates: []float64{1, 2}, Count: 2}, {Devices: 1, Rates: []float64{0, 1}}},
	}
	tests := map[string]struct {
		shares [][]float64
		want   float64
	}{
		"inside":         {[][]float64{{0.5, 0.5}, {0, 1}}, 0},
		"overload":       {[][]float64{{0.75, 0.25}, {0, 1}}, 0.5},
		"too much time":  {[][]float64{{0.5, 0.75}, {0, 1}}, 0.25},
		"negative":       {[][]float64{{0.5, -0.125}, {0, 1}}, 0.125},
		"cannot run":     {[][]float64{{0, 0}, {0.25, 0}}, 0.25},
		"missing row":    {[][]float64{{0, 0}}, math.Inf(1)},
		"missing column": {[][]float64{{0}, {0, 0}}, math.Inf(1)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := p.Excess(tc.shares); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
