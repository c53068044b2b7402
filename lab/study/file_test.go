package study_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/study"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What is wrong with a study is told with its place before anything is run.
func TestProblems(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(trace, []byte("name,submit_s,duration_s,replicas\na,0,60,1\nb,10,60,1\nc,20,60,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	traced := "  - {name: t, set: {workload: {type: csv, config: {path: " + trace + "}}}"
	month := filepath.Join(filepath.Dir(trace), "month.csv")
	if err := os.WriteFile(month, []byte("name,submit_s,duration_s,replicas\na,0,60,1\nb,2592000,60,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seedsOf := func(trace, more string) string {
		return "version: 1\naxes:\n  workload:\n  - {name: t, set: {workload: {type: csv, config: {path: " + trace + "}}" + more + "}}\nseeds: {count: 2}\n"
	}
	cases := map[string]struct{ text, want string }{
		"no axes":           {"version: 1\n", "small.yaml:1:1: axes: there is none"},
		"unknown key":       {"version: 1\naxis: {}\n", `did you mean "axes"`},
		"version":           {"version: 2\naxes: {scheduler: [fifo]}\n", "version 2 is not supported"},
		"no item":           {"version: 1\naxes: {scheduler: []}\n", "axes.scheduler: has no items"},
		"duplicate names":   {"version: 1\naxes:\n  scheduler:\n  - fifo\n  - {name: fifo}\n", `small.yaml:5:5: axes.scheduler[1]: the name "fifo" is given twice`},
		"no seeds":          {"version: 1\naxes: {scheduler: [fifo]}\nseeds: {count: 0}\n", "small.yaml:3:9: seeds.count"},
		"unknown path":      {"version: 1\naxes:\n  scheduler:\n  - {name: a, set: {pipeline.alocation.type: fifo}}\n", "small.yaml:4:21: pipeline.alocation"},
		"unknown type":      {"version: 1\naxes:\n  scheduler:\n  - filo\n", `small.yaml:4:5: pipeline.allocation.type: unknown allocation "filo"; did you mean "fifo"?`},
		"unknown baseline":  {"version: 1\naxes: {scheduler: [fifo]}\nbaseline: {scheduler: fif}\n", `did you mean "fifo"?`},
		"unknown metric":    {"version: 1\naxes: {scheduler: [fifo]}\nmetrics: [jct.mean]\n", `unknown metric "jct.mean"`},
		"metric of pairs":   {"version: 1\naxes: {scheduler: [fifo, srtf]}\nmetrics: [jct_seconds.restricted_mean]\n", `metrics[0]: "jct_seconds.restricted_mean" is of two runs together; add baseline`},
		"figure of pairs":   {"version: 1\naxes: {scheduler: [fifo, srtf]}\nbaseline: {scheduler: fifo}\npublished: [{figure: T, metric: jct_seconds.common_mean, value: 1}]\n", `unknown metric "jct_seconds.common_mean"`},
		"reserved axis":     {"version: 1\naxes: {seed: [1]}\n", `"seed" is a column of the tables`},
		"reserved name":     {"version: 1\naxes: {scheduler: [{name: all}]}\n", `"all" stands for all items`},
		"negative load":     {"version: 1\naxes: {scheduler: [fifo], load: [-1]}\n", "-1 is no load"},
		"name":              {"version: 1\nname: a/b\naxes: {scheduler: [fifo]}\n", `"a/b" is not a plain file name`},
		"two seeds":         {"version: 1\naxes: {scheduler: [fifo]}\nseeds: {config: true, count: 2}\n", "small.yaml:3:23: seeds.count: every run has the seed of its config; leave out config, or count"},
		"added and config":  {"version: 1\naxes: {scheduler: [fifo, srtf]}\nbaseline: {scheduler: fifo}\nseeds: {config: true, until: {}}\n", "seeds.until: every run has the seed of its config"},
		"seed set":          {"version: 1\nset: {seed: 4}\naxes: {scheduler: [fifo]}\n", `"seed" is for the study to set`},
		"until alone":       {"version: 1\naxes: {scheduler: [fifo]}\nseeds: {until: {metric: makespan_seconds, half_width: 2%, most: 9}}\n", "needs a baseline"},
		"seeds of a trace":  {"version: 1\naxes:\n  workload:\n" + traced + "}\nseeds: {count: 2}\n", "the same for every seed, so that its runs would be no replicates; give the item windows"},
		"seeds of a minute": {seedsOf(trace, ""), "or resample it with sample.blocks.length: 1s"},
		"seeds of a month":  {seedsOf(month, ""), "or resample it with sample.blocks.length: 24h"},
		"seeds of a day":    {seedsOf(month, ", sample: {window: {from: 1h, span: 24h}}"), "or resample it with sample.blocks.length: 1h"},
		"seeds of minutes":  {seedsOf(month, ", sample: {window: {from: 719h}}"), "or resample it with sample.blocks.length: 3m"},
		"seeds of jobs":     {seedsOf(month, ", sample: {window: {jobs: 1}}"), "or resample it with sample.blocks.length"},
		"windows overlap":   {"version: 1\naxes:\n  workload:\n" + traced + ", windows: {jobs: 2, count: 2}}\n", "small.yaml:4:5: 2 windows of 2 jobs overlap: the trace has room for 1"},
		"with no axis":      {"version: 1\naxes:\n  scheduler:\n  - {name: fifo, with: {laod: \"1\"}}\n  load: [1]\n", `small.yaml:4:18: axes.scheduler[0].with: there is no axis "laod"; did you mean "load"?`},
		"with itself":       {"version: 1\naxes:\n  scheduler:\n  - {name: fifo, with: {scheduler: fifo}}\n", `"scheduler" is its own axis`},
		"with no item":      {"version: 1\naxes:\n  scheduler:\n  - {name: fifo, with: {load: [1, 2]}}\n  load: [1]\n", `axes.scheduler[0].with.load: the axis has no item "2"`},
		"nothing together":  {"version: 1\naxes:\n  scheduler:\n  - {name: fifo, with: {a: x}}\n  a:\n  - {name: x, with: {b: \"y\"}}\n  - {name: z}\n  b:\n  - {name: \"y\", with: {a: z}}\n", "no items go together"},
		"no such file":      {"version: 1\naxes: {scheduler: [fifo]}\nwrite: [usge]\n", `did you mean "usage"?`},
		"file twice":        {"version: 1\naxes: {scheduler: [fifo]}\nwrite: [usage, usage]\n", `write[1]: "usage" is named twice`},
		"no figure":         {"version: 1\naxes: {scheduler: [fifo]}\npublished: [{metric: makespan_seconds, value: 1}]\n", "published[0].figure"},
		"metric of figure":  {"version: 1\naxes: {scheduler: [fifo]}\npublished: [{figure: T, metric: makespan, value: 1}]\n", `small.yaml:3:25: published[0].metric: unknown metric "makespan"`},
		"value in words":    {"version: 1\naxes: {scheduler: [fifo]}\npublished: [{figure: T, metric: makespan_seconds, value: long}]\n", `published[0].value: "long" is no value of makespan_seconds; write seconds, or a duration such as 1.2h`},
		"duration of jobs":  {"version: 1\naxes: {scheduler: [fifo]}\npublished: [{figure: T, metric: restarts.mean, value: 1h}]\n", `"1h" is no value of restarts.mean; write a number`},
		"figure of no item": {"version: 1\naxes: {scheduler: [fifo]}\npublished: [{figure: T, metric: makespan_seconds, at: {scheduler: fif}, value: 1}]\n", `did you mean "fifo"?`},
		"figure of two":     {"version: 1\naxes: {scheduler: [fifo, srtf]}\npublished: [{figure: T, metric: makespan_seconds, at: {scheduler: [fifo, srtf]}, value: 1}]\n", "names more than one item"},
		"of one seed":       {"version: 1\naxes: {workload: [missing.csv, gone.csv], scheduler: [fifo, srtf]}\n", "missing.csv: cannot be read"},
		"missing trace":     {"version: 1\naxes: {workload: [missing.csv]}\nseeds: {count: 2}\n", "missing.csv: cannot be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			s, err := study.Parse("small.yaml", "small", []byte(tc.text))
			if err == nil {
				_, err = study.Execute(t.Context(), s, options(dir))
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Error("a folder was made")
			}
		})
	}
}

// Windows of a trace are its replicates, and no baseline is needed.
func TestWindowsReplicateATrace(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.csv")
	var rows strings.Builder
	rows.WriteString("name,submit_s,duration_s,replicas\n")
	for _, name := range "abcdefghij" {
		rows.WriteString(string(name) + "," + string('0'+(name-'a')) + "0,60,1\n")
	}
	if err := os.WriteFile(trace, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "version: 1\naxes:\n  workload:\n  - {name: t, set: {workload: {type: csv, config: {path: " + trace + "}}}, windows: {jobs: 3, count: 3}}\n"
	o := options(t.TempDir())
	r := execute(t, text, o)
	if len(r.Rows) != 3 || r.Failed > 0 || r.Rows[2].Summary.Jobs.Submitted != 3 {
		t.Fatalf("%d rows, %d failed", len(r.Rows), r.Failed)
	}
	// What is kept is of the trace as it was.
	if err := os.WriteFile(trace, []byte(strings.ReplaceAll(rows.String(), ",60,", ",70,")), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := execute(t, text, o); r.Ran != 3 {
		t.Errorf("a changed trace: %d runs, want 3", r.Ran)
	}
	again, err := os.ReadFile(filepath.Join(o.Dir, study.StudyFile))
	if err != nil {
		t.Fatal(err)
	}
	if r := execute(t, string(again), o); r.Ran != 0 {
		t.Errorf("the resolved study ran %d, want none", r.Ran)
	}
}

// One process at a time works on a study.
func TestTheFolderIsLocked(t *testing.T) {
	o := options(t.TempDir())
	var inner error
	o.Progress = func(done, _ int) {
		if done == 1 {
			other := options(o.Dir)
			_, inner = study.Execute(t.Context(), parse(t, small), other)
		}
	}
	execute(t, small, o)
	if inner == nil || !strings.Contains(inner.Error(), "works on") {
		t.Errorf("error %v, want one of the lock", inner)
	}
}

func TestManifests(t *testing.T) {
	s := study.Shards{Name: "Five_2", Study: "my studies/it's five.yaml", Out: "studies", Dir: "studies/Five_2", Count: 8, Image: "example.org/quartet:1", Claim: "data"}
	named := s
	named.Name, named.Rename, named.Plugins = "___", true, []string{"plugins", "my plugins"}
	named.Study, named.Out, named.Dir = "-s.yaml", "100% \"new\"", "100% \"new\"/___"
	for name, got := range map[string][]byte{
		"slurm.sh": s.Slurm(), "job.yaml": s.Kubernetes(), "slurm-named.sh": named.Slurm(), "job-named.yaml": named.Kubernetes(),
	} {
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The name of a job is a label of DNS with room for the index of a pod, whatever the name of the study.
func TestNamesOfKubernetes(t *testing.T) {
	plain := regexp.MustCompile(`(?m)^  name: ([a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?)$`)
	seen := map[string]string{}
	for _, name := range []string{"five", "___", "__", "_", "a.", "-", strings.Repeat("a", 200), strings.Repeat("a", 201), strings.Repeat("a", 39) + strings.Repeat("_", 50), strings.Repeat(".", 99)} {
		found := plain.FindSubmatch(study.Shards{Name: name}.Kubernetes())
		if found == nil {
			t.Errorf("%q has no name of a job:\n%s", name, study.Shards{Name: name}.Kubernetes())
			continue
		}
		if other, again := seen[string(found[1])]; again {
			t.Errorf("%q and %q are both %s", name, other, found[1])
		}
		seen[string(found[1])] = name
	}
}

// A study may leave the seeds to configs and settings: then every cell is one run, and what it writes down says so.
func TestSeedsOfConfigs(t *testing.T) {
	text := `
version: 1
base: [default.yaml]
set: {workload.config.jobs: 6}
axes:
  seeded:
    - {name: by the config, set: {}}
    - {name: by a setting, set: {seed: 9}}
seeds: {config: true}
`
	o := options(t.TempDir())
	r := execute(t, text, o)
	if len(r.Rows) != 2 || r.Rows[0].Seed != 1 || r.Rows[1].Seed != 9 || r.Rows[1].Summary.Seed != 9 {
		t.Fatalf("%+v, want runs with seeds 1 and 9", r.Rows)
	}
	resolved, err := os.ReadFile(filepath.Join(o.Dir, study.StudyFile))
	if err != nil {
		t.Fatal(err)
	}
	if again := execute(t, string(resolved), o); again.Ran != 0 || len(again.Rows) != 2 {
		t.Errorf("the resolved study ran %d of %d, want none of 2", again.Ran, len(again.Rows))
	}
}
