package search_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/search/searchtest"
)

// optunaVariable names the Python that has Optuna. Tests that need it skip where the variable is not set and no Python has it.
const optunaVariable = "QUARTET_OPTUNA"

// optuna is the config of a search by Optuna, which must be there where it was promised.
func optuna(t *testing.T, arguments ...string) map[string]any {
	t.Helper()
	python, promised := os.LookupEnv(optunaVariable)
	if !promised || python == "" {
		python, promised = "python3", false
	}
	out, err := exec.Command(python, "-c", "import optuna").CombinedOutput()
	if err != nil && promised {
		t.Fatalf("%s: %s has no Optuna: %v\n%s", optunaVariable, python, err, out)
	} else if err != nil {
		t.Skipf("%s has no Optuna; make optuna installs it, and %s names a Python that has it", python, optunaVariable)
	}
	sources, err := filepath.Abs("../../plugins/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", sources)
	command := []any{python, "-m", "quartet_search.optuna"}
	for _, argument := range arguments {
		command = append(command, argument)
	}
	return map[string]any{"command": command}
}

// How TPE does beside that of Optuna: the figures of docs/results/search.md. Each is far closer than random search, on whatever function.
func TestTPEBesideOptuna(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a minute and more of Optuna")
	}
	config := optuna(t)
	for _, f := range functions() {
		t.Run(f.name, func(t *testing.T) {
			_, random := compare(t, f, "random", nil, nil)
			ours, _ := compare(t, f, "tpe", nil, random)
			theirs, _ := compare(t, f, "external", config, random)
			t.Logf("| %s | %.2f | %d | %.2f | %d |", f.name, ours.ratio, ours.wins, theirs.ratio, theirs.wins)
			if theirs.ratio > 0.5 {
				t.Errorf("Optuna's TPE is at %.2f times the distance of random search, want 0.5: is it told what its trials are worth?", theirs.ratio)
			}
		})
	}
}

// Optuna keeps the contract of a search.
func TestOptunaConformance(t *testing.T) {
	for _, arguments := range [][]string{nil, {"--sampler", "random", "--pruner", "median"}} {
		t.Run(strings.Join(arguments, " "), func(t *testing.T) {
			config := optuna(t, arguments...)
			c := searchtest.Case{Space: everyScale(), Worlds: 1}
			c.New = func(t testing.TB) search.Search { return made(t, "external", config, c.Space, 7) }
			searchtest.Run(t, c)
		})
	}
}

// study lets real trainings run, four at a time and each for its epochs, until so many trials have ended or the process is to be killed.
type study struct {
	search   search.Search
	trials   []search.Trial
	running  []*runningTraining
	best     float64
	epochs   int
	losses   []float64
	finished int
	stopped  int
	now      float64
}

type runningTraining struct {
	search.Trial
	*training
	epochs int
	loss   float64
	stop   bool
}

const epochs, parallel = 20, 4

// round lets each training that runs go on for an epoch, and fills up what is free.
func (s *study) round(t *testing.T, most int) bool {
	t.Helper()
	s.now++
	var results []search.Result
	left := s.running[:0]
	for _, r := range s.running {
		kind := search.Report
		switch {
		case r.stop:
			kind = search.Stopped
			s.stopped++
		case r.epochs == epochs:
			kind = search.Finished
			s.finished++
			s.losses = append(s.losses, r.loss)
			if r.loss < s.best {
				s.best = r.loss
			}
		default:
			r.loss = r.epoch()
			r.epochs++
			s.epochs++
			left = append(left, r)
		}
		results = append(results, search.Result{Trial: r.ID, Kind: kind, AtSeconds: s.now, Step: float64(r.epochs), Value: r.loss})
	}
	s.running = left
	stop, err := s.search.Tell(t.Context(), results)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.running {
		r.stop = r.stop || slices.Contains(stop, r.ID)
	}
	if free := min(parallel-len(s.running), most-len(s.trials)); free > 0 {
		trials, err := s.search.Ask(t.Context(), free)
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials {
			s.trials = append(s.trials, trial)
			s.running = append(s.running, &runningTraining{Trial: trial, training: newTraining(trial.Params, uint64(trial.ID))})
		}
	}
	return len(s.running) > 0
}

// Optuna tunes real trainings: it stops the bad ones early, finds a good one, and goes on from its record as if it remembered.
func TestOptunaTunesTrainings(t *testing.T) {
	const trials = 60
	config := optuna(t, "--pruner", "median", "--set-pruner", "n_startup_trials=4", "--set-sampler", "n_startup_trials=8")
	path := filepath.Join(quickFolder(t), "record")
	opened := func() *search.Recorded {
		r, err := chosen(t, "external", config, trainingSpace()).Record(path, 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := opened()
	before := &study{search: first, best: math.Inf(1)}
	for range 80 {
		before.round(t, trials)
	}
	if err := first.Close(); err != nil { // in the middle of it
		t.Fatal(err)
	}
	second := opened()
	defer second.Close()
	s := &study{search: second, best: math.Inf(1)}
	for s.round(t, trials) {
	}
	if len(before.trials) < 10 || len(before.trials) > trials-10 {
		t.Errorf("%d trials before the end of the first life, want some and not all", len(before.trials))
	}
	seen := map[string]int{}
	for i, trial := range s.trials {
		if i < len(before.trials) && !trial.Params.Equal(before.trials[i].Params) {
			t.Errorf("trial %d is %v, and was %v", i, trial.Params, before.trials[i].Params)
		}
		if other, twice := seen[trial.Params.String()]; twice {
			t.Errorf("trials %d and %d are both %v", other, i, trial.Params)
		}
		seen[trial.Params.String()] = i
	}
	if len(s.trials) != trials || s.finished+s.stopped != trials {
		t.Errorf("%d trials, of which %d finished and %d were stopped, want %d", len(s.trials), s.finished, s.stopped, trials)
	}
	if s.stopped < trials/5 || s.finished < 5 {
		t.Errorf("%d of %d trials were stopped early, want a fifth at least and not all", s.stopped, trials)
	}
	chance := &study{search: made(t, "random", nil, trainingSpace(), 5), best: math.Inf(1)}
	for chance.round(t, trials) {
	}
	slices.Sort(chance.losses)
	median := chance.losses[len(chance.losses)/2]
	if s.best > median/4 || s.epochs > chance.epochs*4/5 {
		t.Errorf("its best loss is %.4f after %d epochs, want a quarter of %.4f, the median of random search, and four fifths of its %d epochs",
			s.best, s.epochs, median, chance.epochs)
	}
	t.Logf("best loss %.4f after %d epochs, %d of %d trials stopped early; random search %.4f after %d, its median %.4f",
		s.best, s.epochs, s.stopped, trials, chance.best, chance.epochs, median)
}

// What is wrong with its arguments is said in Optuna's own words.
func TestOptunaRefuses(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown sampler": {[]string{"--sampler", "tpa"}, "invalid choice: 'tpa'"},
		"an unknown option":  {[]string{"--set-sampler", "gamme=3"}, "gamme"},
		"no option":          {[]string{"--set-pruner", "x"}, "'x' is not NAME=VALUE"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := made(t, "external", optuna(t, tc.arguments...), smallSpace(), 1)
			defer s.Close()
			if _, err := s.Ask(t.Context(), 1); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
