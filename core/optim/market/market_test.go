package market

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawInstance draws jobs that may not run everywhere, may need several workers and take few.
func drawInstance(t *rapid.T, jobs, types, each int) instance {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	in := instance{workers: Workers{SlowestLink: float64(rng.IntN(3)) * 1e8}}
	for range 1 + rng.IntN(types) {
		in.workers.Count = append(in.workers.Count, rng.IntN(each+1))
	}
	for range 1 + rng.IntN(jobs) {
		job := Job{Iterations: float64(rng.IntN(500)), Batch: float64(1 + rng.IntN(64)), ModelBytes: 1e7 * rng.ExpFloat64(), Least: rng.IntN(3)}
		if rng.IntN(2) == 0 {
			job.Most = 1 + job.Least + rng.IntN(3)
		}
		for range in.workers.Count {
			job.Rates = append(job.Rates, max(0, math.Round(100*rng.Float64())-20))
		}
		if rng.IntN(2) == 0 {
			job.MoveSeconds = float64(rng.IntN(200))
			for _, count := range in.workers.Count {
				job.Held = append(job.Held, rng.IntN(count+1))
			}
		}
		in.jobs = append(in.jobs, job)
	}
	return in
}

// moves is what it costs a job to hold other workers than it did.
func moves(j *Job, held []int) float64 {
	if j.Held == nil || slices.Equal(j.Held, held) {
		return 0
	}
	return j.MoveSeconds
}

// leastMean tries every assignment in which the same jobs hold workers.
func leastMean(in instance, placed []bool) float64 {
	left := slices.Clone(in.workers.Count)
	var job func(i int) float64
	job = func(i int) float64 {
		if i == len(in.jobs) {
			return 0
		}
		if !placed[i] {
			return job(i + 1)
		}
		least := math.Inf(1)
		j := in.jobs[i]
		var take func(k, size int, speed float64)
		held := make([]int, len(left))
		take = func(k, size int, speed float64) {
			if k == len(left) {
				if size == 0 || size < j.Least || j.Most > 0 && size > j.Most {
					return
				}
				wire := 0.0
				if in.workers.SlowestLink > 0 {
					wire = 2 * float64(size-1) * j.ModelBytes / (in.workers.SlowestLink * float64(size))
				}
				least = math.Min(least, j.Iterations*(j.Batch/speed+wire)+moves(&j, held)+job(i+1))
				return
			}
			most := left[k]
			if j.Rates[k] == 0 {
				most = 0
			}
			for n := range most + 1 {
				left[k] -= n
				held[k] = n
				take(k+1, size+n, speed+float64(n)*j.Rates[k])
				left[k] += n
			}
		}
		take(0, 0, 0)
		return least
	}
	sum, n := job(0), 0
	for _, yes := range placed {
		if yes {
			n++
		}
	}
	return sum / float64(n)
}

// The optimum is what trying everything finds, and no other assignment is better.
func TestOptimumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 3, 3, 3)
		best, err := Optimum(context.Background(), in.jobs, in.workers)
		if errors.Is(err, ErrNoRoom) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkAssignment(t, in, best)
		placed, sizes := make([]bool, len(in.jobs)), make([]int, len(in.jobs))
		for i, row := range best.Counts {
			for _, n := range row {
				sizes[i] += n
			}
			placed[i] = sizes[i] > 0
		}
		if want := leastMean(in, placed); math.Abs(best.Mean-want) > 1e-9*want {
			t.Errorf("mean %v, want %v", best.Mean, want)
		}
		for _, matcher := range []Matcher{Transport, Auction} {
			got, err := Place(context.Background(), in.jobs, in.workers, Options{Matcher: matcher}, rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				t.Fatal(err)
			}
			checkAssignment(t, in, got)
			if got.Mean < best.Mean*(1-1e-9) {
				t.Errorf("mean %v by %s, below the optimum %v", got.Mean, matcher, best.Mean)
			}
			for i := range in.jobs {
				if math.IsInf(got.Seconds[i], 1) == placed[i] {
					t.Errorf("job %d needs %v s, placed by the optimum: %v", i, got.Seconds[i], placed[i])
				}
			}
			matched, err := Match(context.Background(), in.jobs, in.workers, sizes, Options{Matcher: matcher})
			if err != nil {
				t.Fatal(err)
			}
			checkAssignment(t, in, matched)
			if matched.Mean < best.Mean*(1-1e-9) || matched.Bound > best.Mean*(1+1e-9) {
				t.Errorf("the optimum's sizes have mean %v and bound %v around %v", matched.Mean, matched.Bound, best.Mean)
			}
		}
	})
}

// One worker more never makes the optimum worse: it may idle.
func TestOptimumFallsWithWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstance(t, 4, 3, 4)
		before, err := Optimum(context.Background(), in.jobs, in.workers)
		if err != nil {
			return
		}
		for _, seconds := range before.Seconds {
			if math.IsInf(seconds, 1) {
				return // with more room another job would be placed
			}
		}
		in.workers.Count[rapid.IntRange(0, len(in.workers.Count)-1).Draw(t, "type")]++
		after, err := Optimum(context.Background(), in.jobs, in.workers)
		if err != nil {
			t.Fatal(err)
		}
		if after.Mean > before.Mean*(1+1e-9) {
			t.Errorf("mean %v, %v with a worker more", before.Mean, after.Mean)
		}
	})
}

// The same seed gives the same assignment, in whatever order the jobs come.
func TestPlaceRepeats(t *testing.T) {
	for name, generate := range generators {
		in := generate(rand.New(rand.NewPCG(7, 7)))
		first, err := Place(t.Context(), in.jobs, in.workers, Options{}, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(in.jobs)
		second, err := Place(t.Context(), in.jobs, in.workers, Options{}, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(second.Counts)
		for i := range first.Counts {
			if !slices.Equal(first.Counts[i], second.Counts[i]) {
				t.Errorf("%s: job %d holds %v, and %v in reverse", name, i, first.Counts[i], second.Counts[i])
			}
		}
	}
}

// Weighing fairness buys a better index, at a mean that is no better.
func TestFairness(t *testing.T) {
	for name, generate := range generators {
		var jains, means [2]float64
		for seed := range uint64(30) {
			in := generate(rand.New(rand.NewPCG(seed, 300)))
			for k, fairness := range []float64{0, 0.8} {
				got, err := Place(t.Context(), in.jobs, in.workers, Options{Fairness: fairness}, rand.New(rand.NewPCG(seed, 301)))
				if err != nil {
					t.Fatal(err)
				}
				checkAssignment(t, in, got)
				jains[k] += got.Jain / 30
				means[k] += got.Score / 30
				if k == 1 {
					means[1] += (1 - got.Jain) * -fairness / 30 // what is left is (1-fairness) of the mean
				}
			}
		}
		means[1] /= 1 - 0.8
		t.Logf("%s: mean %.3f of equal sizes at Jain %.3f; %.3f at %.3f with fairness 0.8", name, means[0], jains[0], means[1], jains[1])
		if jains[1] < jains[0]+0.01 || means[1] < means[0] {
			t.Errorf("%s: Jain %v and mean %v, with fairness %v and %v", name, jains[0], means[0], jains[1], means[1])
		}
	}
}

func TestPlaceByHand(t *testing.T) {
	cases := map[string]struct {
		in   instance
		want [][]int
	}{
		"each to its own type": {
			instance{[]Job{{Iterations: 1, Batch: 1, Rates: []float64{1, 9}}, {Iterations: 1, Batch: 1, Rates: []float64{9, 1}}}, Workers{Count: []int{1, 1}}},
			[][]int{{0, 1}, {1, 0}},
		},
		"a worker idles where talking costs more": {
			instance{[]Job{{Iterations: 1, Batch: 4, ModelBytes: 100, Rates: []float64{1}}}, Workers{Count: []int{2}, SlowestLink: 1}},
			[][]int{{1}},
		},
		"the longest waits": {
			instance{[]Job{{Iterations: 9, Batch: 1, Rates: []float64{1}}, {Iterations: 1, Batch: 1, Rates: []float64{1}}}, Workers{Count: []int{1}}},
			[][]int{{0}, {1}},
		},
		// The first in the queue would like type 0 best, which is all the other can use.
		"who can go elsewhere makes room": {
			instance{[]Job{{Iterations: 1, Batch: 1, Rates: []float64{9, 1}}, {Iterations: 9, Batch: 1, Rates: []float64{1, 0}}}, Workers{Count: []int{1, 1}}},
			[][]int{{0, 1}, {1, 0}},
		},
		"memory asks for two": {
			instance{[]Job{{Iterations: 1, Batch: 1, ModelBytes: 9, Rates: []float64{1}, Least: 2}}, Workers{Count: []int{4}, SlowestLink: 1}},
			[][]int{{2}},
		},
		"no more than it can use": {
			instance{[]Job{{Iterations: 1, Batch: 1, Rates: []float64{1, 2}, Most: 2}}, Workers{Count: []int{4, 1}}},
			[][]int{{1, 1}},
		},
		"moving costs more than it saves": {
			instance{[]Job{{Iterations: 1, Batch: 10, Rates: []float64{1, 2}, Most: 1, Held: []int{1, 0}, MoveSeconds: 6}}, Workers{Count: []int{1, 1}}},
			[][]int{{1, 0}},
		},
		"moving saves more than it costs": {
			instance{[]Job{{Iterations: 1, Batch: 10, Rates: []float64{1, 2}, Most: 1, Held: []int{1, 0}, MoveSeconds: 4}}, Workers{Count: []int{1, 1}}},
			[][]int{{0, 1}},
		},
		"a newcomer takes what one can spare": {
			instance{
				[]Job{{Iterations: 1, Batch: 1, Rates: []float64{1}, Held: []int{3}, MoveSeconds: 1}, {Iterations: 2, Batch: 1, Rates: []float64{1}}},
				Workers{Count: []int{3}},
			},
			[][]int{{1}, {2}},
		},
		"nothing left to do": {
			instance{[]Job{{Rates: []float64{1}, Most: 1}, {Batch: 1, Iterations: 1, Rates: []float64{1}}}, Workers{Count: []int{3}}},
			[][]int{{1}, {2}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Place(t.Context(), tc.in.jobs, tc.in.workers, Options{}, rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				t.Fatal(err)
			}
			checkAssignment(t, tc.in, got)
			for i, row := range tc.want {
				if !slices.Equal(got.Counts[i], row) {
					t.Errorf("counts %v, want %v", got.Counts, tc.want)
					break
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	rng := rand.New(rand.NewPCG(1, 1))
	one := []Job{{Iterations: 1, Batch: 1, Rates: []float64{1}}}
	place := func(ctx context.Context, jobs []Job, workers Workers, options Options, rng *rand.Rand) error {
		_, err := Place(ctx, jobs, workers, options, rng)
		return err
	}
	match := func(workers Workers, sizes ...int) error {
		_, err := Match(t.Context(), one, workers, sizes, Options{})
		return err
	}
	_, large := Optimum(t.Context(), one, Workers{Count: []int{1 << 20}})
	cases := map[string]struct {
		err  error
		want string
	}{
		"all at once": {
			place(t.Context(), []Job{{Iterations: math.NaN(), Rates: []float64{-1}}, {Least: 3, Most: 2, Held: []int{-1}}}, Workers{Count: []int{-1}, SlowestLink: -1}, Options{Fairness: 2, Matcher: "haggle"}, nil),
			`market: -1 workers of type 0, want 0 to 16777216
market: slowest link of -1 bytes/s, want a positive number, or 0 for free communication
market: job 0: rate -1 on type 0, want a positive number, or 0 where it cannot run
market: job 0: iterations NaN, batch 0, model of 0 bytes, weight 0: want numbers from 0 up
market: job 1 has 0 rates, want one for each of 1 types
market: job 1: from 3 to 2 workers, want a range, where 0 is no limit
market: job 1: holds [-1], moves in 0 s: want none or more workers of each of 1 types, and a number from 0 up
market: fairness 2, want a number from 0 to 1
market: place draws, and was given no source
market: unknown matcher "haggle", want "transport" or "auction"`,
		},
		"no room":          {place(t.Context(), one, Workers{Count: []int{0}}, Options{}, rng), "market: no job can be placed"},
		"canceled":         {place(canceled, one, Workers{Count: []int{2}}, Options{}, rng), "market: optim: transport: context canceled"},
		"too large":        {large, "market: too many workers of too many types for the exact optimum: more than 131072 ways to use them"},
		"sizes missing":    {match(Workers{Count: []int{1}}), "market: 0 sizes, want one for each of 1 jobs"},
		"a negative size":  {match(Workers{Count: []int{1}}, -1), "market: size -1 of job 0 is negative"},
		"too many workers": {match(Workers{Count: []int{1}}, 2), "market: size 2 of job 0, want 0 or 1 to 1"},
		"never runs":       {match(Workers{Count: []int{0}}, 2), "market: 1 of the jobs with a size can never run on these workers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.err == nil || tc.err.Error() != tc.want {
				t.Errorf("error %v, want %v", tc.err, tc.want)
			}
		})
	}
	if got, err := Match(t.Context(), one, Workers{Count: []int{1}}, []int{0}, Options{}); err != nil || !math.IsInf(got.Seconds[0], 1) {
		t.Errorf("size 0: %+v, error %v", got, err)
	}
}

// Whatever numbers come in, an answer or an error comes out. The auction is left out: its time grows with the span.
func TestExtremesDoNotPanic(t *testing.T) {
	numbers := []float64{0, 5e-324, 1e-300, 1e-9, 1, 1e9, 1e300, math.MaxFloat64}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		number := func() float64 { return numbers[rng.IntN(len(numbers))] }
		in := instance{workers: Workers{SlowestLink: number()}}
		for range rng.IntN(4) {
			in.workers.Count = append(in.workers.Count, rng.IntN(4))
		}
		for range rng.IntN(5) {
			job := Job{Iterations: number(), Batch: number(), ModelBytes: number(), Weight: number(), Least: rng.IntN(3)}
			for range in.workers.Count {
				job.Rates = append(job.Rates, number())
			}
			in.jobs = append(in.jobs, job)
		}
		for _, options := range []Options{{}, {Fairness: 0.5}, {Fairness: 1}, {Matcher: Auction}} {
			_, err := Place(context.Background(), in.jobs, in.workers, options, rng)
			_, same := Optimum(context.Background(), in.jobs, in.workers)
			if errors.Is(err, ErrNoRoom) != errors.Is(same, ErrNoRoom) {
				t.Errorf("place: %v, optimum: %v", err, same)
			}
		}
	})
}
