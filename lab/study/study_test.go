package study_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/study"
)

// small is two workloads of few jobs at two loads under three schedulers.
const small = `
version: 1
name: small
base: [default.yaml]
set: {workload.config.jobs: 6, workload.config.span: 30m, round.interval: 5m}
axes:
  scheduler:
    - {name: fifo, set: {pipeline.allocation.type: fifo}}
    - srtf
    - {name: las, set: {pipeline.allocation: {type: las}}}
  workload:
    - {name: apps, set: {}}
    - {name: "rigid/√ 2,", set: {workload.config.applications: false}}
  load: [0.5, 1]
seeds: {count: 6}
baseline: {scheduler: fifo}
metrics: [jct_seconds.mean, restarts.mean, makespan_seconds]
`

func parse(t *testing.T, text string) *study.Study {
	t.Helper()
	s, err := study.Parse("small.yaml", "small", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(dir string) study.Options {
	return study.Options{Catalog: quartet.Builtins(), Dir: dir, Workers: 2, Build: "test"}
}

func execute(t *testing.T, text string, o study.Options) *study.Result {
	t.Helper()
	r, err := study.Execute(t.Context(), parse(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tables are the files of a study that must not depend on how it was run.
func tables(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{study.RunsFile, study.StatsFile, study.WarningsFile, study.JobsFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

func records(t *testing.T, text string) []map[string]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	for _, row := range rows[1:] {
		m := map[string]string{}
		for i, name := range rows[0] {
			m[name] = row[i]
		}
		list = append(list, m)
	}
	return list
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	if text == "" {
		return math.NaN()
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The bytes of the tables are those of the study, however many workers or shards ran it, and in how many pieces.
func TestTablesDoNotDependOnHowAStudyIsRun(t *testing.T) {
	first := t.TempDir()
	r := execute(t, small, options(first))
	if r.Ran != 72 || r.Failed != 0 || r.Missing != 0 {
		t.Fatalf("ran %d, failed %d, missing %d of %d", r.Ran, r.Failed, r.Missing, len(r.Rows))
	}
	want := tables(t, first)
	cases := map[string]func(t *testing.T, dir string){
		"one worker": func(t *testing.T, dir string) {
			o := options(dir)
			o.Workers = 1
			execute(t, small, o)
		},
		"eight workers": func(t *testing.T, dir string) {
			o := options(dir)
			o.Workers = 8
			execute(t, small, o)
		},
		"interrupted again and again": func(t *testing.T, dir string) {
			for {
				ctx, cancel := context.WithCancel(t.Context())
				o := options(dir)
				o.Progress = func(done, _ int) {
					if done == 7 {
						cancel()
					}
				}
				r, err := study.Execute(ctx, parse(t, small), o)
				cancel()
				if err == nil {
					return
				}
				if !errors.Is(err, context.Canceled) || r == nil || r.Missing == 0 {
					t.Fatalf("result %v, error %v", r, err)
				}
			}
		},
		"what is kept is damaged": func(t *testing.T, dir string) {
			execute(t, small, options(dir))
			kept, err := filepath.Glob(filepath.Join(dir, ".runs", "*.jobs.gz"))
			if err != nil || len(kept) < 3 {
				t.Fatalf("%d runs are kept, error %v", len(kept), err)
			}
			for i, damage := range []func(path string) error{
				func(path string) error { return os.Truncate(path, 0) },
				func(path string) error { return os.Truncate(path, 40) },
				os.Remove,
			} {
				if err := damage(kept[i]); err != nil {
					t.Fatal(err)
				}
			}
			if r := execute(t, small, options(dir)); r.Ran != 3 {
				t.Errorf("ran %d, want the 3 that are damaged", r.Ran)
			}
		},
		"interrupted when all is run": func(t *testing.T, dir string) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := options(dir)
			o.Progress = func(done, of int) {
				if done == of {
					cancel()
				}
			}
			if r, err := study.Execute(ctx, parse(t, small), o); err != nil || r.Missing > 0 {
				t.Errorf("error %v, want the whole study", err)
			}
		},
		"shards in one folder": func(t *testing.T, dir string) {
			for shard := range 3 {
				o := options(dir)
				o.Shard, o.Shards = shard+1, 3
				execute(t, small, o)
			}
			merge(t, dir)
		},
		"shards in folders of their own": func(t *testing.T, dir string) {
			var folders []string
			for shard := range 4 {
				o := options(t.TempDir())
				o.Shard, o.Shards = shard+1, 4
				execute(t, small, o)
				folders = append(folders, o.Dir)
			}
			merge(t, dir, folders...)
		},
		"edited and edited back": func(t *testing.T, dir string) {
			execute(t, strings.ReplaceAll(small, "count: 6", "count: 2"), options(dir))
			if r := execute(t, small, options(dir)); r.Ran != 48 || r.Reused != 24 {
				t.Errorf("ran %d, reused %d; want 48, 24", r.Ran, r.Reused)
			}
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run(t, dir)
			if diff := cmp.Diff(want, tables(t, dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if r := execute(t, small, options(first)); r.Ran != 0 || r.Reused != 72 {
		t.Errorf("a repeat ran %d and reused %d; want 0, 72", r.Ran, r.Reused)
	}
}

// Looks that add seeds count each run once, whether it was run, kept or taken from another folder.
func TestLooksCountRunsOnce(t *testing.T) {
	const text = "version: 1\nbase: [default.yaml]\nset: {workload.config.jobs: 40, workload.config.span: 30m}\naxes: {scheduler: [fifo, srtf]}\nbaseline: {scheduler: fifo}\n" +
		"seeds: {count: 5, until: {metric: jct_seconds.mean, half_width: 0.001%, most: 15}}\n"
	o := options(t.TempDir())
	for _, want := range [][2]int{{30, 0}, {0, 30}} {
		if r := execute(t, text, o); r.Ran != want[0] || r.Reused != want[1] || len(r.Rows) != 30 || r.Looks != 3 {
			t.Errorf("ran %d and reused %d of %d after %d looks, want %v of 30 after 3", r.Ran, r.Reused, len(r.Rows), r.Looks, want)
		}
	}
	into := options(t.TempDir())
	for _, want := range [][2]int{{30, 0}, {0, 30}} {
		if r, err := study.Merge(t.Context(), parse(t, text), into, []string{o.Dir}); err != nil || r.Ran != want[0] || r.Reused != want[1] {
			t.Errorf("merge: %v, took %d and had %d, want %v", err, r.Ran, r.Reused, want)
		}
	}
}

// Within a trace, too: the level of a metric is its own, whichever metric is compared first.
func TestEveryMetricOfATraceHasItsLevel(t *testing.T) {
	text := `
version: 1
base: [default.yaml]
set: {workload.config.jobs: 120, workload.config.applications: false}
axes:
  scheduler: [fifo, srtf]
  workload:
    - {name: one, windows: {jobs: 100, count: 1}}
    - {name: seeds, set: {workload.config.jobs: 12}}
seeds: {count: 5, until: {metric: METRIC, half_width: 99%, most: 20}}
baseline: {scheduler: fifo}
metrics: [jct_seconds.mean, queueing_seconds.mean, gpu_hours]
`
	within := func(until, metric string) (low, high string) {
		o := options(t.TempDir())
		o.Workers = 1
		execute(t, strings.ReplaceAll(text, "METRIC", until), o)
		for _, row := range records(t, tables(t, o.Dir)[study.StatsFile]) {
			if row["workload"] == "one" && row["metric"] == metric && row["method"] == stats.MethodBlocks {
				return row["t_low"], row["t_high"]
			}
		}
		t.Fatalf("%s is not compared within the trace", metric)
		return "", ""
	}
	const metric = "queueing_seconds.mean"
	low, high := within("makespan_seconds", metric)
	if otherLow, otherHigh := within("jct_seconds.mean", metric); low != otherLow || high != otherHigh {
		t.Errorf("[%s, %s], and [%s, %s] where seeds are added for another metric", low, high, otherLow, otherHigh)
	}
}

// What killed processes left is removed once no shard is at work, and not before.
func TestLeftoversAreSweptAfterShards(t *testing.T) {
	o := options(t.TempDir())
	o.Shard, o.Shards = 1, 2
	left := filepath.Join(o.Dir, ".runs", ".tmp-1")
	o.Progress = func(done, _ int) {
		if done > 1 {
			return
		}
		if err := os.WriteFile(left, nil, 0o644); err != nil {
			t.Error(err)
		}
		if _, err := study.Merge(t.Context(), parse(t, small), options(o.Dir), nil); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(left); err != nil {
			t.Errorf("swept while a shard is at work: %v", err)
		}
	}
	execute(t, small, o)
	if _, err := study.Merge(t.Context(), parse(t, small), options(o.Dir), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want it swept", err)
	}
}

// stats.csv is what core/stats says of runs.csv.
func TestStatsAreThoseOfTheRuns(t *testing.T) {
	dir := t.TempDir()
	execute(t, small, options(dir))
	files := tables(t, dir)
	value := map[string]float64{}
	metrics := map[string]string{"jct_seconds.mean": "jct_seconds_mean", "restarts.mean": "restarts_mean", "makespan_seconds": "makespan_seconds"}
	for _, row := range records(t, files[study.RunsFile]) {
		for _, column := range metrics {
			value[strings.Join([]string{column, row["scheduler"], row["workload"], row["load"], row["seed"]}, "|")] = number(t, row[column])
		}
	}
	rows := records(t, files[study.StatsFile])
	if want := 3 * 2 * 3 * 3; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	compared := 0
	for _, row := range rows {
		var a, b []float64 // of each workload and seed, over loads by their logarithms
		for _, workload := range []string{"apps", "rigid/√ 2,"} {
			for seed := 1; seed <= 6; seed++ {
				var x, y, n float64
				for _, load := range []string{"0.5", "1"} {
					if row["workload"] != workload && row["workload"] != study.Pooled || row["load"] != load && row["load"] != study.Pooled {
						continue
					}
					key := strings.Join([]string{workload, load, strconv.Itoa(seed)}, "|")
					x += math.Log(value[metrics[row["metric"]]+"|"+row["scheduler"]+"|"+key])
					y += math.Log(value[metrics[row["metric"]]+"|fifo|"+key])
					n++
				}
				if n > 0 {
					a, b = append(a, math.Exp(x/n)), append(b, math.Exp(y/n))
				}
			}
		}
		want, err := stats.Compare(a, b, 0.95)
		if err != nil {
			if row["method"] != stats.MethodValues || row["change"] != "" {
				t.Errorf("%v: %v", row, err)
			}
			continue
		}
		compared++
		for column, want := range map[string]float64{
			"n": float64(len(a)), "change": want.Change, "t_low": want.T.Low, "t_high": want.T.High,
			"bca_low": want.BCa.Low, "bca_high": want.BCa.High, "wins": float64(want.Wins), "ties": float64(want.Ties), "wilcoxon_p": want.Wilcoxon,
		} {
			if got := number(t, row[column]); math.Abs(got-want) > 1e-9 && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s %s %s %s: %s is %v, want %v", row["metric"], row["workload"], row["load"], row["scheduler"], column, got, want)
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// The runs of one workload, load and seed are of the same jobs.
func TestSchedulersSeeTheSameJobs(t *testing.T) {
	dir := t.TempDir()
	r := execute(t, small, options(dir))
	f, err := os.Open(filepath.Join(dir, study.JobsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	submitted := map[string]string{}
	for _, row := range records(t, string(text)) {
		submitted[row["run"]] += row["name"] + row["submit_s"] + ","
	}
	first := map[string]string{}
	for _, row := range r.Rows {
		jobs := submitted[row.ID()]
		key := strconv.Itoa(row.Items[1]) + strconv.Itoa(row.Items[2]) + strconv.Itoa(row.Replicate)
		if first[key] == "" {
			first[key] = jobs
		}
		if jobs == "" || jobs != first[key] {
			t.Errorf("run %s: jobs %q, want %q", row.ID(), jobs, first[key])
		}
	}
	if len(first) != 24 {
		t.Errorf("%d workloads, want 24", len(first))
	}
}

// A run of a study is that which the same config comes to alone.
func TestARunIsThatOfItsConfig(t *testing.T) {
	r := execute(t, small, options(t.TempDir()))
	alone, err := quartet.Simulate(t.Context(), quartet.Builtins(), quartet.Options{Files: []string{"default.yaml"}, Sets: []string{
		"workload.config.jobs=6", "workload.config.span=30m", "round.interval=5m", "pipeline.allocation.type=srtf",
		"workload.config.applications=false", "sample.load.factor=0.5", "seed=4",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if cmp.Equal(row.Items, []int{1, 1, 0}) && row.Seed == 4 {
			if diff := cmp.Diff(alone.Summary.JCTSeconds, row.Summary.JCTSeconds); diff != "" {
				t.Errorf("(-alone +study):\n%s", diff)
			}
			return
		}
	}
	t.Error("no such run")
}

// What is told of jobs is no part of what they are, and is shared by those only that are told the same.
func TestEstimatesAreOfTheirItem(t *testing.T) {
	text := `
version: 1
base: [default.yaml]
set: {workload.config.jobs: 30, workload.config.span: 10m, workload.config.applications: false}
axes:
  scheduler: [srtf, fifo]
  estimate:
    - {name: declared, set: {}}
    - {name: noisy, set: {estimate: {source: noisy, sigma: 2}}}
`
	r := execute(t, text, options(t.TempDir()))
	var means []float64
	for _, row := range r.Rows {
		means = append(means, float64(row.Summary.JCTSeconds.Mean))
	}
	if len(means) != 4 || means[0] == means[1] || means[2] != means[3] {
		t.Errorf("mean completion times %v: want those of srtf to differ, and those of fifo to be the same", means)
	}
}

// One failed cell is told of, and loses no other.
func TestAFailedRunLosesNoOther(t *testing.T) {
	broken := core.NewFactory(core.Info{Type: "broken"}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
		return nil, errors.New("out of order")
	})
	o := options(t.TempDir())
	o.Catalog = o.Catalog.WithAllocation(broken)
	r := execute(t, strings.ReplaceAll(small, "- srtf", "- broken"), o)
	if r.Failed != 24 || r.Missing != 0 || len(r.Rows) != 72 {
		t.Fatalf("failed %d, missing %d of %d", r.Failed, r.Missing, len(r.Rows))
	}
	if warnings := tables(t, o.Dir)[study.WarningsFile]; strings.Count(warnings, "out of order") != 24 {
		t.Errorf("warnings:\n%s", warnings)
	}
	if r := execute(t, strings.ReplaceAll(small, "- srtf", "- broken"), o); r.Ran != 24 || r.Reused != 48 {
		t.Errorf("a repeat ran %d and reused %d; want those that failed, 24, and 48", r.Ran, r.Reused)
	}
}

// Seeds are added until the intervals are narrow, or until there are as many as allowed.
func TestSeedsAreAddedUntilIntervalsAreNarrow(t *testing.T) {
	cases := map[string]struct {
		width  string
		narrow bool
		looks  int
		runs   int
	}{
		"never narrow":   {"0.001%", false, 3, 12 * 18},
		"narrow at once": {"99%", true, 1, 12 * 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			until := "count: 6, until: {metric: makespan_seconds, half_width: " + tc.width + ", most: 18}"
			text := strings.NewReplacer("count: 6", until, "config.jobs: 6", "config.jobs: 12").Replace(small) // of fewer jobs all are alike
			r := execute(t, text, options(t.TempDir()))
			if r.Narrow != tc.narrow || r.Looks != tc.looks || len(r.Rows) != tc.runs {
				t.Errorf("narrow %v after %d looks and %d runs; want %v, %d, %d", r.Narrow, r.Looks, len(r.Rows), tc.narrow, tc.looks, tc.runs)
			}
		})
	}
}
