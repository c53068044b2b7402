package study

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// rich is a study that says everything.
const rich = `version: 1
name: full
base: [default.yaml]
set: {round.interval: 30s, sample.window: {jobs: 5}}
axes:
  scheduler:
  - fifo
  - {name: second, files: [elastic.yaml], set: {pipeline.allocation.type: srtf}}
  - mine.yaml
  workload:
  - default
  - trace.csv
  - {name: by span, set: {workload.type: generated}, windows: {span: 2h, count: 3}}
  - {name: by jobs, windows: {jobs: 10, count: 2, first_job: 4}}
  load: {by: compression, values: [0.5, 2.5]}
  color: [{name: red, set: {round.interval: 1m}}]
seeds: {first: 7, count: 4, until: {metric: makespan_seconds, half_width: 2%, most: 80}}
baseline: {scheduler: second}
metrics: [jct_seconds.mean, makespan_seconds]
`

func settled(assignments ...any) (list []Setting) {
	for i := 0; i < len(assignments); i += 2 {
		list = append(list, Setting{Path: assignments[i].(string), Value: assignments[i+1]})
	}
	return list
}

func TestParse(t *testing.T) {
	got, err := Parse("s.yaml", "s", []byte(rich))
	if err != nil {
		t.Fatal(err)
	}
	want := &Study{
		Name: "full", Base: []string{"default.yaml"}, Set: settled("round.interval", "30s", "sample.window", map[string]any{"jobs": 5}),
		Axes: []Axis{
			{"scheduler", []Item{
				{Name: "fifo", Set: settled("pipeline.allocation.type", "fifo")},
				{Name: "second", Files: []string{"elastic.yaml"}, Set: settled("pipeline.allocation.type", "srtf")},
				{Name: "mine.yaml", Files: []string{"mine.yaml"}},
			}},
			{"workload", []Item{
				{Name: "default"},
				{Name: "trace.csv", Set: settled("workload", map[string]any{"type": "csv", "config": map[string]any{"path": "trace.csv"}})},
				{Name: "by span", Set: settled("workload.type", "generated"), Windows: &Windows{Span: 2 * time.Hour, Count: 3}},
				{Name: "by jobs", Windows: &Windows{Jobs: 10, Count: 2, FirstJob: 4}},
			}},
			{"load", []Item{
				{Name: "0.5", Set: settled("sample.load.factor", 0.5, "sample.load.by", "compression")},
				{Name: "2.5", Set: settled("sample.load.factor", 2.5, "sample.load.by", "compression")},
			}},
			{"color", []Item{{Name: "red", Set: settled("round.interval", "1m")}}},
		},
		Seeds:    Seeds{First: 7, Count: 4, Until: &Until{Metric: "makespan_seconds", HalfWidth: "2%", Most: 80, share: 0.02}},
		Compared: 0, Baseline: 1, Metrics: []string{"jct_seconds.mean", "makespan_seconds"},
	}
	same := cmp.Options{cmpopts.IgnoreTypes(core.Position{}), cmpopts.EquateEmpty(), cmp.AllowUnexported(Study{}, Until{})}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("study (-want +got):\n%s", diff)
	}
	for place, at := range map[string]core.Position{
		"s.yaml:4:7": got.Set[0].At, "s.yaml:7:5": got.Axes[0].Items[0].At, "s.yaml:8:5": got.Axes[0].Items[1].At, "s.yaml:15:36": got.Axes[2].Items[0].At,
	} {
		if at.String() != place {
			t.Errorf("%v, want %s", at, place)
		}
	}
	if at := got.Axes[2].Items[1].Set[1].At; at.String() != "s.yaml:15:41" {
		t.Errorf("the setting of a load is at %v", at)
	}
	// What is written says the same.
	dir := t.TempDir()
	text, err := yaml.Marshal(got.document(dir))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("s.yaml", "other", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want.Axes[0].Items[2].Files[0], want.Seeds.Until.share = again.Axes[0].Items[2].Files[0], 0.02
	if diff := cmp.Diff(want, again, same); diff != "" || !filepath.IsAbs(filepath.Join(dir, again.Axes[0].Items[2].Files[0])) {
		t.Errorf("read again (-want +got):\n%s\n%s", diff, text)
	}
}

// What a study leaves out is what most want.
func TestParseLeavesOut(t *testing.T) {
	for name, tc := range map[string]struct {
		text               string
		compared, baseline int
	}{
		"a scheduler alone":        {"axes: {scheduler: [fifo]}", 0, -1},
		"two schedulers":           {"axes: {scheduler: [fifo, srtf]}", 0, -1},
		"compared with itself":     {"axes: {scheduler: [fifo]}\nbaseline: {scheduler: fifo}", 0, -1},
		"compared with the first":  {"axes: {scheduler: [fifo, srtf]}\nbaseline: {scheduler: fifo}", 0, 0},
		"compared":                 {"axes: {load: [1, 2], scheduler: [fifo, srtf]}\nbaseline: {scheduler: srtf}", 1, 1},
		"the second axis":          {"axes: {load: [1, 2], scheduler: [fifo, srtf]}", 1, -1},
		"another axis is compared": {"axes: {load: [1, 2], scheduler: [fifo, srtf]}\nbaseline: {load: 2}", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse("s.yaml", "plain", []byte("version: 1\n"+tc.text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != "plain" || s.Seeds != (Seeds{First: 1, Count: 1}) || s.Compared != tc.compared || s.Baseline != tc.baseline {
				t.Errorf("%+v", s)
			}
			if diff := cmp.Diff(defaultMetrics, s.Metrics); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
			document, err := yaml.Marshal(s.document(t.TempDir()))
			if err != nil || strings.Contains(string(document), "baseline:") != (tc.baseline >= 0) {
				t.Errorf("error %v, written as\n%s", err, document)
			}
		})
	}
}

// Each thing that is wrong with the form of a study is told, and nothing else.
func TestParseProblems(t *testing.T) {
	const until = "axes: {scheduler: [fifo, srtf]}\nbaseline: {scheduler: fifo}\nseeds: "
	for name, tc := range map[string]struct {
		text string
		want string // empty for none
	}{
		"an odd axis":                   {"axes: {Load: [1]}", `"Load" is no name of an axis; use small letters, digits and "_"`},
		"a column":                      {"axes: {makespan_seconds: [1]}", `"makespan_seconds" is a column of the tables; choose another name`},
		"no list":                       {"axes: {scheduler: fifo}", "s.yaml:2:8: axes.scheduler: expected a list of items"},
		"an empty name":                 {"axes: {scheduler: [{name: ' '}]}", "the name of an item is empty"},
		"a name of control characters":  {"axes: {scheduler: [{name: \"a\\tb\"}]}", `the name "a\tb" has control characters`},
		"no item of the axis":           {"axes: {color: [red]}", "red is no item of this axis: write {name: …, set: {path: value}}"},
		"a load of nothing":             {"axes: {load: [0]}", "0 is no load: a load is a number above 0"},
		"an endless load":               {"axes: {load: [.inf]}", "+Inf is no load"},
		"a load in words":               {"axes: {load: [much]}", "much is no load"},
		"a load in another way":         {"axes: {load: {by: magic, values: [1]}}", `unknown value "magic"`},
		"fields of another axis":        {"axes: {scheduler: {by: compression, values: [1]}}", "expected a list of items"},
		"windows of a scheduler":        {"axes: {scheduler: [{name: a, windows: {jobs: 1, count: 1}}]}", "axes.scheduler[0].windows: only items of the axis workload have windows"},
		"windows of nothing":            {"axes: {workload: [{name: a, windows: {count: 1}}]}", "axes.workload[0].windows: needs jobs or span, and not both"},
		"windows of both":               {"axes: {workload: [{name: a, windows: {jobs: 1, span: 1h, count: 1}}]}", "needs jobs or span, and not both"},
		"a span from a job on":          {"axes: {workload: [{name: a, windows: {first_job: 1, span: 1h, count: 1}}]}", "first_job and stride go with jobs only"},
		"windows from a job on":         {"axes: {workload: [{name: a, windows: {first_job: 1, jobs: 1, count: 1}}]}", ""},
		"windows without a count":       {"axes: {workload: [{name: a, windows: {jobs: 1}}]}", "axes.workload[0].windows.count"},
		"until in words":                {until + "{until: enough}", "seeds.until: expected {metric: …, half_width: 2%, most: 40}"},
		"a width":                       {until + "{until: {metric: makespan_seconds, half_width: '0.02', most: 20}}", ""},
		"an alias":                      {"axes: {scheduler: &a [fifo], other: *a}", "s.yaml:2:37: aliases are not supported; repeat the value"},
		"a setting by an alias":         {"axes: {scheduler: [{name: a, set: &m {seed: 1}}, {name: b, set: *m}]}", "aliases are not supported"},
		"a merged mapping":              {"axes: {scheduler: [{<<: {name: a}}]}", "aliases are not supported"},
		"a merge of an alias":           {"set: &m {round.interval: 1s}\naxes: {scheduler: [{name: a, set: {<<: *m}}]}", "aliases are not supported"},
		"a figure of no item":           {"axes: {scheduler: [fifo, srtf]}\npublished: [{figure: F, metric: jct_seconds.mean, at: {scheduler: []}, value: 1}]", "published[0].at.scheduler: names no item"},
		"an item with no other":         {"axes: {scheduler: [{name: fifo, with: {load: []}}, srtf], load: [1, 2]}", "axes.scheduler[0].with.load: names no item"},
		"seeds that wrap around":        {"axes: {scheduler: [fifo]}\nseeds: {first: 18446744073709551615, count: 2}", "seeds.first: 18446744073709551615 leaves no room for the seeds after it"},
		"windows of a nanosecond":       {"axes: {workload: [{name: a, windows: {span: 1ns, count: 1}}]}", "axes.workload[0].windows.span: 1ns is too short"},
		"a width as a number":           {until + "{until: {metric: makespan_seconds, half_width: 0.02, most: 20}}", ""},
		"a width of nothing":            {until + "{until: {metric: makespan_seconds, half_width: 0%, most: 9}}", `seeds.until.half_width: "0%" is no width; write 2% or 0.02`},
		"a width of all":                {until + "{until: {metric: makespan_seconds, half_width: 100%, most: 9}}", `"100%" is no width`},
		"a width of 99 %":               {until + "{until: {metric: makespan_seconds, half_width: 99 %, most: 9}}", ""},
		"a width in words":              {until + "{until: {metric: makespan_seconds, half_width: narrow, most: 9}}", `"narrow" is no width`},
		"fewer than at a time":          {until + "{count: 10, until: {metric: makespan_seconds, half_width: 2%, most: 9}}", "9 is less than count, 10"},
		"as many as at a time":          {until + "{count: 9, until: {metric: makespan_seconds, half_width: 2%, most: 9}}", ""},
		"twenty looks":                  {until + "{count: 3, until: {metric: makespan_seconds, half_width: 2%, most: 60}}", ""},
		"twenty-one looks":              {until + "{count: 3, until: {metric: makespan_seconds, half_width: 2%, most: 61}}", "seeds.until.most: takes more than 20 looks; count seeds are added at a time: raise count to 4"},
		"twenty-seven looks":            {until + "{count: 3, until: {metric: makespan_seconds, half_width: 2%, most: 80}}", "raise count to 4"},
		"a metric that there is not":    {until + "{until: {metric: luck, half_width: 2%, most: 9}}", "seeds.until.metric"},
		"two axes compared":             {"axes: {load: [1], scheduler: [fifo]}\nbaseline: {load: 1, scheduler: fifo}", "baseline: names more than one axis"},
		"an axis that there is not":     {"axes: {load: [1]}\nbaseline: {scheduler: fifo}", `baseline.scheduler: there is no axis "scheduler"`},
		"an item that there is not":     {"axes: {load: [1, 2]}\nbaseline: {load: 3}", `baseline.load: the axis has no item "3"`},
		"a metric twice":                {"axes: {load: [1]}\nmetrics: [makespan_seconds, makespan_seconds]", `metrics[1]: "makespan_seconds" is named twice`},
		"until without another item":    {"axes: {scheduler: [fifo]}\nbaseline: {scheduler: fifo}\nseeds: {until: {metric: makespan_seconds, half_width: 2%, most: 9}}", "seeds.until: needs a baseline, and an item beside it"},
		"until of windows only":         {"axes: {scheduler: [fifo, srtf], workload: [{name: w, set: {}, windows: {jobs: 5, count: 5}}]}\nbaseline: {scheduler: fifo}\nseeds: {until: {metric: makespan_seconds, half_width: 2%, most: 9}}", "seeds.until: adds no seeds: the replicates of every workload are windows; leave it out, and raise count of windows"},
		"until of windows and seeds":    {"axes: {scheduler: [fifo, srtf], workload: [{name: w, set: {}, windows: {jobs: 5, count: 5}}, default]}\nbaseline: {scheduler: fifo}\nseeds: {until: {metric: makespan_seconds, half_width: 2%, most: 9}}", ""},
		"what the study sets":           {"set: {seed: 1}\naxes: {load: [1]}", `"seed" is for the study to set; use seeds for seeds`},
		"a name of its own":             {"set: {name: a}\naxes: {load: [1]}", `"name" is for the study to set`},
		"an output of its own":          {"set: {output.folder: a}\naxes: {load: [1]}", `"output.folder" is for the study to set`},
		"a setting that begins like it": {"set: {seeds: 1}\naxes: {load: [1]}", ""},
		"an item that sets the seed":    {"axes: {scheduler: [{name: a, set: {seed: 1}}]}", `"seed" is for the study to set`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("s.yaml", "s", []byte("version: 1\n"+tc.text+"\n"))
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("error\n%v\nwant one problem with\n%s", err, tc.want)
			}
		})
	}
}

// A study of short values is what a file with the same would be, and tells what is wrong with each.
func TestBuilder(t *testing.T) {
	b := Builder{Name: "short", Seeds: 3, Sets: []string{"round.interval=30s", "sample.load={by: nodes}"}, Baseline: "srtf"}
	b.Axis("--load", "load", []string{"0.5", "2"})
	b.Axis("--workload", "workload", nil)
	b.Axis("SCHEDULER", "scheduler", []string{"fifo", "srtf", "mine.yml"})
	got, err := b.Study()
	if err != nil {
		t.Fatal(err)
	}
	want := &Study{
		Name: "short", Base: []string{"default.yaml"}, Seeds: Seeds{First: 1, Count: 3}, Compared: 1, Baseline: 1, Metrics: defaultMetrics,
		Set: settled("round.interval", "30s", "sample.load", map[string]any{"by": "nodes"}),
		Axes: []Axis{
			{"load", []Item{{Name: "0.5", Set: settled("sample.load.factor", 0.5)}, {Name: "2", Set: settled("sample.load.factor", 2.0)}}},
			{"scheduler", []Item{
				{Name: "fifo", Set: settled("pipeline.allocation.type", "fifo")},
				{Name: "srtf", Set: settled("pipeline.allocation.type", "srtf")},
				{Name: "mine.yml", Files: []string{"mine.yml"}},
			}},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(core.Position{}), cmpopts.EquateEmpty(), cmp.AllowUnexported(Study{})); diff != "" {
		t.Errorf("study (-want +got):\n%s", diff)
	}
	if at := got.Axes[0].Items[1].Set[0].At; at.File != "--load" || got.Axes[1].Items[2].At.File != "SCHEDULER" || got.Set[0].At.File != "--set" {
		t.Errorf("a load is of %v", at)
	}

	b = Builder{Name: "a/b", Base: []string{"elastic.yaml"}, Sets: []string{"round.interval", "a={", "b=1"}, Baseline: "fif"}
	b.Axis("SCHEDULER", "scheduler", []string{"fifo", "fifo", "srtf"})
	b.Axis("--load", "load", []string{"0", "much"})
	_, err = b.Study()
	wanted := []string{
		`SCHEDULER: "fifo" is given twice`, "--load: 0 is no load: a load is a number above 0", "--load: much is no load: a load is a number above 0",
		`--name: "a/b" is not a plain file name; use letters, digits, "-", "_" and "."`, "--seeds: must be at least 1, got 0",
		`--set: "round.interval" is not of the form path=value; for example round.interval=30s`, `--set: "a={" is not of the form path=value; for example round.interval=30s`,
		`--baseline: no scheduler is called "fif"; did you mean "fifo"?`,
	}
	var lines []string
	if err != nil {
		lines = strings.Split(err.Error(), "\n")
	}
	for _, want := range wanted {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("no %q among the problems", want)
		}
	}
	if len(lines) != len(wanted) {
		t.Errorf("%d problems, want %d:\n%v", len(lines), len(wanted), err)
	}

	b = Builder{Name: "one", Seeds: 1, Base: []string{"elastic.yaml"}}
	b.Axis("SCHEDULER", "scheduler", []string{"fifo"})
	if s, err := b.Study(); err != nil || s.Baseline != -1 || s.Base[0] != "elastic.yaml" {
		t.Errorf("%+v, error %v: one scheduler is compared with nothing", s, err)
	}
}

func TestNamesOfEngines(t *testing.T) {
	for name, want := range map[string]string{
		"Five_2": "quartet-five-2", "a0z9": "quartet-a0z9", "_a.": "quartet-a", "é": "quartet-0e048d3e", strings.Repeat("x", 40): "quartet-" + strings.Repeat("x", 40), strings.Repeat("x", 50): "quartet-" + strings.Repeat("x", 40) + "-ac628a03",
		strings.Repeat("x", 39) + "-y": "quartet-" + strings.Repeat("x", 39) + "-816e6769",
	} {
		if got := label(name); got != want {
			t.Errorf("%q is labelled %q, want %q", name, got, want)
		}
	}
	for text, want := range map[string]string{"": "''", "a/b-c_d.e=AZaz09": "a/b-c_d.e=AZaz09", "a b": "'a b'", "it's": `'it'\''s'`, "a:b": "'a:b'", "é": "'é'", "`": "'`'", "@": "'@'", "[": "'['", "{": "'{'"} {
		if got := ShellQuoted(text); got != want {
			t.Errorf("%q is quoted %s, want %s", text, got, want)
		}
	}
}

// A study is read, or refused with a place; what was read can be written and read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"axes: {scheduler: [fifo, srtf]}\nseeds: {count: 3, until: {metric: makespan_seconds, half_width: 2%, most: 9}}\nbaseline: {scheduler: fifo}",
		"axes: {scheduler: [{name: a, set: &m {round.interval: 1s}}, {name: b, set: *m, with: {load: 1}}], load: {by: compression, values: [1, 2]}}",
		"axes: {workload: [{name: a, windows: {jobs: 3, count: 2}}]}\npublished: [{figure: F, metric: jct_seconds.mean, at: {workload: a}, value: 1h}]\nwrite: [usage]",
	} {
		f.Add([]byte("version: 1\n" + seed + "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("s.yaml", "fuzz", text)
		if err != nil {
			if _, ok := errors.AsType[core.Diagnostics](err); !ok {
				if _, ok := errors.AsType[*yamlpos.SyntaxError](err); !ok {
					t.Fatalf("%T %v", err, err)
				}
			}
			return
		}
		document, err := yaml.Marshal(s.document(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("s.yaml", "fuzz", document); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
	})
}
