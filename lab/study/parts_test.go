package study

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/workload"
)

// Windows stand at equal distances, or at the stride, and never over one another or behind the end.
func TestWindowsAreSpread(t *testing.T) {
	trace := &sourceFacts{jobs: 100, lastSeconds: 36_000.5}
	for name, tc := range map[string]struct {
		windows Windows
		i       int
		want    string
		wrong   string
	}{
		"the first of jobs":      {Windows{Jobs: 10, Count: 4}, 0, "{first_job: 0, jobs: 10}", ""},
		"the last of jobs":       {Windows{Jobs: 10, Count: 4}, 3, "{first_job: 75, jobs: 10}", ""},
		"after a warm-up":        {Windows{Jobs: 10, Count: 4, FirstJob: 20}, 1, "{first_job: 40, jobs: 10}", ""},
		"as many as fit":         {Windows{Jobs: 10, Count: 8, FirstJob: 20}, 7, "{first_job: 90, jobs: 10}", ""},
		"one more than fits":     {Windows{Jobs: 10, Count: 9, FirstJob: 20}, 0, "", "9 windows of 10 jobs overlap: the trace has room for 8"},
		"from behind the end on": {Windows{Jobs: 10, Count: 1, FirstJob: 120}, 0, "", "1 windows of 10 jobs overlap: the trace has room for 0"},
		"by a stride":            {Windows{Jobs: 10, Count: 3, FirstJob: 5, Stride: 12}, 2, "{first_job: 29, jobs: 10}", ""},
		"to the last job":        {Windows{Jobs: 10, Count: 2, Stride: 90}, 1, "{first_job: 90, jobs: 10}", ""},
		"behind the last job":    {Windows{Jobs: 10, Count: 2, Stride: 91}, 1, "", "window 2 ends with job 100, and the trace with job 99"},
		"the first of a span":    {Windows{Span: time.Hour, Count: 3}, 0, "{from: 0s, span: 1h}", ""},
		"the last of a span":     {Windows{Span: time.Hour, Count: 3}, 2, "{from: 6h40m, span: 1h}", ""},
		"ten hours in ten":       {Windows{Span: time.Hour, Count: 10}, 9, "{from: 9h, span: 1h}", ""},
		"eleven hours in ten":    {Windows{Span: time.Hour, Count: 11}, 0, "", "11 windows of 1h0m0s overlap: the trace has room for 10"},
		"longer than the trace":  {Windows{Span: 20 * time.Hour, Count: 1}, 0, "{from: 0s, span: 20h}", ""},
		"twice the trace":        {Windows{Span: 20 * time.Hour, Count: 2}, 0, "", "the trace has room for 0"},
	} {
		t.Run(name, func(t *testing.T) {
			flag, problem := tc.windows.at(tc.i, trace)
			if tc.wrong != "" {
				if problem == nil || !strings.Contains(problem.Summary, tc.wrong) || problem.Hint == "" {
					t.Errorf("problem %v, want %q", problem, tc.wrong)
				}
				return
			}
			if problem != nil || flag.Set != "sample.window="+tc.want || flag.Name != "study" {
				t.Errorf("%+v, problem %v; want %s", flag, problem, tc.want)
			}
		})
	}
}

// Every run is of one shard, and runs of the same jobs are of the same.
func TestShardsDivideTheRuns(t *testing.T) {
	var runs []*Run
	for i := range 12 {
		runs = append(runs, &Run{Replicate: i, jobs: string(rune('a' + i%5))})
	}
	if all := (&Options{Shards: 1}).mine(runs); len(all) != 12 {
		t.Errorf("one shard has %d runs", len(all))
	}
	var shards []string
	for shard := 1; shard <= 3; shard++ {
		var names []string
		for _, r := range (&Options{Shard: shard, Shards: 3}).mine(runs) {
			names = append(names, r.jobs)
		}
		shards = append(shards, strings.Join(names, ""))
	}
	if diff := cmp.Diff([]string{"adada", "bebeb", "cc"}, shards); diff != "" {
		t.Errorf("jobs of each shard (-want +got):\n%s", diff)
	}
}

// What people should know of runs is told of each.
func TestWarnings(t *testing.T) {
	s, rows := pairs(t, "{count: 4}", "jct_seconds.mean", 4, func(scheduler, replicate int) *metrics.Summary {
		counts := metrics.JobCounts{Submitted: 9, Completed: 9}
		switch {
		case scheduler == 1 && replicate == 1:
			counts = metrics.JobCounts{Submitted: 9, Completed: 6, Unfinished: 2, Rejected: 1}
		case scheduler == 1 && replicate == 2:
			counts = metrics.JobCounts{Submitted: 9, Completed: 5, Rejected: 4}
		}
		return &metrics.Summary{Jobs: counts}
	})
	rows[1].Record = nil
	rows[2].Record = &Record{Outcome: Failed, Error: "out of order"}
	rows[3].Notes = []string{"first", "second"}
	r := &Result{Study: s, Rows: rows}
	for i := range rows {
		rows[i].Run.Hash = strings.Repeat(string(rune('a'+i)), 64)
	}
	want := [][]string{
		{"run", "scheduler", "replicate", "kind", "message"},
		{"bbbbbbbbbbbb", "fifo", "2", "missing", "the run was not run yet"},
		{"cccccccccccc", "fifo", "3", "failed", "out of order"},
		{"dddddddddddd", "fifo", "4", "note", "first"},
		{"dddddddddddd", "fifo", "4", "note", "second"},
		{"eeeeeeeeeeee", "las", "1", "unfinished", "2 of 9 jobs did not end: means of completion times leave them out"},
		{"ffffffffffff", "las", "2", "rejected", "4 of 9 jobs were rejected: means of completion times leave them out"},
	}
	if diff := cmp.Diff(want, r.warningsTable()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The rows of runs without a record have no numbers, and those of the others all.
	table := r.runsTable()
	for i, row := range table[1:] {
		known := rows[i].Record != nil && rows[i].Summary != nil
		if at := slices.Index(table[0], "jobs_submitted"); (row[at] == "9") != known {
			t.Errorf("row %q", row)
		}
	}
	if got := table[2][slices.Index(table[0], "outcome")] + table[3][slices.Index(table[0], "outcome")]; got != Missing+Failed {
		t.Errorf("outcomes %q", got)
	}
}

// Files are found beside the study, and written as they are reached from its folder.
func TestFilesOfAStudy(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.Mkdir("in", 0o755), os.WriteFile("in/mine.yaml", nil, 0o600), os.WriteFile("here.yaml", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	absolute := filepath.Join(dir, "here.yaml")
	s := &Study{
		Base: []string{"mine.yaml", "here.yaml", "default.yaml", "-", absolute},
		Axes: []Axis{{Name: "scheduler", Items: []Item{{Name: "a", Files: []string{"mine.yaml"}}}}},
	}
	s.Locate("in")
	if diff := cmp.Diff([]string{"in/mine.yaml", "here.yaml", "default.yaml", "-", absolute, "in/mine.yaml"}, slices.Concat(s.Base, s.Axes[0].Items[0].Files)); diff != "" {
		t.Errorf("located (-want +got):\n%s", diff)
	}
	var names []string
	for _, name := range s.Base {
		names = append(names, from("studies/x", name))
	}
	if diff := cmp.Diff([]string{"../../in/mine.yaml", "../../here.yaml", "default.yaml", "-", absolute}, names); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if err := os.WriteFile("default.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := from("studies/x", "default.yaml"); got != "../../default.yaml" {
		t.Errorf("a file of an embedded name is %s", got)
	}
	// The resolved study says everything, and is not written again when it is the same.
	text := rich + "write: [usage, training]\npublished: [{figure: Table 2, metric: jct_seconds.mean, at: {scheduler: second, color: red}, value: 1h}]\n"
	text = strings.Replace(text, "{name: red, set: {round.interval: 1m}}", "{name: red, with: {scheduler: [fifo, second], load: '2.5'}}, blue", 1)
	text = strings.Replace(text, ", blue", ", {name: blue}", 1)
	read, err := Parse("s.yaml", "s", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := read.writeResolved("in"); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile("in/" + StudyFile)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse("s.yaml", "other", written); err != nil || len(again.Points) != 1 || len(again.Axes[3].Items[0].With) != 2 {
		t.Fatalf("read again: %+v, error %v", again, err)
	}
	before, err := os.Stat("in/" + StudyFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, rewritten := range []bool{false, true} {
		if rewritten {
			read.Seeds.First++
		}
		if err := read.writeResolved("in"); err != nil {
			t.Fatal(err)
		}
		if after, err := os.Stat("in/" + StudyFile); err != nil || os.SameFile(before, after) == rewritten {
			t.Errorf("written again, error %v; want that only of another study", err)
		}
	}
	for _, want := range []string{
		"name: full\n", "base: [../default.yaml]", "write: [usage, training]", "with: {scheduler: [fifo, second], load: \"2.5\"}", "windows: {span: 2h, count: 3}",
		"windows: {jobs: 10, first_job: 4, count: 2}", "figure: Table 2", "at: {scheduler: second, color: red}", "value: 3600",
		"seeds: {first: 7, count: 4, until: {metric: makespan_seconds, half_width: 2%, most: 80}}", "baseline: {scheduler: second}",
	} {
		if !strings.Contains(string(written), want) {
			t.Errorf("no %q in\n%s", want, written)
		}
	}
	if err := read.writeResolved("in/none"); err == nil {
		t.Error("no error without a folder")
	}
}

// A workload is loaded once for those that need it, and let go of after the last.
func TestHeld(t *testing.T) {
	runs := []*Run{{source: "s", jobs: "a"}, {source: "s", jobs: "a"}, {source: "s", jobs: "b"}}
	h := newHeld(runs)
	loads := 0
	load := func() (*workload.Workload, error) { loads++; return nil, errors.New("unreadable") }
	for range 2 {
		if _, err := h.get("a", load); err == nil || err.Error() != "unreadable" {
			t.Errorf("error %v", err)
		}
	}
	if loads != 1 {
		t.Errorf("loaded %d times", loads)
	}
	var left []int
	for _, r := range runs {
		left = append(left, len(h.known))
		h.release(r)
	}
	if left = append(left, len(h.known)); !slices.Equal(left, []int{3, 3, 2, 0}) {
		t.Errorf("%v are held, want 3, 3, 2 and none", left)
	}
}

// Settings come whole sections first, then types, then what is inside.
func TestFlagsAreInOrder(t *testing.T) {
	at := core.Position{File: "s.yaml", Line: 3, Column: 1}
	got := Flags([]Setting{
		{Path: "round.interval", Value: "30s", At: at},
		{Path: "pipeline.allocation.type", Value: "srtf"},
		{Path: "workload", Value: map[string]any{"type": "csv"}},
		{Path: "a.b", Value: math.NaN()},
		{Path: "pipeline.placement.type", Value: "free"},
	})
	var texts []string
	for _, f := range got {
		texts = append(texts, f.Name+" "+f.Set)
	}
	want := []string{
		`study workload={"type":"csv"}`, `study pipeline.allocation.type="srtf"`, `study pipeline.placement.type="free"`, `s.yaml:3:1 round.interval="30s"`, "study a.b=NaN",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The numbers of a summary are known by their paths.
func TestNumbersOfASummary(t *testing.T) {
	s := &metrics.Summary{Jobs: metrics.JobCounts{Submitted: 4}, JCTSeconds: metrics.Distribution{P99: 7}, GPUHours: 2.5, Restarts: metrics.Restarts{Mean: 0.5}}
	for path, want := range map[string]float64{"jobs.submitted": 4, "jct_seconds.p99": 7, "gpu_hours": 2.5, "restarts.mean": 0.5, "jct_seconds": nan, "seed": nan, "jct_seconds.luck": nan} {
		if got := Value(s, path); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if !math.IsNaN(Value(nil, "gpu_hours")) {
		t.Error("a run without a summary has a number")
	}
	paths, columns := Metrics(), Columns()
	if len(paths) != len(columns) || slices.Contains(paths, "wall_seconds") || slices.Contains(paths, "seed") || slices.ContainsFunc(columns, func(c string) bool { return strings.Contains(c, ".") }) {
		t.Errorf("%q\n%q", paths, columns)
	}
}

// Comparisons are listed item by item, what pools more later; an axis of one item is not pooled.
func TestSelections(t *testing.T) {
	s, err := Parse("s.yaml", "s", []byte(`
version: 1
axes:
  load: [1, 2]
  scheduler: [fifo, srtf, {name: las, with: {load: "2"}}]
  color: [{name: red}]
baseline: {scheduler: srtf}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]int{{0, 0, 0}, {1, 0, 0}, {1, 2, 0}, {-1, 0, 0}, {-1, 2, 0}}
	if diff := cmp.Diff(want, s.selections()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := &Result{Study: s}
	for _, items := range want {
		r.Stats = append(r.Stats, Comparison{Items: items})
	}
	if list := r.Pooled(); len(list) != 2 || list[0] != &r.Stats[3] || list[1] != &r.Stats[4] {
		t.Errorf("pooled %v", list)
	}
	if cells := s.within([]int{-1, 2, -1}); len(cells) != 1 || !slices.Equal(cells[0], []int{1, 2, 0}) {
		t.Errorf("las is in the cells %v", cells)
	}
	// The p of the comparisons of a metric that pool the same axes are corrected together.
	list := []Comparison{
		{Metric: "a", Items: []int{0, 0}, Known: true, Paired: stats.Paired{P: 0.01}},
		{Metric: "a", Items: []int{1, 0}, Known: true, Paired: stats.Paired{P: 0.03}},
		{Metric: "a", Items: []int{1, 0}, Holm: nan},
		{Metric: "a", Items: []int{-1, 0}, Known: true, Paired: stats.Paired{P: 0.02}},
		{Metric: "b", Items: []int{0, 0}, Known: true, Paired: stats.Paired{P: 0.04}},
	}
	s.correct(list)
	for i, want := range []float64{0.02, 0.03, nan, 0.02, 0.04} {
		if got := list[i].Holm; got != want && !math.IsNaN(want) {
			t.Errorf("comparison %d: %v after Holm, want %v", i, got, want)
		}
	}
}

// A study tells how many runs it has, and what is wrong with it, and runs none.
func TestCount(t *testing.T) {
	o := Options{Catalog: quartet.Builtins(), Dir: filepath.Join(t.TempDir(), "none")}
	s, err := Parse("s.yaml", "s", []byte("version: 1\naxes: {scheduler: [fifo, srtf], load: [1, 2]}\nseeds: {count: 3}\nwrite: [usage]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Count(t.Context(), o); n != 12 || err != nil {
		t.Errorf("%d runs, error %v; want 12", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Count(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	s.Set = []Setting{{Path: "round.interval", Value: "never"}, {Path: "luck", Value: 1}}
	_, err = s.Count(t.Context(), o)
	if err == nil || strings.Count(err.Error(), "round.interval") != 1 || strings.Count(err.Error(), "luck") != 1 {
		t.Errorf("error %v, want each problem once", err)
	}
	if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("a folder was made")
	}
	s.Seeds.Until = &Until{Metric: "gpu_hours", Most: 9}
	if _, err := Execute(t.Context(), s, Options{Shard: 1, Shards: 2}); err == nil || !strings.Contains(err.Error(), "shards cannot know how many seeds suffice") {
		t.Errorf("error %v, want shards refused", err)
	}
}

// Without a baseline a study tells values and compares nothing.
func TestStatsWithoutABaseline(t *testing.T) {
	s, rows := pairs(t, "{count: 5}", "gpu_hours", 5, func(scheduler, replicate int) *metrics.Summary {
		return &metrics.Summary{GPUHours: metrics.Number(10*scheduler + replicate)}
	})
	s.Baseline = -1
	r := &Result{Study: s, Rows: rows, Stats: s.compare(rows, nil, 1, 1)}
	table := r.statsTable()
	if len(table) != 3 {
		t.Fatalf("%d rows, want one for each scheduler below the header", len(table))
	}
	for i, want := range []string{"gpu_hours,fifo,,5,3,,,,,,,,,,,,1,values,,,,,0", "gpu_hours,las,,5,13,,,,,,,,,,,,1,values,,,,,0"} {
		if got := strings.Join(table[i+1], ","); got != want || len(table[i+1]) != len(table[0]) {
			t.Errorf("row %d\n%s, want\n%s", i, got, want)
		}
	}
}

// Too few jobs leave one workload without an interval; jobs that never started restarted never.
func TestWithinATrace(t *testing.T) {
	few := func(hash string) ([]metrics.Job, error) {
		return ranJobs([]string{"", "", "", ""}, 10, 20, 30, metrics.Number(40*(1+len(strings.TrimLeft(hash, "1"))))), nil
	}
	s, rows := pairs(t, "{count: 1}", "jct_seconds.mean", 1, func(scheduler, _ int) *metrics.Summary {
		jobs, _ := few([]string{"0 1", "1 1"}[scheduler])
		sum := metrics.Number(0)
		for i := range jobs {
			sum += jobs[i].JCTSeconds / 4
		}
		return &metrics.Summary{Jobs: metrics.JobCounts{Submitted: 4, Completed: 4}, JCTSeconds: metrics.Distribution{Mean: sum}}
	})
	if c := s.compare(rows, few, 1, 1)[0]; c.Method != stats.MethodValues || !c.Known || c.Interval().Known() {
		t.Errorf("of four jobs %+v", c)
	}
	started := []metrics.Job{{ID: 0, QueueingSeconds: 5, Restarts: 3}, {ID: 1, QueueingSeconds: metrics.Number(nan), Restarts: 0}, {ID: 2, QueueingSeconds: 0, Restarts: 1}}
	if a, b := jobValues("restarts.mean", started, started, nil); !slices.Equal(a, []float64{3, 1}) || !slices.Equal(b, a) {
		t.Errorf("restarts %v and %v", a, b)
	}
	other := slices.Clone(started)
	other[1].QueueingSeconds = 7
	if a, b := jobValues("restarts.mean", started, other, nil); a != nil || b != nil {
		t.Errorf("restarts of other jobs %v and %v", a, b)
	}
	if a, _ := jobValues("gpu_hours", started, started, &metrics.Window{First: 2, Last: 2}); len(a) != 3 {
		t.Errorf("GPU time of %d jobs, want all", len(a))
	}
	if a, _ := jobValues("queueing_seconds.mean", started, started, &metrics.Window{First: 2, Last: 2}); !slices.Equal(a, []float64{0}) {
		t.Errorf("queueing %v, want that of the job that is measured", a)
	}
	if a, _ := jobValues("makespan_seconds", started, started, nil); a != nil {
		t.Errorf("the makespan is a mean over %v", a)
	}
}

// A published value is a number or, of seconds, a duration.
func TestPublishedValues(t *testing.T) {
	for _, tc := range []struct {
		metric, text string
		want         float64
		ok           bool
	}{
		{"makespan_seconds", "90", 90, true},
		{"makespan_seconds", "1.5m", 90, true},
		{"jct_seconds.mean", "1h", 3600, true},
		{"gpu_hours", "1h", 0, false},
		{"gpu_hours", "-2.5", -2.5, true},
		{"gpu_hours", "nan", 0, false},
		{"gpu_hours", "inf", 0, false},
		{"gpu_hours", "-Inf", 0, false},
		{"makespan_seconds", "long", 0, false},
	} {
		if got, ok := pointValue(tc.metric, tc.text); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s %q is %v, %v; want %v, %v", tc.metric, tc.text, got, ok, tc.want, tc.ok)
		}
	}
}

// A run with any policy in a process of its own is repeated, whatever is kept.
func TestRunsOutside(t *testing.T) {
	o := Options{Catalog: quartet.Builtins()}
	for name, tc := range map[string]struct {
		change func(*configs.Config)
		want   bool
	}{
		"none":       {func(*configs.Config) {}, false},
		"allocation": {func(c *configs.Config) { c.Allocation.Remote = &configs.Remote[core.Allocator]{} }, true},
		"placement":  {func(c *configs.Config) { c.Placement.Remote = &configs.Remote[core.Placer]{} }, true},
		"elasticity": {func(c *configs.Config) { c.Elasticity.Remote = &configs.Remote[core.Elasticity]{} }, true},
		"scaler":     {func(c *configs.Config) { c.Scaler.Remote = &configs.Remote[core.ClusterScaler]{} }, true},
		"admission":  {func(c *configs.Config) { c.Admission[0].Remote = &configs.Remote[core.Admitter]{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Run{files: []string{"default.yaml"}}
			c, err := o.load(r, Environment{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"jobs"}, c.Output.Write); diff != "" || c.Output.Dir != "runs" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			tc.change(c)
			if err := r.identify(c, "build"); err != nil || r.outside != tc.want || len(r.Hash) != 64 || r.ID() != r.Hash[:12] {
				t.Errorf("outside %v, hash %q, error %v; want %v", r.outside, r.Hash, err, tc.want)
			}
		})
	}
}

// An exploration that cannot keep what it runs ends, and so does one that is told to.
func TestExploreEnds(t *testing.T) {
	s, err := Parse("s.yaml", "s", []byte("version: 1\nset: {workload.config.jobs: 2}\naxes: {scheduler: [fifo, srtf]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Catalog: quartet.Builtins(), Dir: t.TempDir(), Workers: 1}
	enough := errors.New("enough")
	if _, err := Explore(t.Context(), s, o, func([]Row) ([]int, error) { return nil, enough }); !errors.Is(err, enough) {
		t.Errorf("error %v, want the one given", err)
	}
	steps := 0
	_, err = Explore(t.Context(), s, o, func([]Row) ([]int, error) {
		if steps++; steps > 1 {
			return nil, enough
		}
		return []int{1}, os.RemoveAll(filepath.Join(o.Dir, storeFolder))
	})
	if err == nil || errors.Is(err, enough) || !strings.Contains(err.Error(), storeFolder) {
		t.Errorf("error %v, want that of the folder that is gone", err)
	}
}
