package tuning_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
)

// eight is a profile of eight epochs, whose accuracy grows.
const eight = "progress,iteration,metric,grad_sqr,grad_var\n" +
	"100,100,0.3,1,10\n200,200,0.4,2,20\n300,300,0.5,2,20\n400,400,0.6,2,20\n500,500,0.65,2,20\n600,600,0.7,2,20\n700,700,0.75,2,20\n800,800,0.8,2,20\n"

// judged runs eight trials of eight epochs each, four at a time on four devices, whose places from the best, 0, to the worst, 7, are 3, 0, 5, 1, 7, 2, 6, 4.
func judged(t testing.TB, admission string, observe func(*core.Report), sets ...string) *quartet.Result {
	t.Helper()
	dir := profiles(t)
	for _, batch := range []string{"10", "20"} {
		if err := os.WriteFile(filepath.Join(dir, "traces", "toy", "validation-"+batch+".csv"), []byte(eight), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sets = append([]string{
		"workload.config.trials=8", "workload.config.parallel=4", "workload.config.search.type=grid",
		"workload.config.space=[{name: width, fixed: 1}, {name: offset, choice: [3, 0, 5, 1, 7, 2, 6, 4]}, {name: none, fixed: 0}]", "workload.config.simulated.noise=none",
		"pipeline.admission=[" + admission + "]",
	}, sets...)
	c, err := quartet.Parse(quartet.Builtins(), "small.yaml", strings.ReplaceAll(small, "PROFILES", strconv.Quote(dir)), configs.Options{Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	c.Keep = true
	if observe != nil {
		c.Observers = append(c.Observers, observing(observe))
	}
	r, err := c.Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type observing func(*core.Report)

func (o observing) ObserveRound(r *core.Report) error {
	o(r)
	return nil
}

// Every admission that stops trials early brings a search to its end: the trials that it has wait hold no device and make room for others, and nobody waits for ever.
func TestSearchesUnderEarlyStoppingEnd(t *testing.T) {
	const (
		stop    = "{type: asha, config: {first: 1, reduction: 2, max_step: 8}}"
		promote = "{type: asha, config: {first: 1, reduction: 2, max_step: 8, variant: promote}}"
		quarter = "{type: asha, config: {first: 1, reduction: 4, max_step: 8, variant: promote}}"
		cohort  = "{type: successive_halving, config: {first: 1, reduction: 2, max_step: 8, trials: 8}}"
		anyone  = "{type: successive_halving, config: {first: 1, reduction: 2, max_step: 8}}"
		bracket = "{type: hyperband, config: {first: 1, reduction: 2, max_step: 8}}"
		median  = "{type: median, config: {others: 2}}"
	)
	halved := []int{2, 8, 1, 4, 1, 2, 1, 1} // of eight the best four, of these two, of these one
	type want struct {
		steps      []int // that trials were told to have come to last: 8 of those that finished, all others were stopped
		waits      bool
		there, run int // trials at a time: that have not ended, and that run
	}
	cases := map[string]struct {
		admission string
		parallel  int
		want      want
	}{
		"asha that stops":                 {stop, 4, want{[]int{8, 8, 1, 2, 1, 2, 1, 1}, false, 4, 4}},
		"asha that stops, one at a time":  {stop, 1, want{[]int{8, 8, 1, 2, 1, 2, 1, 1}, false, 1, 1}},
		"asha that promotes":              {promote, 4, want{halved, true, 8, 4}},
		"with one worker":                 {promote, 1, want{halved, true, 8, 1}},
		"that promotes a quarter":         {quarter, 4, want{[]int{1, 8, 1, 4, 1, 1, 1, 1}, true, 8, 4}},
		"halving of a cohort":             {cohort, 4, want{halved, true, 8, 4}},
		"that comes one after the other":  {cohort, 1, want{halved, true, 8, 4}}, // those that go on after a wait are beyond those at a time
		"and a quota":                     {"{type: quota, config: {default_jobs: 1}}, " + cohort, 1, want{halved, true, 8, 1}},
		"halving of those that are there": {anyone, 4, want{[]int{1, 8, 1, 2, 1, 8, 1, 8}, false, 4, 4}},
		"where each is alone":             {anyone, 1, want{[]int{8, 8, 8, 8, 8, 8, 8, 8}, false, 1, 1}},
		"hyperband":                       {bracket, 4, want{halved, true, 8, 4}},
		"median":                          {median, 4, want{[]int{8, 8, 1, 8, 1, 8, 1, 1}, false, 4, 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			r := judged(t, tc.admission, func(r *core.Report) {
				there, run := 0, 0
				for _, j := range r.View.Jobs {
					if j == nil || j.State.Ended() {
						continue
					}
					if there++; j.State == core.Running {
						run++
					} else if j.Held != 0 || j.Seats != nil {
						t.Errorf("round %d: %s is %v and holds %v", r.View.Round, j.Name, j.State, j.Seats)
					}
				}
				got.there, got.run = max(got.there, there), max(got.run, run)
				got.waits = got.waits || slices.ContainsFunc(r.Changes, func(c core.Change) bool { return c.Action == core.Pause })
			}, fmt.Sprintf("workload.config.parallel=%d", tc.parallel))
			for _, row := range trialsOf(t, r) {
				steps, err := strconv.Atoi(row["steps"])
				if state := map[bool]string{true: "finished", false: "stopped"}[steps == 8]; err != nil || row["state"] != state {
					t.Errorf("%s came to step %q and is %s, want %s", row["job"], row["steps"], row["state"], state)
				}
				got.steps = append(got.steps, steps)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The same holds for any of their settings, rounds and costs, and each run repeats to the byte.
func TestSearchesUnderAnyEarlyStoppingEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		reduction := rapid.IntRange(2, 4).Draw(rt, "reduction")
		first := rapid.IntRange(1, 3).Draw(rt, "first")
		admission := rapid.SampledFrom([]string{
			fmt.Sprintf("{type: asha, config: {first: %d, reduction: %d, max_step: 8}}", first, reduction),
			fmt.Sprintf("{type: asha, config: {first: %d, reduction: %d, variant: promote}}", first, reduction),
			fmt.Sprintf("{type: successive_halving, config: {first: %d, reduction: %d, trials: %d}}", first, reduction, rapid.IntRange(0, 9).Draw(rt, "cohort")),
			fmt.Sprintf("{type: hyperband, config: {first: %d, reduction: %d, max_step: 8}}", first, reduction),
			fmt.Sprintf("{type: median, config: {others: %d, grace: %d}}", reduction, first),
		}).Draw(rt, "admission")
		if jobs := rapid.IntRange(0, 4).Draw(rt, "quota"); jobs > 0 {
			admission = fmt.Sprintf("{type: quota, config: {default_jobs: %d}}, ", jobs) + admission
		}
		sets := []string{
			fmt.Sprintf("workload.config.parallel=%d", rapid.IntRange(1, 9).Draw(rt, "parallel")),
			"round=" + rapid.SampledFrom([]string{"{interval: 10s}", "{interval: 300s}", "{interval: 70s, on_events: true}", "{interval: 0s, on_events: true}"}).Draw(rt, "round"),
			fmt.Sprintf("backend.config.restart_overhead=%ds", rapid.IntRange(0, 90).Draw(rt, "overhead")),
			"backend.config.failures=" + rapid.SampledFrom([]string{"{}", "{mtbf: 20m, repair: 1m}"}).Draw(rt, "failures"),
			"backend.config.checkpoint_interval=1m",
			"output.write=[jobs, decisions, reports]",
		}
		run, again := judged(t, admission, nil, sets...), judged(t, admission, nil, sets...)
		for i, f := range run.Files {
			if !bytes.Equal(f.Content, again.Files[i].Content) {
				rt.Errorf("%s is another one", f.File)
			}
		}
		if s := run.Summary.Tuning; s.Trials != 8 || s.Finished == 0 || s.Finished+s.Stopped != 8 {
			rt.Errorf("came to %+v, want every one of 8 trials finished or stopped, and one finished at least", s)
		}
	})
}
