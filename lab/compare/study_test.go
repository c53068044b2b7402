package compare_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/compare"
	"github.com/quartet-sched/quartet/lab/study"
)

// studied runs a study of some schedulers, and is its folder.
func studied(t *testing.T, name, schedulers, nodes string, more ...string) string {
	t.Helper()
	text := strings.Join(more, "\n") + `
version: 1
name: ` + name + `
base: [default.yaml]
set:
  workload.config: {jobs: 24, span: 20m, applications: false, replicas: one}
  cluster.nodes: ` + nodes + `
axes:
  scheduler: [` + schedulers + `]
  workload: [{name: poisson}, {name: even, set: {workload.config.arrivals: bursty}}]
  load: [0.5, 1]
seeds: {count: 3}
`
	s, err := study.Parse(name+".yaml", name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), name)
	if _, err := study.Execute(t.Context(), s, study.Options{Catalog: quartet.Builtins(), Dir: dir, Workers: 2, Build: "test"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

const twoDevices = "[{name: n, accelerator: t4, devices: 2}]"

func TestStudies(t *testing.T) {
	a, b := studied(t, "a", "fifo, srtf", twoDevices), studied(t, "b", "fifo, las", twoDevices)
	// Two items of one study.
	r := compared(t, compare.Choice{Jobs: 1}, a+"@fifo", a+"@srtf")
	if o := r.Others[0]; o.Pairs != 12 || o.Inputs != nil || len(o.Composition) != 1 || o.Composition[0].What != "pipeline.allocation.type" || o.Composition[0].Pairs != 12 {
		t.Errorf("got %+v", o)
	}
	// A unit is a workload and a replicate: loads are no further ones.
	row := rowOf(t, r, "jct_seconds.mean")
	if row.N != 6 || row.Method != stats.MethodPaired || row.Cell[0] != "srtf" || row.Cell[1] != study.Pooled || row.Cell[2] != study.Pooled {
		t.Errorf("got %+v", row)
	}
	kept, err := study.ReadKept(a)
	if err != nil {
		t.Fatal(err)
	}
	var cells int
	for _, row := range r.Rows {
		if row.Metric == "jct_seconds.mean" && !row.Headline {
			if cells++; row.N != 3 || row.Why != compare.FewWorkloads && row.Why != compare.Same {
				t.Errorf("a cell: %+v", row)
			}
		}
	}
	if cells != 4 || len(kept.Runs) != 24 {
		t.Errorf("%d cells of %d runs", cells, len(kept.Runs))
	}
	// By name, what both studies have.
	if _, err := tried(t, compare.Choice{}, a, b); err == nil || !strings.Contains(err.Error(), "scheduler srtf of "+a+" has no partner") || !strings.Contains(err.Error(), "scheduler las of "+b) {
		t.Errorf("other schedulers: %v", err)
	}
	for _, row := range compared(t, compare.Choice{Unequal: true}, a, b).Rows {
		if row.Cell[0] != "fifo" || row.Why != compare.Same && row.Why != compare.Unknown {
			t.Errorf("the same runs of two studies: %+v", row)
		}
	}
	if r := compared(t, compare.Choice{}, a+"@srtf", b+"@las"); r.Others[0].Pairs != 12 {
		t.Errorf("one of each: %+v", r.Others[0])
	}
	// What does not belong together.
	for name, tc := range map[string]struct{ a, b, want string }{
		"none in common":  {a + "@srtf", b, "choose one of each, such as " + a + "@srtf and " + b + "@fifo"},
		"another cluster": {a, studied(t, "c", "fifo, srtf", "[{name: n, accelerator: t4, devices: 3}]"), "cluster.nodes[0].devices: 3, in " + a + " 2"},
		"a run":           {a, run{seed: 1, allocation: "fifo", times: many(3, 1)}.write(t, t.TempDir()), "compare runs with runs, and studies with studies"},
	} {
		if _, err := tried(t, compare.Choice{}, tc.a, tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := compare.ReadSide(a+"@fifi", compare.Options{}); err == nil || !strings.Contains(err.Error(), `did you mean "fifo"?`) {
		t.Errorf("an item that is not there: %v", err)
	}
}

// Several items of one study against one base are a family: each of them is another chance to find something.
func TestHolmOverItems(t *testing.T) {
	a := studied(t, "a", "fifo, srtf, las", twoDevices)
	for name, others := range map[string][]string{
		"items of a study":             {a + "@srtf", a + "@las"},
		"an item that comes twice":     {a + "@las", a + "@las"},
		"an item, and a study with it": {a + "@srtf", a},
	} {
		r := compared(t, compare.Choice{Unequal: true}, append([]string{a + "@fifo"}, others...)...)
		var rows []compare.Row
		for _, row := range r.Rows {
			if row.Headline && row.Metric == "queueing_seconds.mean" && !math.IsNaN(row.P) {
				rows = append(rows, row)
			}
		}
		if len(rows) == 0 {
			t.Errorf("%s: no row has a p", name)
			continue
		}
		var list []float64
		for _, row := range rows {
			list = append(list, row.P)
		}
		for i, want := range stats.Holm(list) {
			if rows[i].Holm != want {
				t.Errorf("%s: p of %v is %v, and %v after Holm, want %v of %v", name, rows[i].Cell, rows[i].P, rows[i].Holm, want, list)
			}
		}
	}
	// Whole studies: a family for each scheduler.
	for _, row := range compared(t, compare.Choice{}, a, a, a).Rows {
		if !math.IsNaN(row.P) && row.Holm != math.Min(1, 2*row.P) && row.P != 1 {
			t.Errorf("%s of %v: p is %v, and %v after Holm over two sides", row.Metric, row.Cell, row.P, row.Holm)
		}
	}
}

// A scheduler is found by its name, also in a study whose baseline is of another axis.
func TestAnItemOfAnotherAxis(t *testing.T) {
	a := studied(t, "a", "fifo, srtf", twoDevices, "baseline: {workload: poisson}")
	r := compared(t, compare.Choice{Metrics: []string{"jct_seconds.mean"}}, a+"@fifo", a+"@srtf")
	if o := r.Others[0]; o.Pairs != 12 || len(o.Composition) != 1 || o.Composition[0].What != "pipeline.allocation.type" {
		t.Errorf("got %+v", o)
	}
	var cells [][]string
	for _, row := range r.Rows {
		if row.Headline {
			cells = append(cells, row.Cell)
		}
	}
	if diff := cmp.Diff([][]string{{"srtf", "poisson", study.Pooled}, {"srtf", "even", study.Pooled}}, cells); diff != "" {
		t.Errorf("headlines (-want +got):\n%s", diff)
	}
	if r := compared(t, compare.Choice{}, a+"@fifo", a+"@fifo"); r.Others[0].Pairs != 12 || len(r.Others[0].Composition) != 0 {
		t.Errorf("an item with itself: %+v", r.Others[0])
	}
	for name, tc := range map[string]struct{ a, b, want string }{
		"two axes":         {a + "@fifo", a + "@even", "is one workload, and " + a + "@fifo is one scheduler; choose both on one axis"},
		"an item of a few": {a + "@srtf", a, "scheduler fifo of " + a + " has no partner"},
	} {
		if _, err := tried(t, compare.Choice{}, tc.a, tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	for item, want := range map[string]string{
		"fif": `nothing on the axes of the study is called "fif"; did you mean "fifo"?`,
		"0.5": "", "even": "",
	} {
		if _, err := compare.ReadSide(a+"@"+item, compare.Options{}); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", item, err, want)
		}
	}
}

// The runs of a study that failed or are missing are no silent pass.
func TestUnfinishedStudy(t *testing.T) {
	dir := studied(t, "a", "fifo, srtf", twoDevices)
	path := filepath.Join(dir, study.RunsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, strings.Replace(string(text), ",completed,", ",missing,", 1))
	if _, err := compare.ReadSide(dir, compare.Options{}); err == nil || !strings.Contains(err.Error(), "replicate 1: the run is missing; run the study to its end") {
		t.Errorf("got %v", err)
	}
}
