package optim_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/optim"
)

// solveLinear solves a program that is sound.
func solveLinear(t *rapid.T, p optim.LinearProgram) optim.LinearSolution {
	t.Helper()
	s, err := optim.SolveLinear(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// maxMinProgram is the linear program of a max-min.
func maxMinProgram(p optim.Polytope, level optim.Level) optim.LinearProgram {
	lp := program(p, 1)
	lp.Objective[len(lp.Objective)-1] = 1
	for i := range p.Jobs {
		reach(&lp, p, i, at(level.Floor, i, 0), at(level.Slope, i, 1))
	}
	return lp
}

// at is a value of a list that may be left out.
func at(list []float64, i int, otherwise float64) float64 {
	if list == nil {
		return otherwise
	}
	return list[i]
}

// drawLevel draws targets, with ties and jobs outside the minimum.
func drawLevel(t *rapid.T, jobs int) optim.Level {
	var level optim.Level
	if rapid.Bool().Draw(t, "floors") {
		level.Floor = perJob(t, "floor", jobs, 1)
		for i := range level.Floor {
			level.Floor[i] /= 4
		}
	}
	if rapid.Bool().Draw(t, "slopes") {
		level.Slope = perJob(t, "slope", jobs, 2)
		for i, keep := range rapid.SliceOfN(rapid.Bool(), jobs, jobs).Draw(t, "inside") {
			if !keep {
				level.Slope[i] = 0
			}
		}
	}
	return level
}

// checkMaxMin checks an answer by its own certificates: the shares lie inside and reach the
// level, the prices prove that no more can be had.
func checkMaxMin(t *rapid.T, p optim.Polytope, level optim.Level, r optim.MaxMinResult) {
	t.Helper()
	demand := func(to float64) []float64 {
		d := make([]float64, len(p.Jobs))
		for i := range d {
			d[i] = at(level.Floor, i, 0)
			if s := at(level.Slope, i, 1); s > 0 {
				d[i] += s * to
			}
		}
		return d
	}
	budget := p.Budget(r.Prices)
	if !r.Feasible {
		if r.Short < 0 && p.Cost(r.Prices, demand(0)) <= budget {
			t.Fatalf("nothing proves that there is no division: cost %v, budget %v", p.Cost(r.Prices, demand(0)), budget)
		}
		if r.Short >= 0 && best(p, r.Short) >= demand(0)[r.Short] {
			t.Fatalf("job %d can meet its floor", r.Short)
		}
		return
	}
	if e := p.Excess(r.Shares); e > 1e-9 {
		t.Fatalf("the shares lie %v outside", e)
	}
	for i, want := range demand(r.Level) {
		if got := p.Rate(i, r.Shares[i]); got < want-1e-9*(1+want) {
			t.Fatalf("job %d has a rate of %v, want %v", i, got, want)
		}
	}
	if math.IsInf(r.Level, 1) {
		return
	}
	if r.Level < r.Bound-1e-8*(1+r.Bound) || r.Level > r.Bound+1e-8*(1+r.Bound) {
		t.Fatalf("level %v, bound %v", r.Level, r.Bound)
	}
	above := demand(r.Bound + 1e-7*(1+r.Bound))
	if r.Short >= 0 {
		if most := best(p, r.Short); most >= above[r.Short] {
			t.Fatalf("job %d can go faster, at %v", r.Short, most)
		}
	} else if cost := p.Cost(r.Prices, above); cost < budget {
		t.Fatalf("the prices do not prove the bound: cost %v, budget %v", cost, budget)
	}
}

// best is the rate of a job that has a type for itself.
func best(p optim.Polytope, i int) float64 {
	var most float64
	for j, a := range p.Jobs[i].Rates {
		if p.Capacity[j] > 0 {
			most = max(most, a)
		}
	}
	return most
}

// Max-min is the optimum of the linear program, with and without floors, and proves it.
func TestMaxMinAgainstLinear(t *testing.T) {
	var s optim.SharesSolver
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, rapid.IntRange(1, 7).Draw(t, "jobs"), rapid.IntRange(1, 4).Draw(t, "types"))
		level := drawLevel(t, len(p.Jobs))
		got, err := s.MaxMin(context.Background(), p, level)
		if err != nil {
			t.Fatal(err)
		}
		checkMaxMin(t, p, level, got)
		switch want := solveLinear(t, maxMinProgram(p, level)); want.Outcome {
		case optim.Infeasible:
			if got.Feasible {
				t.Fatalf("got level %v, want infeasible", got.Level)
			}
		case optim.Unbounded:
			if !got.Feasible || !math.IsInf(got.Level, 1) {
				t.Fatalf("got level %v, want an infinite one", got.Level)
			}
		case optim.Optimal:
			if !got.Feasible || math.Abs(got.Level-want.Value) > 1e-7*(1+want.Value) {
				t.Fatalf("got level %v (feasible: %v), want %v", got.Level, got.Feasible, want.Value)
			}
		}
	})
}

// All others need the second type, so that the prices make it cost everything, and then the floor of one job costs the budget up
// to rounding: a quarter of its time there. For the rest it needs three devices of the first type; where there are fewer, only
// other prices prove that there is no division.
func TestMaxMinOfFloorsThatCostTheBudget(t *testing.T) {
	cases := map[string]struct {
		first float64 // devices of the first type
		want  bool
	}{
		"more than enough": {4, true},
		"just enough":      {3, true},
		"too few":          {2, false},
		"none":             {0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := optim.Polytope{Capacity: []float64{tc.first, 1}, Jobs: make([]optim.ShareJob, 7)}
			for i := range p.Jobs {
				p.Jobs[i] = optim.ShareJob{Devices: 1, Rates: []float64{0, 1. / 97}}
			}
			p.Jobs[4] = optim.ShareJob{Devices: 2, Rates: []float64{3. / 97, 46. / 97}, Count: 2}
			level := optim.Level{Floor: []float64{4: 55. / 97 / 4, 6: 0}}
			var s optim.SharesSolver
			got, err := s.MaxMin(context.Background(), p, level)
			if err != nil {
				t.Fatal(err)
			}
			if got.Feasible != tc.want {
				t.Fatalf("feasible: got %v, want %v", got.Feasible, tc.want)
			}
			rapid.Check(t, func(t *rapid.T) { checkMaxMin(t, p, level, got) })
		})
	}
}

// Up to 30 jobs, gonum's simplex finds the same level.
func TestMaxMinAgainstGonum(t *testing.T) {
	var s optim.SharesSolver
	agreed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := differing(rapid.IntRange(2, 30).Draw(t, "jobs"), rapid.IntRange(1, 3).Draw(t, "types"), rapid.Uint64().Draw(t, "seed"))
		want, err := gonumValue(maxMinProgram(p, optim.Level{}))
		if err != nil {
			return
		}
		agreed++
		if got, err := s.MaxMin(context.Background(), p, optim.Level{}); err != nil || math.Abs(got.Level-want) > 1e-6*want {
			t.Fatalf("got %v (%v), gonum %v", got.Level, err, want)
		}
	})
	if agreed == 0 {
		t.Error("gonum solved none")
	}
}

// riseOf is by how much a job can rise, by a linear program, when all give up a part of what they have at a level.
func riseOf(t *rapid.T, p optim.Polytope, level optim.Level, reached float64, job int, part float64) float64 {
	lp := program(p, 1)
	lp.Objective[len(lp.Objective)-1] = 1
	for k := range p.Jobs {
		rise := 0.0
		if k == job {
			rise = 1
		}
		reach(&lp, p, k, (at(level.Floor, k, 0)+at(level.Slope, k, 1)*reached)*(1-part), rise)
	}
	s := solveLinear(t, lp)
	if s.Outcome != optim.Optimal {
		return 0
	}
	return s.Value
}

// A bottleneck cannot rise while the others keep their targets, and some job with a slope always is one.
func TestBottlenecks(t *testing.T) {
	var s optim.SharesSolver
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, rapid.IntRange(1, 6).Draw(t, "jobs"), rapid.IntRange(1, 3).Draw(t, "types"))
		level := drawLevel(t, len(p.Jobs))
		r, err := s.MaxMin(context.Background(), p, level)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Feasible || math.IsInf(r.Level, 1) {
			return
		}
		some := false
		for i, stuck := range r.Bottleneck {
			some = some || stuck && at(level.Slope, i, 1) > 0
			if !stuck {
				continue
			}
			// What others give up for rounding alone buys a rise where devices are cheap, and more buys more.
			if rise := riseOf(t, p, level, r.Level, i, 1e-10); rise > 1e-5*best(p, i) && riseOf(t, p, level, r.Level, i, 1e-8) < 10*rise {
				t.Fatalf("job %d is called a bottleneck and can rise by %v", i, rise)
			}
		}
		if !some {
			t.Fatal("no bottleneck")
		}
	})
}

// A demand is met, or the prices prove that it cannot be.
func TestFeasible(t *testing.T) {
	var s optim.SharesSolver
	seen := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, rapid.IntRange(1, 7).Draw(t, "jobs"), rapid.IntRange(1, 4).Draw(t, "types"))
		demand := perJob(t, "demand", len(p.Jobs), 1)
		got, err := s.Feasible(context.Background(), p, demand)
		if err != nil {
			t.Fatal(err)
		}
		seen[got.Feasible]++
		level := optim.Level{Floor: demand, Slope: make([]float64, len(p.Jobs))}
		checkMaxMin(t, p, level, optim.MaxMinResult{
			Feasible: got.Feasible, Shares: got.Shares, Level: math.Inf(1), Prices: got.Prices, Short: got.Short,
		})
		if want := solveLinear(t, maxMinProgram(p, level)); got.Feasible != (want.Outcome != optim.Infeasible) {
			t.Fatalf("feasible: got %v, the linear program is %v", got.Feasible, want.Outcome)
		}
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("one-sided draws: %v", seen)
	}
}

// Rows of several members stand for as many jobs.
func TestMaxMinOfClasses(t *testing.T) {
	var s optim.SharesSolver
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(1, 3).Draw(t, "types"))
		whole := optim.Polytope{Capacity: p.Capacity}
		for _, job := range p.Jobs {
			for range max(job.Count, 1) {
				whole.Jobs = append(whole.Jobs, optim.ShareJob{Devices: job.Devices, Rates: job.Rates})
			}
		}
		each, err := s.MaxMin(context.Background(), whole, optim.Level{})
		if err != nil {
			t.Fatal(err)
		}
		rows, groups := whole.Group()
		classes, err := s.MaxMin(context.Background(), rows, optim.Level{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(each.Level-classes.Level) > 1e-9*(1+each.Level) {
			t.Fatalf("level %v for jobs, %v for classes", each.Level, classes.Level)
		}
		classes.Shares = groups.Spread(classes.Shares)
		if classes.Short >= 0 {
			classes.Short = groups.Members[classes.Short][0]
		}
		checkMaxMin(t, whole, optim.Level{}, classes)
	})
}

// The order of jobs changes nothing but the order of the answer, up to ties.
func TestMaxMinPermuted(t *testing.T) {
	var s optim.SharesSolver
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolytope(t, rapid.IntRange(1, 80).Draw(t, "jobs"), rapid.IntRange(1, 3).Draw(t, "types"))
		order := rapid.Permutation(indices(len(p.Jobs))).Draw(t, "order")
		q := optim.Polytope{Capacity: p.Capacity, Jobs: make([]optim.ShareJob, len(p.Jobs))}
		for to, from := range order {
			q.Jobs[to] = p.Jobs[from]
		}
		a, errA := s.MaxMin(context.Background(), p, optim.Level{})
		b, errB := s.MaxMin(context.Background(), q, optim.Level{})
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		checkMaxMin(t, p, optim.Level{}, a)
		checkMaxMin(t, q, optim.Level{}, b)
		if math.Abs(a.Level-b.Level) > 1e-9*(1+a.Level) {
			t.Fatalf("level %v, permuted %v", a.Level, b.Level)
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// A few hundred jobs, where samples guess the first prices: certificates, few split jobs, and the same
// bytes again whatever the solver did before.
func TestMaxMinOfMany(t *testing.T) {
	var used optim.SharesSolver
	for _, size := range []struct{ jobs, types int }{{300, 2}, {700, 3}, {500, 6}, {400, 8}} {
		p := scarce(differing(size.jobs, size.types, uint64(size.jobs)))
		var fresh optim.SharesSolver
		want, err := fresh.MaxMin(context.Background(), p, optim.Level{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := used.MaxMin(context.Background(), p, optim.Level{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d jobs: a used solver answers otherwise (-fresh +used)\n%s", size.jobs, diff)
		}
		rapid.Check(t, func(t *rapid.T) { checkMaxMin(t, p, optim.Level{}, got) })
		if want.Bound-want.Level > 1e-9*want.Bound || p.Budget(want.Prices) == 0 {
			t.Errorf("%d jobs: level %v, bound %v by prices %v", size.jobs, want.Level, want.Bound, want.Prices)
		}
	}
}

func TestMaxMinCancelled(t *testing.T) {
	gone, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	cancel(why)
	var s optim.SharesSolver
	p := scarce(differing(5000, 3, 1))
	if _, err := s.MaxMin(gone, p, optim.Level{}); !errors.Is(err, why) {
		t.Errorf("max-min: got %v, want %v", err, why)
	}
	if _, err := s.MaxSum(gone, p, rates(p), nil); !errors.Is(err, why) {
		t.Errorf("max-sum: got %v, want %v", err, why)
	}
	if _, err := s.WaterFill(gone, p, nil, nil); !errors.Is(err, why) {
		t.Errorf("water-filling: got %v, want %v", err, why)
	}
}

func TestMaxMinRefuses(t *testing.T) {
	p := optim.Polytope{
		Capacity: []float64{-1, math.NaN()},
		Jobs:     []optim.ShareJob{{Devices: 0, Rates: []float64{1}, Count: -2}, {Devices: 1, Rates: []float64{-1, math.Inf(1)}}},
	}
	var s optim.SharesSolver
	_, err := s.MaxMin(context.Background(), p, optim.Level{Floor: []float64{1}, Slope: []float64{-1, 1e-200}})
	want := `optim: capacity of type 0 is -1, want 0 or 1e-50 to 1e50
optim: capacity of type 1 is NaN, want 0 or 1e-50 to 1e50
optim: devices of job 0 are 0, want 1e-50 to 1e50
optim: count of job 0 is -2, want >= 0
optim: job 0 has 1 rates, want one for each of 2 types
optim: rate of job 1 on type 0 is -1, want 0 or 1e-50 to 1e50
optim: rate of job 1 on type 1 is +Inf, want 0 or 1e-50 to 1e50
optim: 1 values of floor, want one for each of 2 jobs
optim: slope of job 0 is -1, want 0 or 1e-50 to 1e50
optim: slope of job 1 is 1e-200, want 0 or 1e-50 to 1e50`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// differing is a polytope of jobs that all differ, with an eighth of the devices that they ask for.
func differing(jobs, types int, seed uint64) optim.Polytope {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := optim.Polytope{Capacity: make([]float64, types), Jobs: make([]optim.ShareJob, jobs)}
	var asked float64
	for i := range p.Jobs {
		p.Jobs[i] = optim.ShareJob{Devices: float64(int(1) << rng.IntN(4)), Rates: make([]float64, types)}
		asked += p.Jobs[i].Devices
		scale := 1 + 9*rng.Float64()
		for j := range p.Jobs[i].Rates {
			p.Jobs[i].Rates[j] = scale * (1 + float64(j)*rng.Float64())
		}
	}
	for j := range p.Capacity {
		p.Capacity[j] = math.Ceil(asked / 8 / float64(types))
	}
	return p
}

// scarce relates the rates of each job to what it gets from an equal share of the cluster, per device: the coefficients
// of Gavel's max-min, under which capacities and not a single job set the level.
func scarce(p optim.Polytope) optim.Polytope {
	var all float64
	for _, w := range p.Capacity {
		all += w
	}
	for _, job := range p.Jobs {
		var equal float64
		for j, a := range job.Rates {
			equal += a * p.Capacity[j] / all
		}
		for j := range job.Rates {
			job.Rates[j] *= job.Devices / equal
		}
	}
	return p
}

// rates are the rates of a polytope as values.
func rates(p optim.Polytope) [][]float64 {
	values := make([][]float64, len(p.Jobs))
	for i, job := range p.Jobs {
		values[i] = job.Rates
	}
	return values
}
