package searchtest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/search/searchtest"
)

func space() search.Space {
	return search.Space{{Name: "x", Low: 0, High: 1, Points: 3}, {Name: "n", Scale: search.Int, Low: 1, High: 3}}
}

// broken is a search whose answers are changed.
type broken struct {
	search.Search
	trials func([]search.Trial) []search.Trial
	stop   func([]search.Result) []int
}

func (b broken) Ask(ctx context.Context, n int) ([]search.Trial, error) {
	trials, err := b.Search.Ask(ctx, n)
	if b.trials != nil {
		trials = b.trials(trials)
	}
	return trials, err
}

func (b broken) Tell(ctx context.Context, results []search.Result) ([]int, error) {
	stop, err := b.Search.Tell(ctx, results)
	if b.stop != nil {
		stop = b.stop(results)
	}
	return stop, err
}

// A search that breaks the contract is found out.
func TestWorldFindsFaults(t *testing.T) {
	param := func(i int, name string, v search.Value) func([]search.Trial) []search.Trial {
		return func(trials []search.Trial) []search.Trial {
			for _, trial := range trials {
				trial.Params[i] = search.Param{Name: name, Value: v}
			}
			return trials
		}
	}
	cases := map[string]struct {
		trials func([]search.Trial) []search.Trial
		stop   func([]search.Result) []int
		want   string // empty for no fault
	}{
		"nothing": {},
		"the same number again": {trials: func(trials []search.Trial) []search.Trial {
			for i := range trials {
				trials[i].ID = 0
			}
			return trials
		}, want: "proposes trial 0, want"},
		"a number left out": {trials: func(trials []search.Trial) []search.Trial {
			trials[0].ID++
			return trials
		}, want: "proposes trial 1, want 0"},
		"too many":          {trials: func(trials []search.Trial) []search.Trial { return append(trials, trials[0]) }, want: "trials, asked for"},
		"outside":           {trials: param(0, "x", search.Number(2)), want: "2 is not from 0 to 1"},
		"no whole number":   {trials: param(1, "n", search.Number(1.5)), want: "is no whole number"},
		"another parameter": {trials: param(1, "m", search.Number(1)), want: `parameter "m" is not in the space`},
		"another order": {trials: func(trials []search.Trial) []search.Trial {
			for _, trial := range trials {
				trial.Params[0], trial.Params[1] = trial.Params[1], trial.Params[0]
			}
			return trials
		}, want: "is not in the order of the space"},
		"stops what is not there": {stop: func([]search.Result) []int { return []int{1 << 20} }, want: "stops trial 1048576, which was not proposed"},
		"stops in another order":  {stop: func([]search.Result) []int { return []int{1, 0} }, want: "want them ascending"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			chosen, problems := search.Setting{Type: "random"}.Decode("search", "space", search.Problem{Space: space()})
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			s, err := chosen.New(1, nil)
			if err != nil {
				t.Fatal(err)
			}
			w := searchtest.NewWorld(1)
			for range 30 {
				if _, err = w.Step(t, broken{s, tc.trials, tc.stop}, space()); err != nil {
					break
				}
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Searches that keep the contract pass the whole suite, with an end and without.
func TestSoundSearchesPass(t *testing.T) {
	for name, trials := range map[string]int{"random": 0, "grid": 9} { // how many it has; 0 for no end
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Case{Space: space(), Ends: trials, Worlds: 3, New: func(t testing.TB) search.Search {
				chosen, problems := search.Setting{Type: name}.Decode("search", "space", search.Problem{Space: space()})
				if err := problems.Err(); err != nil {
					t.Fatal(err)
				}
				s, err := chosen.New(1, nil)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}})
		})
	}
}
