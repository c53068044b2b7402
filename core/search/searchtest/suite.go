// Package searchtest is the contract of a search as tests.
package searchtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
)

// Case is a search to be held to the contract.
type Case struct {
	Space search.Space // hyper-parameters and their ranges
	// New makes the search anew, each time with the same seed.
	New func(t testing.TB) search.Search
	// Ends is set for a search that has no more than so many trials; 0 for one without end.
	Ends int
	// Worlds is how many courses of trials it is run through; 0 for 10.
	Worlds int
}

// Run holds a search to the contract.
func Run(t *testing.T, c Case) {
	if c.Worlds == 0 {
		c.Worlds = 10
	}
	t.Run("same answers to the same calls", c.repeats)
	t.Run("trials", c.trials)
	t.Run("results that cannot be", c.refusals)
	t.Run("failures alone", func(t *testing.T) { c.only(t, search.Failed, 1) })
	t.Run("values that are none", func(t *testing.T) { c.only(t, search.Finished, math.NaN()) })
	t.Run("values without end", func(t *testing.T) { c.only(t, search.Finished, math.Inf(-1)) })
	t.Run("the same value each time", func(t *testing.T) { c.only(t, search.Finished, 1) })
	t.Run("the end", c.ends)
	t.Run("closed unused", func(t *testing.T) { c.open(t) })
}

func (c Case) open(t *testing.T) search.Search {
	s := c.New(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// World lets the trials of a search run, fail, report and be stopped by chance, which follows from a seed.
type World struct {
	rand     *rand.Rand
	parallel int
	now      float64
	running  []running
	next     int            // number of the next trial
	Log      []string       // what happened, a line each
	Trials   []search.Trial // trials that were submitted
}

type running struct {
	search.Trial
	step        float64
	value       float64
	stop, quiet bool
}

// NewWorld makes a world.
func NewWorld(seed uint64) *World {
	w := &World{rand: core.NewRand(seed, "searchtest")}
	w.parallel = 1 + w.rand.IntN(6)
	return w
}

// Step lets something happen, and calls Tell and Ask of the search. It is false when the search is over, and an error when the search breaks its contract.
func (w *World) Step(t testing.TB, s search.Search, space search.Space) (bool, error) {
	if results := w.happens(); len(results) > 0 {
		stop, err := s.Tell(t.Context(), results)
		if err != nil {
			return false, fmt.Errorf("results %v: %w", results, err)
		}
		w.Log = append(w.Log, fmt.Sprintf("results %v, stop %v", results, stop))
		if !slices.IsSorted(stop) {
			return false, fmt.Errorf("stops %v, want them ascending", stop)
		}
		for _, id := range stop {
			if id < 0 || id >= w.next {
				return false, fmt.Errorf("stops trial %d, which was not proposed", id)
			}
			for i := range w.running {
				w.running[i].stop = w.running[i].stop || w.running[i].ID == id
			}
		}
	}
	free := w.parallel - len(w.running)
	if free == 0 {
		return true, nil
	}
	trials, err := s.Ask(t.Context(), free)
	if err != nil {
		return false, fmt.Errorf("ask for %d: %w", free, err)
	}
	w.Log = append(w.Log, fmt.Sprintf("asked for %d: %v", free, trials))
	if len(trials) > free {
		return false, fmt.Errorf("proposes %d trials, asked for %d", len(trials), free)
	}
	for _, trial := range trials {
		arranged, err := space.Arrange(trial.Params)
		switch {
		case trial.ID != w.next:
			return false, fmt.Errorf("proposes trial %d, want %d", trial.ID, w.next)
		case err != nil:
			return false, fmt.Errorf("trial %d, %v: %w", trial.ID, trial.Params, err)
		case !arranged.Equal(trial.Params):
			return false, fmt.Errorf("trial %d: %v is not in the order of the space", trial.ID, trial.Params)
		}
		w.next++
		w.Trials = append(w.Trials, trial)
		w.running = append(w.running, running{Trial: trial, step: math.NaN(), value: math.NaN(), quiet: w.rand.IntN(8) == 0})
	}
	return len(w.running) > 0, nil
}

// happens draws what becomes of the trials that run.
func (w *World) happens() (results []search.Result) {
	w.now += float64(w.rand.IntN(3)) // or at the same moment
	left := w.running[:0]
	for _, r := range w.running {
		kind, ends := search.Report, true
		switch draw := w.rand.IntN(20); {
		case r.stop:
			kind = search.Stopped
		case draw < 3:
			kind = search.Finished
		case draw == 3:
			kind = search.Failed
		case draw == 4:
			kind = search.Stopped
		default:
			ends = false
			if r.quiet || draw < 12 {
				left = append(left, r)
				continue
			}
		}
		if !ends || kind == search.Finished && !r.quiet {
			if math.IsNaN(r.step) {
				r.step = 0
			}
			r.step++
			r.value = w.rand.NormFloat64()
			if w.rand.IntN(15) == 0 {
				r.value = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1e308}[w.rand.IntN(5)]
			}
		}
		results = append(results, search.Result{Trial: r.ID, Kind: kind, AtSeconds: w.now, Step: r.step, Value: r.value})
		if !ends {
			left = append(left, r)
		}
	}
	w.running = left
	return results
}

// steps bounds a world of a search without end.
const steps = 60

func (c Case) course(t *testing.T, seed uint64) *World {
	s := c.open(t)
	w := NewWorld(seed)
	for range steps {
		more, err := w.Step(t, s, c.Space)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !more {
			break
		}
	}
	return w
}

func (c Case) repeats(t *testing.T) {
	for seed := range uint64(c.Worlds) {
		first, second := c.course(t, seed), c.course(t, seed)
		for i := range first.Log {
			if i >= len(second.Log) || first.Log[i] != second.Log[i] {
				t.Fatalf("seed %d: exchange %d differs the second time:\n%s", seed, i, first.Log[i])
			}
		}
	}
}

func (c Case) trials(t *testing.T) {
	all := 0
	for seed := range uint64(c.Worlds) {
		all += len(c.course(t, seed+1000).Trials)
	}
	if all == 0 {
		t.Error("no trial was proposed")
	}
}

// refusals says what cannot be; the search refuses it and is as it was.
func (c Case) refusals(t *testing.T) {
	s, other := c.open(t), c.open(t)
	ctx := t.Context()
	if _, err := s.Ask(ctx, 0); err == nil {
		t.Error("asked for 0 trials it does not refuse")
	}
	if _, err := s.Ask(ctx, -3); err == nil {
		t.Error("asked for -3 trials it does not refuse")
	}
	good := func(results ...search.Result) {
		t.Helper()
		for _, one := range []search.Search{s, other} {
			if _, err := one.Tell(ctx, results); err != nil {
				t.Fatalf("results %v: %v", results, err)
			}
		}
	}
	bad := func(results ...search.Result) {
		t.Helper()
		if stop, err := s.Tell(ctx, results); err == nil {
			t.Errorf("it does not refuse results %v, and stops %v", results, stop)
		}
	}
	ask := func(n int) {
		t.Helper()
		ours, err := s.Ask(ctx, n)
		theirs, otherErr := other.Ask(ctx, n)
		if err != nil || otherErr != nil {
			t.Fatal(err, otherErr)
		}
		if fmt.Sprint(ours) != fmt.Sprint(theirs) {
			t.Errorf("what it refused changes what it proposes: %v, want %v", ours, theirs)
		}
	}
	bad(search.Result{Trial: 0, Kind: search.Finished, AtSeconds: 1, Value: 1})
	ask(2)
	finished := func(trial int, at float64) search.Result {
		return search.Result{Trial: trial, Kind: search.Finished, AtSeconds: at, Step: 1, Value: float64(trial)}
	}
	bad(finished(-1, 1))
	bad(finished(2, 1))
	bad(finished(1<<40, 1))
	bad(finished(0, math.NaN()))
	bad(finished(0, 1), finished(0, 1))
	bad(finished(1, 1), finished(0, 1))
	bad(finished(0, 2), finished(1, 1))
	bad(search.Result{Trial: 0, Kind: 9, AtSeconds: 1})
	bad(finished(0, 1), finished(2, 1)) // of which the first is good
	good(finished(0, 5))
	bad(finished(0, 6))
	bad(finished(1, 4))
	bad(search.Result{Trial: 0, Kind: search.Report, AtSeconds: 6, Step: 2, Value: 1})
	good()
	ask(1)
	good(finished(1, 5)) // at the same moment
	ask(2)
}

// only ends all trials in one way.
func (c Case) only(t *testing.T, kind search.Kind, value float64) {
	s := c.open(t)
	id := 0
	for now := range 30 {
		trials, err := s.Ask(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(trials) == 0 {
			break
		}
		if _, err := c.Space.Arrange(trials[0].Params); err != nil || trials[0].ID != id {
			t.Fatalf("trial %v, want %d: %v", trials[0], id, err)
		}
		if _, err := s.Tell(t.Context(), []search.Result{{Trial: id, Kind: kind, AtSeconds: float64(now), Step: 1, Value: value}}); err != nil {
			t.Fatal(err)
		}
		id++
	}
	if want := 30; id != want && id != c.Ends {
		t.Errorf("%d trials were proposed, want %d", id, want)
	}
}

// ends asks after the last trial.
func (c Case) ends(t *testing.T) {
	if c.Ends == 0 {
		t.Skip("the search has no end")
	}
	s := c.open(t)
	trials, err := s.Ask(t.Context(), c.Ends+5)
	if err != nil || len(trials) > c.Ends {
		t.Fatalf("%d trials, %v, want at most %d", len(trials), err, c.Ends)
	}
	count := len(trials)
	for now := 0; len(trials) > 0; now++ {
		for _, trial := range trials {
			if _, err := s.Tell(t.Context(), []search.Result{{Trial: trial.ID, Kind: search.Finished, AtSeconds: float64(now), Step: 1, Value: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		if trials, err = s.Ask(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		count += len(trials)
	}
	if count != c.Ends {
		t.Errorf("%d trials in all, want %d", count, c.Ends)
	}
	for range 3 {
		if trials, err := s.Ask(t.Context(), 1); len(trials) > 0 || err != nil {
			t.Errorf("after the end: %v, %v", trials, err)
		}
	}
}
