package tuning_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/tuning"
)

// The profile of one application: steps of 0.1 s a sample and device, two epochs, whose accuracy is 0.5 and 0.75.
const (
	times  = "placement,local_bsz,step_time,sync_time\n1,2,0.5,0\n1,20,2.5,0\n2,2,0.75,0.25\n2,10,1.5,0.5\n12,2,2,1\n12,10,4,1\n"
	traced = "progress,iteration,metric,grad_sqr,grad_var\n100,100,0.5,1,10\n200,200,0.75,2,30\n"
	corner = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,4,1,5,0.25\n8,4,1,9,0.25\n4,16,1,5,1\n4,4,9,13,0.25\n"
)

func profiles(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"traces/toy/placements.csv": times, "traces/toy/validation-10.csv": traced, "traces/toy/validation-20.csv": traced,
		"delaunay/toy-points.csv": corner, "delaunay/toy-simplices.csv": "0,1,2,3\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// small is four trials of the toy application, two at a time, on two nodes of two devices; profiles stands for the folder.
const small = `
version: 1
name: small
cluster:
  nodes: [{name: n, count: 2, accelerator: t4, devices: 2}]
workload:
  type: tuning
  config:
    experiment: toy
    trials: 4
    parallel: 2
    metric: accuracy
    goal: maximize
    space: [{name: width, choice: [1, 2]}, {name: offset, choice: [0, 1]}]
    search: {type: grid}
    job: {replicas: 1}
    simulated: {application: toy, profiles: PROFILES, width: width, quality: offset, noise: ""}
round: {interval: 10s}
pipeline:
  allocation: {type: fifo}
  placement: {type: first_fit}
  elasticity: {job: {type: fixed}}
backend: {type: simulator}
`

func load(t testing.TB, c quartet.Catalog, sets ...string) (*quartet.Composition, error) {
	t.Helper()
	return quartet.Parse(c, "small.yaml", strings.ReplaceAll(small, "PROFILES", strconv.Quote(profiles(t))), configs.Options{Sets: sets})
}

func simulate(t testing.TB, c quartet.Catalog, sets ...string) *quartet.Result {
	t.Helper()
	composition, err := load(t, c, sets...)
	if err != nil {
		t.Fatal(err)
	}
	composition.Keep = true
	r, err := composition.Simulate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trialsOf is the table of a run by the names of its columns.
func trialsOf(t testing.TB, r *quartet.Result) (rows []map[string]string) {
	t.Helper()
	for _, f := range r.Files {
		if f.File != "trials.csv" {
			continue
		}
		table, err := csv.NewReader(bytes.NewReader(f.Content)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, cells := range table[1:] {
			row := map[string]string{}
			for i, cell := range cells {
				row[table[0][i]] = cell
			}
			rows = append(rows, row)
		}
		return rows
	}
	t.Fatal("there is no trials.csv")
	return nil
}

// An epoch is 100 steps at the smallest batch, 10, of 1.3889 s: 138.89 s, and as long again for a trial of twice the width. An offset costs 8 % of the accuracy.
func TestTrialsGoAsTheirProfile(t *testing.T) {
	r := simulate(t, quartet.Builtins())
	type row struct{ job, width, offset, state, steps string }
	var got []row
	best := map[string]float64{}
	durations := map[string]float64{}
	for _, m := range trialsOf(t, r) {
		got = append(got, row{m["job"], m["param.width"], m["param.offset"], m["state"], m["steps"]})
		value, _ := strconv.ParseFloat(m["best_value"], 64)
		start, _ := strconv.ParseFloat(m["start_s"], 64)
		end, _ := strconv.ParseFloat(m["end_s"], 64)
		best[m["job"]], durations[m["job"]] = value, end-start
	}
	want := []row{
		{"toy-0001", "1", "0", "finished", "2"}, {"toy-0002", "1", "1", "finished", "2"}, {"toy-0003", "2", "0", "finished", "2"}, {"toy-0004", "2", "1", "finished", "2"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	for job, x := range map[string]struct{ accuracy, seconds float64 }{
		"toy-0001": {0.75, 200 * (0.5 + 8.0/18*2)}, "toy-0002": {0.75 * 0.92, 200 * (0.5 + 8.0/18*2)}, "toy-0003": {0.75, 400 * (0.5 + 8.0/18*2)}, "toy-0004": {0.75 * 0.92, 400 * (0.5 + 8.0/18*2)},
	} {
		if got := best[job]; got < x.accuracy-0.02 || got > x.accuracy+0.02 { // the noise is drawn
			t.Errorf("%s is at best %v, want %v", job, got, x.accuracy)
		}
		if got := durations[job]; got < x.seconds-1e-6 || got > x.seconds+1e-6 {
			t.Errorf("%s took %v s, want %v", job, got, x.seconds)
		}
	}
	s := r.Summary.Tuning
	if s == nil || s.Trials != 4 || s.Finished != 4 || s.Stopped+s.Failed+s.Unfinished != 0 || s.Best == nil || s.Best.Params[1].Value != "0" {
		t.Errorf("summary %+v, want four finished trials, of which one without offset is the best", s)
	}
}

// The table of a run of other workloads is not written, and their summary does not tell of trials.
func TestOtherWorkloadsHaveNoTrials(t *testing.T) {
	r := simulate(t, quartet.Builtins(), "workload={type: generated, config: {jobs: 3, replicas: one}}")
	for _, f := range r.Files {
		if f.File == "trials.csv" {
			t.Error("there is a trials.csv")
		}
	}
	if r.Summary.Tuning != nil || strings.Contains(string(r.Text), "tuning") {
		t.Error("the summary tells of trials")
	}
}

// caught is a search that counts what it is told, and does what a test wants.
type caught struct {
	search.Search
	ask  func(n int) ([]search.Trial, error)
	stop func(search.Result) []int
	told []search.Result
	most int // trials that ran at a time
	live int
}

func (c *caught) Ask(ctx context.Context, n int) (got []search.Trial, err error) {
	if c.ask != nil {
		got, err = c.ask(n)
	} else {
		got, err = c.Search.Ask(ctx, n)
	}
	c.live += len(got)
	c.most = max(c.most, c.live)
	return got, err
}

func (c *caught) Tell(ctx context.Context, results []search.Result) (stop []int, err error) {
	for _, r := range results {
		if r.Kind != search.Report {
			c.live--
		}
		if c.stop != nil {
			stop = append(stop, c.stop(r)...)
		}
	}
	c.told = append(c.told, results...)
	if c.ask != nil {
		return stop, nil
	}
	_, err = c.Search.Tell(ctx, results)
	return stop, err
}

func caughtIn(c *caught) quartet.Catalog {
	return quartet.Builtins().WithWorkload(tuning.NewWith(func(s search.Search) search.Search { c.Search = s; return c }))
}

func TestNeighbours(t *testing.T) {
	cases := map[string]struct {
		sets     []string
		stop     func(search.Result) []int
		finished int
		stopped  int
		failed   int
		most     int
		noBest   bool
	}{
		"as many as there are":       {nil, nil, 4, 0, 0, 2, false},
		"one at a time":              {[]string{"workload.config.parallel=1"}, nil, 4, 0, 0, 1, false},
		"one trial":                  {[]string{"workload.config.trials=1"}, nil, 1, 0, 0, 1, false},
		"more at a time than trials": {[]string{"workload.config.parallel=99"}, nil, 4, 0, 0, 4, false},
		"as many as a grid has": {
			[]string{"workload.config.trials=0", "workload.config.parallel=20", "workload.config.space=[{name: width, choice: [1, 2]}, {name: offset, choice: [0, 1]}, {name: x, int: [1, 30]}]"},
			nil, 120, 0, 0, 20, false,
		},
		"more trials than combinations": {[]string{"workload.config.trials=99"}, nil, 4, 0, 0, 2, false},
		"all are stopped": {nil, func(r search.Result) []int {
			if r.Kind == search.Report {
				return []int{r.Trial, r.Trial}
			}
			return nil
		}, 0, 4, 0, 2, false},
		"one is stopped that has ended": {nil, func(r search.Result) []int {
			if r.Kind == search.Finished {
				return []int{r.Trial}
			}
			return nil
		}, 4, 0, 0, 2, false},
		"all are refused": {[]string{"pipeline.admission=[{type: refusing}]"}, nil, 0, 0, 4, 2, true},
		"nothing is reported": {
			[]string{"workload.config.simulated={}", "workload.config.job={seconds: 50}"}, nil, 4, 0, 0, 2, true,
		},
		"nodes fail":   {[]string{"backend.config.failures={mtbf: 20m, repair: 1m}", "backend.config.checkpoint_interval=1m"}, nil, 4, 0, 0, 2, false},
		"by rounds":    {[]string{"backend.config.publication={progress: per_round, first_round: one_interval}"}, nil, 4, 0, 0, 2, false},
		"whole steps":  {[]string{"backend.config.publication.progress=whole_steps"}, nil, 4, 0, 0, 2, false},
		"back to back": {[]string{"backend.config.publication.progress=back_to_back"}, nil, 4, 0, 0, 2, false},
		"events only":  {[]string{"round={interval: 0s, on_events: true}"}, nil, 4, 0, 0, 2, false},
		"a thousand": {
			[]string{"workload.config.trials=1000", "workload.config.parallel=50", "workload.config.search.type=random"}, nil, 1000, 0, 0, 50, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &caught{stop: tc.stop}
			r := simulate(t, caughtIn(c).WithAdmission(quartet.Given[core.Admitter]("refusing", refusing{})), tc.sets...)
			s := r.Summary.Tuning
			if s.Finished != tc.finished || s.Stopped != tc.stopped || s.Failed != tc.failed || s.Unfinished != 0 || s.Trials != tc.finished+tc.stopped+tc.failed {
				t.Errorf("came to %+v, want %d finished, %d stopped and %d failed", s, tc.finished, tc.stopped, tc.failed)
			}
			if c.most != tc.most {
				t.Errorf("up to %d trials ran at a time, want %d", c.most, tc.most)
			}
			if (s.Best == nil) != tc.noBest {
				t.Errorf("the best is %+v", s.Best)
			}
			last := -1.0
			for _, told := range c.told {
				if told.AtSeconds < last {
					t.Fatalf("trial %d is told of %v s after %v s", told.Trial, told.AtSeconds, last)
				}
				last = told.AtSeconds
			}
			if rows := trialsOf(t, r); len(rows) != s.Trials {
				t.Errorf("%d rows for %d trials", len(rows), s.Trials)
			}
		})
	}
}

// refusing admits nobody.
type refusing struct{}

func (refusing) Admit(_ context.Context, _ *core.View, waiting []*core.Job) (verdicts []core.Verdict, err error) {
	for _, j := range waiting {
		verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Reject, Reason: core.QuotaExceeded})
	}
	return verdicts, nil
}

// holding holds back trial 1 at its first report, for some time, and ends trial 2.
type holding struct{ held map[core.JobID]bool }

func (h *holding) Review(_ context.Context, v *core.View, reported []*core.Job) (verdicts []core.Verdict, err error) {
	for _, j := range reported {
		switch {
		case j.ID == 1 && !h.held[j.ID]:
			h.held[j.ID] = true
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults})
		case j.ID == 2:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Pruned})
		}
	}
	return verdicts, nil
}

func (h *holding) Admit(_ context.Context, v *core.View, waiting []*core.Job) (verdicts []core.Verdict, err error) {
	for _, j := range waiting {
		if h.held[j.ID] && v.NowSeconds < 700 {
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults})
		}
	}
	return verdicts, nil
}

// A trial that an admission holds back makes room for the next one, and one that it ends counts as stopped.
func TestAdmissionsMakeRoom(t *testing.T) {
	c := &caught{}
	r := simulate(t, caughtIn(c).WithAdmission(quartet.Given[core.Admitter]("holding", &holding{held: map[core.JobID]bool{}})), "pipeline.admission=[{type: holding}]")
	if s := r.Summary.Tuning; s.Finished != 3 || s.Stopped != 1 {
		t.Errorf("came to %+v, want 3 finished and 1 stopped", s)
	}
	rows := trialsOf(t, r)
	if got := rows[2]["submit_s"]; got != "140" { // the round at which trial 1 is held back
		t.Errorf("trial 2 is submitted at %s, want 140", got)
	}
	if rows[2]["state"] != "stopped" || rows[1]["state"] != "finished" {
		t.Errorf("trials 1 and 2 are %s and %s, want finished and stopped", rows[1]["state"], rows[2]["state"])
	}
}

// A search that breaks what it promises, or breaks down, ends the run and is blamed.
func TestSearchesAreHeldToTheirPromises(t *testing.T) {
	trial := func(id int) search.Trial {
		return search.Trial{ID: id, Params: search.Params{{Name: "width", Value: search.Number(1)}, {Name: "offset", Value: search.Number(0)}}}
	}
	cases := map[string]struct {
		ask  func(n int) ([]search.Trial, error)
		stop func(search.Result) []int
		want string
	}{
		"it fails":     {func(int) ([]search.Trial, error) { return nil, errors.New("no ideas") }, nil, `search "grid" of experiment "toy", when it was asked: no ideas`},
		"too many":     {func(n int) ([]search.Trial, error) { return []search.Trial{trial(0), trial(1), trial(2)}, nil }, nil, "proposed 3 trials, at most 2"},
		"out of order": {func(n int) ([]search.Trial, error) { return []search.Trial{trial(1)}, nil }, nil, "proposed trial 1 after 0 others"},
		"no width":     {func(n int) ([]search.Trial, error) { return []search.Trial{{}}, nil }, nil, `trial 0 has no hyper-parameter "width"`},
		"a word for the width": {func(n int) ([]search.Trial, error) {
			return []search.Trial{{Params: search.Params{{Name: "width", Value: search.Word("wide")}, {Name: "offset", Value: search.Number(0)}}}}, nil
		}, nil, `width "wide"`},
		"no width at all": {func(n int) ([]search.Trial, error) {
			return []search.Trial{{Params: search.Params{{Name: "width", Value: search.Number(0)}, {Name: "offset", Value: search.Number(0)}}}}, nil
		}, nil, `width "0"`},
		"it stops what is not": {nil, func(search.Result) []int { return []int{7} }, "stops trial 7, which it never proposed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, caughtIn(&caught{ask: tc.ask, stop: tc.stop}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = c.Simulate(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Everything that is wrong with a config is told, where it stands.
func TestProblems(t *testing.T) {
	cases := map[string]struct {
		sets []string
		want []string
	}{
		"names and job": {
			[]string{
				"workload.config.experiment=a b", "workload.config.metric=\"\"", "workload.config.job={replicas: 0, name: x, submit: 1s, command: [run, '${lr}', '$${lr}'], max_replica: 3}",
				"workload.config.simulated.width=widht",
			},
			[]string{`experiment: "a b" cannot name jobs`, "metric: is empty", "job.name: is set for each", "job.submit: is set for each", "job.replicas: must be at least 1", "job.max_replica: unknown key; did you mean \"max_replicas\"", `simulated.width: there is no hyper-parameter "widht"; did you mean "width"`},
		},
		"search and references": {
			[]string{"workload.config.search.type=gird", "workload.config.job={command: [run, '${lr}', '${trial}', '${width}'], environment: [{name: A, value: '${of}'}]}"},
			[]string{`search.type: unknown search "gird"; did you mean "grid"`, `job.command[1]: there is no hyper-parameter "lr"`, `job.environment[0].value: there is no hyper-parameter "of"`},
		},
		"no application": {
			[]string{"workload.config.simulated={batch: 10}"}, []string{"simulated.application: is empty"},
		},
		"a search that never ends": {
			[]string{"workload.config.trials=0", "workload.config.search={type: random}"}, []string{`trials: required but missing: the search "random" never ends`},
		},
		"no profiles": {
			[]string{"workload.config.simulated={application: toy}"}, []string{"simulated.profiles: required but missing"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, quartet.Builtins(), tc.sets...)
			wantDiagnostics(t, err, tc.want)
		})
	}
}

// What a config says of the profile is checked when that is read.
func TestProblemsOfTheProfile(t *testing.T) {
	cases := map[string]struct {
		sets []string
		want []string
	}{
		"all of it": {
			[]string{"workload.config.metric=los", "workload.config.simulated.batch=99", "workload.config.simulated.curve_batch=5", "workload.config.job={replicas: 1, max_replicas: 99}"},
			[]string{"simulated.batch: toy was trained with batches from 10 to 20, got 99", "simulated.curve_batch: toy was trained with batches from 10 to 20, got 5", "job.max_replicas: must be at most", `metric: trials of toy report no "los"; valid metrics: accuracy`},
		},
		"replicas": {[]string{"workload.config.job={replicas: 9}"}, []string{"job.replicas: "}},
		"no such application": {
			[]string{"workload.config.simulated.application=toi", "workload.config.search={type: list, config: {path: /nowhere.csv}}"},
			[]string{`simulated.application: no profile of "toi"`, `did you mean "toy"?`, "/nowhere.csv: cannot be read"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, quartet.Builtins(), tc.sets...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Simulate(t.Context())
			wantDiagnostics(t, err, tc.want)
		})
	}
}

func wantDiagnostics(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not told in:\n%v", w, err)
		}
	}
}

// What becomes of trials, and every file of the run, is the same whenever it is repeated.
func TestRepeats(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sets := []string{
			fmt.Sprintf("workload.config.trials=%d", rapid.IntRange(1, 12).Draw(r, "trials")),
			fmt.Sprintf("workload.config.parallel=%d", rapid.IntRange(1, 5).Draw(r, "parallel")),
			fmt.Sprintf("seed=%d", rapid.IntRange(0, 9).Draw(r, "seed")),
			"workload.config.search.type=" + rapid.SampledFrom([]string{"random", "grid", "tpe"}).Draw(r, "search"),
			fmt.Sprintf("round={interval: %ds, on_events: %v}", rapid.IntRange(1, 90).Draw(r, "interval"), rapid.Bool().Draw(r, "on events")),
			fmt.Sprintf("backend.config.restart_overhead=%ds", rapid.IntRange(0, 40).Draw(r, "overhead")),
			"pipeline.admission=[{type: convergence, config: {metrics: [accuracy], change: " + rapid.SampledFrom([]string{"0.001", "0.9"}).Draw(r, "change") + ", reports: 1}}]",
			"output.write=[jobs, rounds, decisions, fairness, timeline, training, efficiency, reports]",
		}
		first, second := simulate(t, quartet.Builtins(), sets...), simulate(t, quartet.Builtins(), sets...)
		for i, f := range first.Files {
			if !bytes.Equal(f.Content, second.Files[i].Content) {
				r.Errorf("%s is another one", f.File)
			}
		}
		s := first.Summary.Tuning
		if s.Unfinished != 0 || s.Finished+s.Stopped+s.Failed != s.Trials || s.Failed > 0 {
			r.Errorf("came to %+v, want every trial finished or stopped", s)
		}
	})
}
