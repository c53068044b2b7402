package study_test

import (
	"bufio"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/study"
)

// published is a study of items that do not all go together, of which published figures and files of runs are asked.
const published = `
version: 1
name: published
base: [default.yaml]
set: {workload.config.jobs: 6, workload.config.span: 30m}
axes:
  scheduler:
    - {name: fifo, set: {pipeline.allocation.type: fifo}}
    - {name: pollux}
  setting:
    - {name: usual}
    - {name: slow, set: {round.interval: 4m}, with: {scheduler: pollux}}
seeds: {count: 2}
baseline: {scheduler: fifo}
metrics: [jct_seconds.mean]
write: [usage, fairness]
published:
  - {figure: Table 1, metric: jct_seconds.mean, at: {scheduler: pollux, setting: usual}, value: 0.5h}
  - {figure: Table 1, metric: jct_seconds.mean, at: {scheduler: fifo}, value: 3000}
`

// Figures of a publication stand beside the means over the runs that they are about.
func TestPublishedFigures(t *testing.T) {
	o := options(t.TempDir())
	r := execute(t, published, o)
	if r.Ran != 6 || r.Failed > 0 {
		t.Fatalf("ran %d, failed %d", r.Ran, r.Failed)
	}
	all := tables(t, o.Dir)
	var cells []string
	sums, ends := map[string]float64{}, map[string][]float64{}
	for _, row := range records(t, all[study.RunsFile]) {
		cell := row["scheduler"] + " " + row["setting"]
		if row["replicate"] == "1" {
			cells = append(cells, cell)
		}
		sums[cell] += number(t, row["jct_seconds_mean"]) / 2
		ends[cell] = append(ends[cell], number(t, row["jct_seconds_mean"]))
	}
	if diff := cmp.Diff([]string{"fifo usual", "pollux usual", "pollux slow"}, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(o.Dir, study.PublishedFile))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		scheduler, setting, runs string
		published, ours          float64
	}{{"pollux", "usual", "2", 1800, sums["pollux usual"]}, {"fifo", "all", "2", 3000, sums["fifo usual"]}} {
		row := records(t, string(text))[i]
		if row["scheduler"] != want.scheduler || row["setting"] != want.setting || row["runs"] != want.runs || row["figure"] != "Table 1" {
			t.Errorf("row %d: %v", i, row)
		}
		ours := number(t, row["ours"])
		near(t, "ours", ours, want.ours)
		near(t, "published", number(t, row["published"]), want.published)
		near(t, "difference", number(t, row["difference"]), ours/want.published-1)
		two := ends[want.scheduler+" usual"]
		half := 12.706204736174698 * math.Abs(two[0]-two[1]) / 2               // the t of one degree of freedom
		near(t, "low end", number(t, row["ours_low"]), math.Max(ours-half, 0)) // no completion takes less than no time
		near(t, "high end", number(t, row["ours_high"])-ours, half)
	}
	for _, row := range records(t, all[study.StatsFile]) {
		if row["setting"] == "slow" && row["change"] != "" {
			t.Errorf("a setting without a baseline has a change: %v", row)
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if d := got - want; !(d < 1e-9*want+1e-12 && d > -1e-9*want-1e-12) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Files of runs that are asked for are kept with every run, whoever ran it, and read back from the resolved study.
func TestFilesOfRunsAreKept(t *testing.T) {
	whole := t.TempDir()
	execute(t, published, options(whole))
	parts := [2]string{t.TempDir(), t.TempDir()}
	for i, dir := range parts {
		o := options(dir)
		o.Shard, o.Shards = i+1, 2
		execute(t, published, o)
	}
	o := options(parts[0])
	if r, err := study.Merge(t.Context(), parse(t, published), o, parts[1:]); err != nil || r.Missing > 0 {
		t.Fatalf("%v, %v", r, err)
	}
	for _, name := range []string{"usage.csv.gz", "fairness.csv.gz", study.PublishedFile, study.StudyFile} {
		want, err := os.ReadFile(filepath.Join(whole, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(parts[0], name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s differs when shards are merged", name)
		}
	}
	f, err := os.Open(filepath.Join(whole, "usage.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines, runs := bufio.NewScanner(z), map[string]bool{}
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "run,at_s,devices_ready,devices_used,") {
		t.Errorf("header %q", lines.Text())
	}
	for lines.Scan() {
		run, _, _ := strings.Cut(lines.Text(), ",")
		runs[run] = true
	}
	if len(runs) != 6 {
		t.Errorf("usage of %d runs, want 6", len(runs))
	}
	again, err := os.ReadFile(filepath.Join(whole, study.StudyFile))
	if err != nil {
		t.Fatal(err)
	}
	if r := execute(t, string(again), options(whole)); r.Ran != 0 {
		t.Errorf("the resolved study ran %d, want none", r.Ran)
	}
	if err := os.Remove(firstOf(t, filepath.Join(whole, ".runs", "*.usage.gz"))); err != nil {
		t.Fatal(err)
	}
	if r := execute(t, published, options(whole)); r.Ran != 1 {
		t.Errorf("a file of a run is gone: ran %d, want 1", r.Ran)
	}
}

func firstOf(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return found[0]
}
