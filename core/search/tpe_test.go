package search_test

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/search"
)

// best is the least value that a search finds in so many trials, of which so many run at a time. The one that was started first ends first.
func best(t testing.TB, kind string, config map[string]any, f function, seed uint64, trials, parallel int) float64 {
	t.Helper()
	s := made(t, kind, config, f.space, seed)
	defer s.Close()
	least := math.Inf(1)
	var running []search.Trial
	for now := 1.0; now <= float64(trials); now++ {
		if len(running) < parallel {
			asked, err := s.Ask(t.Context(), parallel-len(running))
			if err != nil {
				t.Fatal(err)
			}
			running = append(running, asked...)
		}
		done := running[0]
		running = running[1:]
		value := f.value(done.Params)
		least = math.Min(least, value)
		if _, err := s.Tell(t.Context(), []search.Result{{Trial: done.ID, Kind: search.Finished, AtSeconds: now, Step: 1, Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	return least
}

// comparison is how the distance to the least value compares over seeds.
type comparison struct {
	ratio float64 // geometric mean
	wins  int
}

const compareSeeds, compareTrials, compareParallel = 20, 100, 4

func compare(t *testing.T, f function, kind string, config map[string]any, others []float64) (c comparison, distances []float64) {
	sum := 0.0
	for i := range uint64(compareSeeds) {
		seed := 1000 + i // the constants were chosen on others
		d := best(t, kind, config, f, seed, compareTrials, compareParallel) - f.least
		distances = append(distances, d)
		if others == nil {
			continue
		}
		if d < others[i] {
			c.wins++
		}
		sum += math.Log(d / others[i])
	}
	c.ratio = math.Exp(sum / compareSeeds)
	return c, distances
}

// TPE is closer to the least value than random search with as many trials, on the same seeds.
func TestTPEBeatsRandom(t *testing.T) {
	for _, f := range functions() {
		t.Run(f.name, func(t *testing.T) {
			_, random := compare(t, f, "random", nil, nil)
			got, _ := compare(t, f, "tpe", nil, random)
			t.Logf("%.2f times the distance of random search, better on %d of %d seeds", got.ratio, got.wins, compareSeeds)
			if got.ratio > 0.25 || got.wins < 15 {
				t.Errorf("%.2f times the distance of random search, better on %d of %d seeds; want 0.25 and 15", got.ratio, got.wins, compareSeeds)
			}
		})
	}
}

// run lets one trial of a search after the other end as it is judged, and returns all.
func run(t *testing.T, s search.Search, n int, judge func(search.Trial) search.Result) (trials []search.Trial) {
	t.Helper()
	for now := range n {
		asked, err := s.Ask(t.Context(), 1)
		if err != nil || len(asked) != 1 {
			t.Fatal(asked, err)
		}
		trials = append(trials, asked[0])
		result := judge(asked[0])
		result.Trial, result.AtSeconds = asked[0].ID, float64(now)
		if _, err := s.Tell(t.Context(), []search.Result{result}); err != nil {
			t.Fatal(err)
		}
	}
	return trials
}

// share is the part of the last half of the trials in which x is below a half.
func share(trials []search.Trial) float64 {
	low := 0
	late := trials[len(trials)/2:]
	for _, trial := range late {
		if number(trial.Params, "x") < 0.5 {
			low++
		}
	}
	return float64(low) / float64(len(late))
}

// What tpe learns from each end of a trial.
func TestTPELearns(t *testing.T) {
	line := search.Space{{Name: "x", Low: 0, High: 1}}
	cases := map[string]struct {
		low, high search.Result // of trials below a half, and of others
		goal      search.Goal
	}{
		"less is better":            {search.Result{Kind: search.Finished, Value: 1}, search.Result{Kind: search.Finished, Value: 2}, search.Minimize},
		"more is better":            {search.Result{Kind: search.Finished, Value: 2}, search.Result{Kind: search.Finished, Value: 1}, search.Maximize},
		"stopped is worse":          {search.Result{Kind: search.Finished, Value: 2}, search.Result{Kind: search.Stopped, Value: 1}, search.Minimize},
		"stopped late is better":    {search.Result{Kind: search.Stopped, Step: 9, Value: 2}, search.Result{Kind: search.Stopped, Step: 3, Value: 1}, search.Minimize},
		"stopped with less":         {search.Result{Kind: search.Stopped, Step: 3, Value: 1}, search.Result{Kind: search.Stopped, Step: 3, Value: 2}, search.Minimize},
		"failed is worse":           {search.Result{Kind: search.Finished, Value: 9}, search.Result{Kind: search.Failed, Value: 1}, search.Minimize},
		"failed is worse than that": {search.Result{Kind: search.Stopped, Value: 9}, search.Result{Kind: search.Failed, Value: 1}, search.Minimize},
		"no value is worse":         {search.Result{Kind: search.Finished, Value: 9}, search.Result{Kind: search.Finished, Value: nan}, search.Minimize},
		"endless is worse":          {search.Result{Kind: search.Finished, Value: 9}, search.Result{Kind: search.Finished, Value: math.Inf(-1)}, search.Minimize},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, problems := search.Setting{Type: "tpe"}.Decode("search", "space", search.Problem{Space: line, Goal: tc.goal})
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			s, err := c.New(1, nil)
			if err != nil {
				t.Fatal(err)
			}
			trials := run(t, s, 60, func(trial search.Trial) search.Result {
				r, x := tc.high, number(trial.Params, "x")
				if x < 0.5 {
					r = tc.low
				}
				if r.Value += math.Abs(x-0.25) / 2; tc.goal == search.Maximize {
					r.Value -= math.Abs(x - 0.25)
				}
				return r
			})
			if got := share(trials); got < 0.8 {
				t.Errorf("%.2f of the later trials are where the better ones are, want 0.8", got)
			}
		})
	}
}

// The first trials are those of random search, and so many as are told; then they are not.
func TestTPEBeginsByChance(t *testing.T) {
	judge := func(trial search.Trial) search.Result {
		return search.Result{Kind: search.Finished, Value: mixed(trial.Params)}
	}
	for _, n := range []int{1, 10, 17} {
		trials := run(t, made(t, "tpe", map[string]any{"random": n}, mixedSpace(), 1), n+1, judge)
		for cut := range 3 { // whatever is learned in the meantime
			other := run(t, made(t, "tpe", map[string]any{"random": 100}, mixedSpace(), 1), n+1, judge)
			if got, want := trials[:n][min(cut, n-1)].Params, other[:n][min(cut, n-1)].Params; !got.Equal(want) {
				t.Errorf("random %d: trial %d is %v, want %v", n, cut, got, want)
			}
			if trials[n].Params.Equal(other[n].Params) {
				t.Errorf("random %d: trial %d is drawn by chance", n, n)
			}
		}
	}
}

// Trials that run together differ: each counts as bad until it ends.
func TestTPEKeepsRunningTrialsApart(t *testing.T) {
	values := search.Space{{Name: "n", Scale: search.Int, Low: 1, High: 40}}
	together := 0
	for seed := range uint64(10) {
		s := made(t, "tpe", nil, values, seed)
		run(t, s, 30, func(trial search.Trial) search.Result {
			return search.Result{Kind: search.Finished, Value: math.Abs(number(trial.Params, "n") - 20)}
		})
		trials, err := s.Ask(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, trial := range trials {
			seen[trial.Params.String()] = true
		}
		together += len(seen)
	}
	if together < 42 { // 31 if they did not count, 48 as it is
		t.Errorf("%d unlike values in 10 times 10 trials, want 42", together)
	}
}
