package elasticity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/testuser"
)

// remembering makes an agent with a history.
func remembering(t testing.TB, path string, settings map[string]any) *goodputAgent {
	t.Helper()
	all := map[string]any{"knowledge": history, "history_path": path}
	maps.Copy(all, settings)
	return newGoodput(t, all)
}

// trained lets a job of an application run under an agent and end.
func trained(t testing.TB, p *goodputAgent, application string, performance goodput.Performance, batch core.BatchSpec, sizes ...int) {
	t.Helper()
	j := trainingJob()
	j.Application, j.Batch = application, batch
	respond(t, p, j)
	for _, replicas := range sizes {
		ran(j, performance, (replicas+3)/4, replicas, 64)
		respond(t, p, j)
		ran(j, performance, (replicas+3)/4, replicas, 200)
		respond(t, p, j)
	}
	ended := &core.View{Jobs: []*core.Job{nil}, Changed: []core.JobID{j.ID}}
	if _, err := p.Respond(context.Background(), ended, nil); err != nil {
		t.Fatal(err)
	}
}

// begins is the response to a job of an application that has not run yet.
func begins(t testing.TB, p *goodputAgent, application string, batch core.BatchSpec) core.Response {
	t.Helper()
	j := trainingJob()
	j.Application, j.Batch, j.Gradients = application, batch, core.Gradients{}
	others := p.agents
	defer func() { p.agents = others }()
	p.agents = nil
	return respond(t, p, j)
}

func closed(t testing.TB, p *goodputAgent) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

var slower = goodput.Performance{
	AlphaGrad: 1.3, BetaGrad: 0.05, AlphaNode: 5, BetaNode: 0.2, AlphaLocal: 2, BetaLocal: 0.03, Gamma: 1.2,
}

// What jobs measured in one run is known in the next, from the first moment on.
func TestHistoryIsKnownInTheNextRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	first := remembering(t, path, nil)
	trained(t, first, "app", truth, limits, 1, 2, 4)
	closed(t, first)
	got := begins(t, remembering(t, path, nil), "app", limits)
	learned := trainingJob()
	for _, replicas := range []int{1, 2, 4} {
		ran(learned, truth, 1, replicas, 64)
		ran(learned, truth, 1, replicas, 200)
	}
	want := respond(t, newGoodput(t, nil), learned)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-as learned +as remembered):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file is %v, %v; want it readable for all", info.Mode(), err)
	}
}

// An application that was never seen is taken for the one with the nearest batch limits, if it is near.
func TestHistoryOfTheNearest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	small := core.BatchSpec{Initial: 16, Max: 512, MinPerDevice: 4, MaxPerDevice: 32}
	first := remembering(t, path, nil)
	trained(t, first, "large", truth, limits, 1, 2, 4)
	trained(t, first, "small", slower, small, 1)
	closed(t, first)
	near := func(b core.BatchSpec) core.BatchSpec { b.MaxPerDevice += b.MaxPerDevice / 2; return b }
	cases := map[string]struct {
		application string
		limits      core.BatchSpec
		want        int // replicas to begin with
	}{
		"by name":                      {"large", limits, 8},
		"by name, whatever its limits": {"small", limits, 2},
		"near the large one":           {"unseen", near(limits), 8},
		"near the small one":           {"unseen", near(small), 2},
		"near none":                    {"unseen", core.BatchSpec{Initial: 1000, Max: 100000, MinPerDevice: 500, MaxPerDevice: 1000}, 1},
		"another requested batch":      {"unseen", func() core.BatchSpec { b := limits; b.Requested = 999; return b }(), 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := begins(t, remembering(t, path, nil), tc.application, tc.limits); got.MaxReplicas != tc.want {
				t.Errorf("begins with %d replicas, want %d", got.MaxReplicas, tc.want)
			}
		})
	}
}

// A history that jobs prove wrong is given up: by the job at once, by the others when most did, and on disk.
func TestWrongHistoryIsOutgrown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	first := remembering(t, path, nil)
	trained(t, first, "app", slower, limits, 1, 2, 8)
	closed(t, first)

	second := remembering(t, path, nil)
	j := trainingJob()
	if got := respond(t, second, j); got.MaxReplicas != 16 {
		t.Fatalf("begins with %d replicas, want 16", got.MaxReplicas)
	}
	ran(j, truth, 1, 1, 64)
	got := respond(t, second, j)
	want := respond(t, newGoodput(t, nil), j)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("once it measured something else (-without history +with):\n%s", diff)
	}
	if got := begins(t, second, "app", limits); got.MaxReplicas != 1 {
		t.Errorf("the next job begins with %d replicas, on what the one before proved wrong", got.MaxReplicas)
	}
	trained(t, second, "app", truth, limits, 1)
	closed(t, second)

	third := remembering(t, path, nil)
	if got := begins(t, third, "app", limits); got.MaxReplicas != 2 {
		t.Errorf("in the next run a job begins with %d replicas, want 2: what was wrong is kept", got.MaxReplicas)
	}
}

// What a job borrowed from the nearest application and refutes is not the owner's fault.
func TestBorrowedHistoryIsRefutedForItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	first := remembering(t, path, nil)
	trained(t, first, "owner", truth, limits, 1, 2)
	closed(t, first)
	second := remembering(t, path, nil)
	for range 3 {
		trained(t, second, "borrower", slower, limits, 1)
	}
	if got := begins(t, second, "borrower", limits); got.MaxReplicas != 2 {
		t.Errorf("a borrower begins with %d replicas, want twice as many as its own kind ran on", got.MaxReplicas)
	}
	if got := begins(t, second, "owner", limits); got.MaxReplicas != 4 {
		t.Errorf("a job of the owner begins with %d replicas, want 4", got.MaxReplicas)
	}
}

// A job is known by those of its application that ended in the same run, with a file or without, and not by those that most
// jobs since proved wrong.
func TestHistoryOfTheSameRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	earlier := remembering(t, path, nil)
	trained(t, earlier, "refuted", slower, limits, 1, 2, 4)
	closed(t, earlier)
	cases := map[string]struct {
		path, application string
		before            func(*goodputAgent)
		want              int // replicas that a job begins with
	}{
		"nobody ended":              {"", "app", func(*goodputAgent) {}, 1},
		"one ended":                 {"", "app", func(p *goodputAgent) { trained(t, p, "app", truth, limits, 1, 2) }, 4},
		"another application ended": {"", "app", func(p *goodputAgent) { trained(t, p, "other", truth, limits, 1, 2) }, 1},
		"a larger one ended since": {"", "app", func(p *goodputAgent) {
			trained(t, p, "app", truth, limits, 1)
			begins(t, p, "app", limits)
			trained(t, p, "app", truth, limits, 1, 2, 4)
		}, 8},
		"proved wrong": {"", "app", func(p *goodputAgent) {
			trained(t, p, "app", slower, limits, 1, 2)
			trained(t, p, "app", truth, limits, 1)
		}, 1},
		"beside a file":                   {path, "app", func(p *goodputAgent) { trained(t, p, "app", truth, limits, 1, 2) }, 4},
		"after a file that proved wrong":  {path, "refuted", func(p *goodputAgent) { trained(t, p, "refuted", truth, limits, 1, 2, 4, 8) }, 16},
		"a file that nobody proved wrong": {path, "refuted", func(p *goodputAgent) { trained(t, p, "refuted", slower, limits, 1) }, 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := remembering(t, tc.path, nil)
			tc.before(p)
			if got := begins(t, p, tc.application, limits); got.MaxReplicas != tc.want {
				t.Errorf("begins with %d replicas, want %d", got.MaxReplicas, tc.want)
			}
		})
	}
}

// Without a file nothing is written.
func TestHistoryWithoutAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	p := remembering(t, "", nil)
	trained(t, p, "app", truth, limits, 1)
	closed(t, p)
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("leaves %v, %v", left, err)
	}
}

// A run says which history it read, as it was.
func TestHistoryIsAnInput(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.yaml")
	if err := os.WriteFile(path, []byte(validHistory), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join(dir, "absent.yaml")
	cases := map[string]struct {
		path string
		want []core.FileRead
	}{
		"none":   {"", nil},
		"absent": {absent, []core.FileRead{{Path: absent}}},
		"a file": {path, []core.FileRead{{Path: path, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(validHistory)))}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, remembering(t, tc.path, nil).FilesRead()); diff != "" {
				t.Errorf("files read (-want +got):\n%s", diff)
			}
		})
	}
}

// A history that is right grows, a configuration measured again is corrected, and what ran before stays.
func TestHistoryGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	first := remembering(t, path, nil)
	trained(t, first, "app", truth, limits, 1, 2)
	trained(t, first, "other", truth, limits, 1)
	closed(t, first)
	second := remembering(t, path, nil)
	drifted := truth
	drifted.AlphaGrad *= 1.1
	trained(t, second, "app", drifted, limits, 2, 4)
	closed(t, second)
	p, _, err := readPool(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range p.applications {
		names = append(names, a.name)
	}
	if diff := cmp.Diff([]string{"app", "other"}, names); diff != "" {
		t.Fatalf("applications (-want +got):\n%s", diff)
	}
	app := p.applications[0]
	if app.jobs != 2 || len(app.seen) != 6 || app.replicas != 4 {
		t.Errorf("%d jobs, %d measurements up to %d replicas; want 2, 6 and 4", app.jobs, len(app.seen), app.replicas)
	}
	again := app.seen[2]
	if want := (truth.GradTime(64) + drifted.GradTime(64)) / 2; math.Abs(again.PassSeconds-want) > 1e-12 || again.Count != 2 {
		t.Errorf("a pass on two replicas takes %v s by %d reports, want %v s by 2", again.PassSeconds, again.Count, want)
	}
}

// What no pool could hold is not written, for the next run could not read it.
func TestWhatIsOutOfRangeIsNotKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	fit, unfit := trainingJob(), trainingJob()
	cases := map[string]func(*core.Job){
		"gradients": func(j *core.Job) { j.Gradients.SquaredNorm = 2 * mostGradient },
		"noise":     func(j *core.Job) { j.Gradients.Variance = 2 * mostGradient },
		"seconds":   func(j *core.Job) { j.Measured[0].StepSeconds = 2 * mostSeconds },
		"no time":   func(j *core.Job) { j.Measured[0].PassSeconds = 0 },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			p := remembering(t, path, nil)
			for i, j := range []*core.Job{fit, unfit} {
				*j = *trainingJob()
				j.Application = []string{"fit", "unfit"}[i]
				ran(j, truth, 1, 1, 64)
			}
			spoil(unfit)
			respond(t, p, fit)
			p.pool.add(p.agents[0])
			p.agents = nil
			respond(t, p, unfit)
			closed(t, p)
			read, _, err := readPool(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(read.applications) != 1 || read.applications[0].name != "fit" {
				t.Errorf("the file holds %d applications, want fit alone", len(read.applications))
			}
		})
	}
}

// A past by which a job would never start is as good as none.
func TestPastWithoutARateIsIgnored(t *testing.T) {
	p := newGoodput(t, map[string]any{"knowledge": oracle})
	j := trainingJob()
	measured := trainingJob()
	ran(measured, truth, 1, 4, 64)
	j.Truth = &core.Truth{Measurements: measured.Measured, Gradients: core.Gradients{SquaredNorm: 1e308, Variance: 1e308}}
	got, want := respond(t, p, j), respond(t, newGoodput(t, nil), trainingJob())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-with nothing known +with rates that overflow):\n%s", diff)
	}
}

func TestFrozenHistoryIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	p := remembering(t, path, map[string]any{"history_frozen": true})
	trained(t, p, "app", truth, limits, 1)
	closed(t, p)
	if _, err := os.Stat(path); err == nil {
		t.Error("wrote a frozen history")
	}
}

// A run in which no job measured anything leaves the file alone, and what is running at the end is kept.
func TestHistoryAtTheEndOfARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	p := remembering(t, path, nil)
	begins(t, p, "app", limits)
	closed(t, p)
	if _, err := os.Stat(path); err == nil {
		t.Error("wrote a history of nothing")
	}
	p = remembering(t, path, nil)
	j := trainingJob()
	respond(t, p, j)
	ran(j, truth, 1, 1, 64)
	respond(t, p, j)
	closed(t, p)
	if got := begins(t, remembering(t, path, nil), "app", limits); got.MaxReplicas != 2 {
		t.Errorf("begins with %d replicas, want 2", got.MaxReplicas)
	}
}

// Runs that end at once leave a file that one of them wrote, and nothing else.
func TestHistoryIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.yaml")
	const runs = 8
	agents := make([]*goodputAgent, runs)
	for i := range agents {
		agents[i] = remembering(t, path, nil)
		for k := range i + 1 {
			trained(t, agents[i], "app"+strings.Repeat("x", k), truth, limits, 1, 2)
		}
	}
	var done sync.WaitGroup
	for _, a := range agents {
		done.Go(func() {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for range 50 {
		if _, _, err := readPool(path); err != nil {
			t.Fatal(err)
		}
	}
	done.Wait()
	p, _, err := readPool(path)
	if err != nil || len(p.applications) == 0 {
		t.Errorf("the file holds %d applications, %v", len(p.applications), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want the history alone", entries, err)
	}
}

const validHistory = `version: 1
applications:
    - name: app
      jobs: 2
      initial_batch: 128
      max_batch: 4096
      min_batch_per_device: 32
      max_batch_per_device: 256
      gradient_square: 1
      gradient_variance: 30
      measurements:
        - nodes: 1
          replicas: 2
          batch_per_device: 64
          pass_seconds: 0.5
          step_seconds: 0.75
`

func TestHistoryProblems(t *testing.T) {
	cases := map[string]struct {
		replace, with string
		want          string
	}{
		"none":               {"", "", ""},
		"empty":              {validHistory, "", ""},
		"garbage":            {validHistory, "\x00\x01\x02", "h.yaml: control characters are not allowed"},
		"text":               {validHistory, "hello", "h.yaml:1: cannot unmarshal !!str `hello` into map[string]interface {}"},
		"another version":    {"version: 1", "version: 3", "h.yaml:1:1: version: the history is of version 3, and 1 to 2 are read: name another file, or use the release that wrote it"},
		"unknown key":        {"jobs: 2", "jobs: 2\n      job: 2", `h.yaml:5:7: applications[0].job: unknown key; did you mean "jobs"? valid keys: name, run, jobs, initial_batch, max_batch, min_batch_per_device, max_batch_per_device, gradient_square, gradient_variance, endings, measurements`},
		"twice":              {"applications:", "applications:\n    - {name: app, jobs: 1, initial_batch: 1, max_batch: 1}", `h.yaml:4:7: applications[1].name: "app" appears twice`},
		"not a number":       {"gradient_variance: 30", "gradient_variance: .nan", "h.yaml:10:7: applications[0].gradient_variance: expected a finite number, got NaN"},
		"too much to learn":  {"gradient_square: 1", "gradient_square: 1e308", "h.yaml:9:7: applications[0].gradient_square: must be at most 1e30, got 1e+308"},
		"too much noise":     {"gradient_variance: 30", "gradient_variance: 1e31", "h.yaml:10:7: applications[0].gradient_variance: must be at most 1e30, got 1e+31"},
		"too slow":           {"step_seconds: 0.75", "step_seconds: 1e10", "h.yaml:16:11: applications[0].measurements[0].step_seconds: must be at most 1e9, got 1e+10"},
		"a step too short":   {"step_seconds: 0.75", "step_seconds: 0.25", "h.yaml:12:11: applications[0].measurements[0]: pass_seconds must be above 0, and step_seconds no less"},
		"no time":            {"pass_seconds: 0.5", "pass_seconds: 0", "h.yaml:12:11: applications[0].measurements[0]: pass_seconds must be above 0, and step_seconds no less"},
		"measured by nobody": {"replicas: 2", "replicas: 0", "h.yaml:13:11: applications[0].measurements[0].replicas: must be at least 1, got 0"},
		"all at once": {
			"jobs: 2\n      initial_batch: 128", "jobs: many\n      initial_batch: -1",
			"h.yaml:4:7: applications[0].jobs: expected a whole number, got text \"many\"\nh.yaml:5:7: applications[0].initial_batch: must be at least 1, got -1",
		},
	}
	t.Chdir(t.TempDir())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile("h.yaml", []byte(strings.Replace(validHistory, tc.replace, tc.with, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			got := ""
			if _, _, err := readPool("h.yaml"); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A history that cannot be read, or not be written in the end, is told of before the run.
func TestHistoryThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	unreadable := filepath.Join(dir, "unreadable.yaml")
	if err := os.WriteFile(unreadable, nil, 0); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ path, want string }{
		"a folder":          {dir, "read the history: open " + dir + ": is a directory"},
		"no folder":         {filepath.Join(dir, "missing", "h.yaml"), `history_path: there is no folder "` + filepath.Join(dir, "missing") + `" to write "h.yaml" to`},
		"a file for folder": {filepath.Join(unreadable, "h.yaml"), `history_path: there is no folder "` + unreadable + `" to write "h.yaml" to`},
		"unreadable":        {unreadable, "read the history: open " + unreadable + ": permission denied"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if name == "unreadable" {
				testuser.Ordinary(t, dir)
			}
			config, problems := NewGoodput().Decode(map[string]any{"knowledge": history, "history_path": tc.path})
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := NewGoodput().New(config, core.Settings{}); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	if _, problems := NewGoodput().Decode(map[string]any{"knowledge": history, "history_frozen": true}); problems.Err() == nil {
		t.Error("takes a frozen history without a file")
	}
	if err := replaceFile(filepath.Join(dir, "missing", "h.yaml"), nil); err == nil {
		t.Error("writes where there is no folder")
	}
	if err := replaceFile(dir, nil); err == nil {
		t.Error("replaces a folder")
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+"-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("leaves %v, %v", left, err)
	}
}

// What is written is read again bit for bit.
func TestHistoryRoundTrips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	rapid.Check(t, func(t *rapid.T) {
		written := &pool{fresh: map[string]*pastApplication{}}
		for range rapid.IntRange(1, 3).Draw(t, "applications") {
			a := &pastApplication{
				name: rapid.String().Draw(t, "name"), jobs: rapid.IntRange(1, 1000).Draw(t, "jobs"),
				limits: core.BatchSpec{
					Initial: rapid.IntRange(1, 1000).Draw(t, "initial"), Max: rapid.IntRange(1, 1e9).Draw(t, "max"),
					MinPerDevice: rapid.IntRange(0, 100).Draw(t, "least"), MaxPerDevice: rapid.IntRange(0, 1e6).Draw(t, "most"),
				},
				gradients: core.Gradients{SquaredNorm: rapid.Float64Range(0, mostGradient).Draw(t, "square"), Variance: rapid.Float64Range(0, mostGradient).Draw(t, "variance")},
			}
			for range rapid.IntRange(1, 4).Draw(t, "measurements") {
				pass := rapid.Float64Range(1e-9, mostSeconds/10).Draw(t, "pass")
				a.seen = append(a.seen, core.Measurement{
					Accelerator: rapid.OneOf(rapid.Just(""), rapid.String()).Draw(t, "accelerator"), Nodes: rapid.IntRange(1, 16).Draw(t, "nodes"), Replicas: rapid.IntRange(1, 64).Draw(t, "replicas"),
					PerDevice: rapid.IntRange(1, 1e6).Draw(t, "per device"), PassSeconds: pass,
					StepSeconds: pass * rapid.Float64Range(1, 10).Draw(t, "step"),
				})
				a.replicas = max(a.replicas, a.seen[len(a.seen)-1].Replicas)
			}
			for range rapid.IntRange(0, 3).Draw(t, "endings") {
				positive := rapid.Float64Range(1e-9, mostGradient)
				a.endings = append(a.endings, ending{positive.Draw(t, "work"), positive.Draw(t, "seconds"), rapid.Bool().Draw(t, "finished")})
			}
			written.fresh[a.name] = a
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := written.write(path); err != nil {
			t.Fatal(err)
		}
		read, _, err := readPool(path)
		if err != nil {
			text, _ := os.ReadFile(path)
			t.Fatalf("%v\n%s", err, text)
		}
		diff := cmp.Diff(written.merged(&pool{}), read.applications, cmp.AllowUnexported(pastApplication{}, ending{}),
			cmpopts.IgnoreFields(pastApplication{}, "models"))
		if diff != "" {
			t.Errorf("history (-written +read):\n%s", diff)
		}
	})
}

// FuzzReadHistory reads anything without a crash, and knows jobs by what it read.
func FuzzReadHistory(f *testing.F) {
	f.Add([]byte(validHistory))
	f.Add([]byte("version: 1\napplications: [{name: &a x, jobs: 1, initial_batch: 1, max_batch: 1}, *a]"))
	f.Add([]byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "h.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		p, _, err := readPool(path)
		if err != nil {
			return
		}
		j := coretest.MakeJob("a").Application("app").Batch(limits).Obj()
		p.find(j)
	})
}
