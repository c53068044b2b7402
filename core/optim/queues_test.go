package optim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawQueues draws a problem of a generator that a benchmark and the tests share.
func drawQueues(rng *rand.Rand, jobs int, machines []int) [][]float64 {
	seconds := make([][]float64, jobs)
	for i := range seconds {
		work := 100 * rng.ExpFloat64()
		for range machines {
			seconds[i] = append(seconds[i], work*(1+9*rng.Float64()))
		}
	}
	return seconds
}

// kindsOfQueues are generators of jobs whose times tie, or have one factor, beside those that do neither.
var kindsOfQueues = map[string]func(rng *rand.Rand, jobs int, machines []int) [][]float64{
	"random": drawQueues,
	"all equal": drawEach(func(*rand.Rand) func(*rand.Rand) float64 {
		return func(*rand.Rand) float64 { return 60 }
	}),
	"integers 1 to 3": drawEach(func(*rand.Rand) func(*rand.Rand) float64 {
		return func(rng *rand.Rand) float64 { return float64(1 + rng.IntN(3)) }
	}),
	"60, 600 or 3600 s on all types": drawEach(func(rng *rand.Rand) func(*rand.Rand) float64 {
		s := []float64{60, 600, 3600}[rng.IntN(3)]
		return func(*rand.Rand) float64 { return s }
	}),
	"a few kinds of jobs": func(rng *rand.Rand, jobs int, machines []int) [][]float64 {
		kinds := drawQueues(rng, 8, machines)
		seconds := make([][]float64, jobs)
		for i := range seconds {
			seconds[i] = kinds[rng.IntN(len(kinds))]
		}
		return seconds
	},
	"one speed per type": drawSpeeds(func(rng *rand.Rand) float64 { return 1 + 9*rng.Float64() },
		func(rng *rand.Rand) float64 { return 100 * rng.ExpFloat64() }),
	"one speed per type, long tail": drawSpeeds(func(rng *rand.Rand) float64 { return 1 + 9*rng.Float64() },
		func(rng *rand.Rand) float64 { return math.Pow(10, 5*rng.Float64()) }),
	"one round speed per type": drawSpeeds(func(rng *rand.Rand) float64 { return float64(int(1) << rng.IntN(4)) },
		func(rng *rand.Rand) float64 { return float64(1 + rng.IntN(100)) }),
}

// drawEach draws the times of a job each on its own, by what a draw gives for the job.
func drawEach(draw func(*rand.Rand) func(*rand.Rand) float64) func(*rand.Rand, int, []int) [][]float64 {
	return func(rng *rand.Rand, jobs int, machines []int) [][]float64 {
		seconds := make([][]float64, jobs)
		for i := range seconds {
			on := draw(rng)
			for range machines {
				seconds[i] = append(seconds[i], on(rng))
			}
		}
		return seconds
	}
}

// drawSpeeds draws jobs of some work, which every type does at a speed of its own.
func drawSpeeds(speed, work func(*rand.Rand) float64) func(*rand.Rand, int, []int) [][]float64 {
	return func(rng *rand.Rand, jobs int, machines []int) [][]float64 {
		speeds := make([]float64, len(machines))
		for t := range speeds {
			speeds[t] = speed(rng)
		}
		return drawEach(func(rng *rand.Rand) func(*rand.Rand) float64 {
			work, t := work(rng), -1
			return func(*rand.Rand) float64 { t++; return work * speeds[t] }
		})(rng, jobs, machines)
	}
}

func BenchmarkQueues(b *testing.B) {
	for _, tc := range []struct {
		kind       string
		jobs, free int
	}{
		{"random", 200, 2},
		{"random", 2000, 2},
		{"random", 2000, 1},
		{"random", 2000, 20},
		{"random", 2000, 200},
		{"all equal", 2000, 2},
		{"integers 1 to 3", 2000, 2},
		{"60, 600 or 3600 s on all types", 2000, 2},
		{"a few kinds of jobs", 2000, 2},
		{"one speed per type", 2000, 2},
		{"one speed per type, long tail", 2000, 2},
		{"one round speed per type", 2000, 2},
		{"one speed per type", 2000, 1},
		{"one speed per type", 2000, 20},
	} {
		b.Run(fmt.Sprintf("%s, %d jobs, %d free", tc.kind, tc.jobs, tc.free), func(b *testing.B) {
			machines := slices.Repeat([]int{tc.free}, 6)
			seconds := kindsOfQueues[tc.kind](rand.New(rand.NewPCG(1, 1)), tc.jobs, machines)
			var q Queues
			for b.Loop() {
				if _, err := q.Solve(b.Context(), seconds, machines); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// leastQueues is the assignment of jobs to ranks, as a transport problem.
func leastQueues(t interface{ Fatal(...any) }, seconds [][]float64, machines []int) float64 {
	var room []int
	costs := make([][]float64, len(seconds))
	for on, n := range machines {
		if n == 0 {
			continue
		}
		for k := range (len(seconds) + n - 1) / n {
			room = append(room, n)
			for i, row := range seconds {
				costs[i] = append(costs[i], float64(k+1)*row[on])
			}
		}
	}
	plan, err := new(Transport).Solve(context.Background(), costs, slices.Repeat([]int{1}, len(seconds)), room)
	if err != nil {
		t.Fatal(err)
	}
	return plan.Cost
}

// checkQueued holds what any answer must: each job once, sorted, the cost that of the order, and prices that prove it.
func checkQueued(t interface{ Errorf(string, ...any) }, seconds [][]float64, machines []int, got Queued) {
	times, cost := make([]int, len(seconds)), 0.0
	bound := 0.0
	for on, order := range got.Order {
		for at, i := range order {
			times[i]++
			cost += float64((len(order)-1-at)/machines[on]+1) * seconds[i][on]
			if at > 0 && seconds[order[at-1]][on] > seconds[i][on] {
				t.Errorf("job %d before the shorter job %d", order[at-1], i)
			}
		}
		for k, price := range got.Prices[on] {
			bound -= price * float64(machines[on])
			if price < 0 || k*machines[on]+machines[on] > len(order) && price != 0 {
				t.Errorf("price %v of rank %d of type %d with %d jobs", price, k+1, on, len(order))
			}
		}
	}
	for i, row := range seconds {
		if times[i] != 1 {
			t.Errorf("job %d stands in %d places", i, times[i])
		}
		least := math.Inf(1)
		for on, prices := range got.Prices {
			for k, price := range prices {
				least = min(least, float64(k+1)*row[on]+price)
			}
		}
		bound += least
	}
	if math.Abs(cost-got.Cost) > 1e-9*cost {
		t.Errorf("cost %v, want %v of the order", got.Cost, cost)
	}
	if bound < cost*(1-1e-9) || bound > cost*(1+1e-9) {
		t.Errorf("prices prove %v of cost %v", bound, cost)
	}
}

func TestQueuesOfLeastCost(t *testing.T) {
	var q Queues
	rapid.Check(t, func(t *rapid.T) {
		machines := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 4).Draw(t, "machines")
		machines[0]++
		seconds := rapid.SliceOfN(rapid.SliceOfN(rapid.OneOf(
			rapid.Float64Range(0, 100), rapid.SampledFrom([]float64{0, 1, 2, 3, 1e12}),
		), len(machines), len(machines)), 0, 24).Draw(t, "seconds")
		got, err := q.Solve(context.Background(), seconds, machines)
		if err != nil {
			t.Fatal(err)
		}
		checkQueued(t, seconds, machines, got)
		if want := leastQueues(t, seconds, machines); math.Abs(got.Cost-want) > 1e-9*want {
			t.Errorf("cost %v, want %v", got.Cost, want)
		}
	})
}

// Two hundred larger instances of each kind, as decisions have them.
func TestQueuesOfLeastCostAtSize(t *testing.T) {
	for name, draw := range kindsOfQueues {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var q Queues
			for seed := range uint64(200) {
				rng := rand.New(rand.NewPCG(seed, 7))
				machines := make([]int, 1+rng.IntN(6))
				for k := range machines {
					machines[k] = rng.IntN(4)
				}
				machines[rng.IntN(len(machines))] = 1 + rng.IntN(3)
				seconds := draw(rng, 1+rng.IntN(80), machines)
				got, err := q.Solve(t.Context(), seconds, machines)
				if err != nil {
					t.Fatal(err)
				}
				checkQueued(t, seconds, machines, got)
				if want := leastQueues(t, seconds, machines); math.Abs(got.Cost-want) > 1e-9*want {
					t.Errorf("seed %d: cost %v, want %v", seed, got.Cost, want)
				}
			}
		})
	}
}

func TestQueuesByHand(t *testing.T) {
	cases := map[string]struct {
		seconds  [][]float64
		machines []int
		want     [][]int
	}{
		"nothing":                     {nil, []int{1}, [][]int{nil}},
		"nothing for none":            {nil, nil, [][]int{}},
		"the shortest first":          {[][]float64{{3}, {1}, {2}}, []int{1}, [][]int{{1, 2, 0}}},
		"equal ones in their order":   {[][]float64{{1}, {1}, {1}}, []int{1}, [][]int{{0, 1, 2}}},
		"the other machine is slower": {[][]float64{{1, 9}, {1, 9}}, []int{1, 1}, [][]int{{0, 1}, nil}},
		"and worth it":                {[][]float64{{2, 3}, {2, 9}}, []int{1, 1}, [][]int{{1}, {0}}},
		"a type without machines":     {[][]float64{{9, 1}, {3, 1}}, []int{1, 0}, [][]int{{1, 0}, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := new(Queues).Solve(t.Context(), tc.seconds, tc.machines)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Order); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueuesRefuse(t *testing.T) {
	cases := map[string]struct {
		seconds  [][]float64
		machines []int
	}{
		"no machine":       {[][]float64{{1}}, []int{0}},
		"fewer than none":  {nil, []int{-1}},
		"a missing length": {[][]float64{{1}}, []int{1, 1}},
		"a length of -1":   {[][]float64{{-1}}, []int{1}},
		"no number":        {[][]float64{{math.NaN()}}, []int{1}},
		"never":            {[][]float64{{math.Inf(1)}}, []int{1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := new(Queues).Solve(t.Context(), tc.seconds, tc.machines); err == nil {
				t.Error("no error")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(Queues).Solve(ctx, [][]float64{{1}}, []int{1}); err == nil {
		t.Error("no error for a context that ended")
	}
}
