package compare_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/lab/compare"
)

// A change that may be chance among several comparisons is kept, and says why; judged by itself it is not.
func TestJudgeAmongSeveral(t *testing.T) {
	a := folder(t, "fifo", 1, 1, 1, 1, 1)
	b, c := folder(t, "srtf", 1.08, 1.02, 1.12, 1.04, 1.03), folder(t, "las", 1.1, 1, 0.9, 1.05, 0.98)
	threshold := []compare.Threshold{{Metric: "jct_seconds.mean", Limit: 0.02, Part: true}}
	for strict, want := range map[bool]string{false: "above, but may be chance among so many comparisons", true: "above"} {
		r := compared(t, compare.Choice{}, a, b, c)
		verdicts, err := r.Judge(threshold, strict)
		if err != nil || len(verdicts) != 2 || verdicts[0].Failed != strict || verdicts[0].Why != want {
			t.Errorf("strict %v: %+v, %v", strict, verdicts, err)
		}
	}
}

// Where a value is zero, a part of the base is that of the means.
func TestJudgePartsOfMeans(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for seed, rejected := range [][2]int{{0, 1}, {2, 2}, {4, 6}} {
		for k, dir := range []string{a, b} {
			r := run{seed: uint64(seed), allocation: []string{"fifo", "srtf"}[k], times: many(30, 1)}
			for i := range rejected[k] {
				r.times[i] = -1
			}
			r.write(t, dir)
		}
	}
	r := compared(t, compare.Choice{Judged: []string{"jobs.rejected"}}, a, b)
	verdicts, err := r.Judge([]compare.Threshold{{Metric: "jobs.rejected", Limit: 0.4, Part: true}, {Metric: "jobs.rejected", Limit: 0.9}, {Metric: "jobs.rejected", Limit: 1}}, true)
	if err != nil || len(verdicts) != 3 || math.Abs(verdicts[0].Worse-0.5) > 1e-12 || verdicts[1].Worse != 1 || !verdicts[0].Failed || !verdicts[1].Failed || verdicts[2].Failed {
		t.Errorf("%+v, %v", verdicts, err)
	}
}

// with adds files and plugins to the manifest of a run.
func with(inputs []quartet.Digest, plugins []quartet.Plugin, config string) change {
	return edit(func(m *quartet.Manifest) {
		m.Inputs, m.Plugins, m.Config = append(m.Inputs, inputs...), plugins, m.Config+config
	})
}

func digest(file, content string) quartet.Digest {
	sum := sha256.Sum256([]byte(content))
	return quartet.Digest{File: file, SHA256: hex.EncodeToString(sum[:])}
}

// Files of a policy and plugins are what is compared; other files are inputs, in whatever order they were read.
func TestFilesAndPlugins(t *testing.T) {
	const table = "scaler: {table: t.csv}\n"
	file := func(content string) []quartet.Digest { return []quartet.Digest{digest("t.csv", content)} }
	plugin := func(version string) []quartet.Plugin {
		return []quartet.Plugin{{Name: "fair", Version: version, SHA256: "0123456789abcdef"}}
	}
	cases := map[string]struct {
		base, other change
		inputs      string // the first that differs
		want        []compare.Difference
	}{
		"a table of a policy": {
			with(file("x"), nil, table), with(file("y"), nil, table), "",
			[]compare.Difference{{What: "t.csv", Base: "sha256 2d711642b726", Other: "sha256 a1fce4363854", Pairs: 1}},
		},
		"a table of one": {
			with(nil, nil, ""), with(file("y"), nil, table), "",
			[]compare.Difference{{What: "scaler.table", Other: "t.csv", Pairs: 1}, {What: "t.csv", Other: "sha256 a1fce4363854", Pairs: 1}},
		},
		"a table of the other": {
			with(file("y"), nil, table), with(nil, nil, ""), "",
			[]compare.Difference{{What: "scaler.table", Base: "t.csv", Pairs: 1}, {What: "t.csv", Base: "sha256 a1fce4363854", Pairs: 1}},
		},
		"a plugin of one":            {with(nil, plugin("1"), ""), with(nil, nil, ""), "", []compare.Difference{{What: "plugin fair", Base: "1 sha256 0123456789ab", Pairs: 1}}},
		"a plugin of the other":      {with(nil, nil, ""), with(nil, plugin("2"), ""), "", []compare.Difference{{What: "plugin fair", Other: "2 sha256 0123456789ab", Pairs: 1}}},
		"a plugin of two versions":   {with(nil, plugin("1"), ""), with(nil, plugin("2"), ""), "", []compare.Difference{{What: "plugin fair", Base: "1 sha256 0123456789ab", Other: "2 sha256 0123456789ab", Pairs: 1}}},
		"the same plugin":            {with(nil, plugin("1"), ""), with(nil, plugin("1"), ""), "", nil},
		"a file that nothing names":  {with(nil, nil, ""), with(file("y"), nil, ""), "t.csv: sha256 a1fce4363854", nil},
		"the same files in disorder": {with([]quartet.Digest{digest("a", "1"), digest("b", "2")}, nil, ""), with([]quartet.Digest{digest("b", "2"), digest("a", "1")}, nil, ""), "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, change := range []change{tc.base, tc.other} {
				path := run{seed: 1, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir())
				change(t, path)
				paths = append(paths, filepath.Dir(path))
			}
			r, err := tried(t, compare.Choice{}, paths...)
			if tc.inputs != "" {
				if err == nil || !strings.Contains(err.Error(), tc.inputs) {
					t.Errorf("error %v, want %q", err, tc.inputs)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.Others[0].Composition); diff != "" {
				t.Errorf("composition (-want +got):\n%s", diff)
			}
		})
	}
}

// Jobs of a name are others when they are submitted at another time, and the first is named.
func TestJobsSubmittedLater(t *testing.T) {
	a := run{seed: 1, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir())
	b := run{seed: 1, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir())
	moved := func(t *testing.T, dir string) {
		path := filepath.Join(dir, "jobs.csv")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), "7,job 7,,70,", "7,job 7,,71,", 1)
		writeFile(t, path, changed)
		edit(func(m *quartet.Manifest) { m.Outputs = []quartet.Digest{digest("jobs.csv", changed)} })(t, dir)
	}
	moved(t, b)
	_, err := tried(t, compare.Choice{}, a, b)
	if err == nil || !strings.Contains(err.Error(), "job 7: job 7  submitted at 71 s, in ") {
		t.Errorf("got %v", err)
	}
	// Of a run without jobs nothing is known to differ.
	both(edit(func(m *quartet.Manifest) { m.Outputs = nil }), remove("jobs.csv"))(t, b)
	for _, paths := range [][]string{{a, b}, {b, a}} {
		if r := compared(t, compare.Choice{}, paths...); r.Others[0].Inputs != nil || r.Others[0].Ends.Unknown != 1 {
			t.Errorf("%v: %+v", paths, r.Others[0])
		}
	}
}

// What a run is known by is told.
func TestWhatARunIs(t *testing.T) {
	path := run{seed: 1, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir())
	whole := read(t, path).Runs[0]
	if whole.Version != "v1 (commit c)" || whole.Changed || whole.Interrupted || whole.Seed != 1 {
		t.Errorf("%+v", whole)
	}
	edit(func(m *quartet.Manifest) { m.Earlier, m.Interrupted = make([]quartet.EarlierConfig, 1), true })(t, path)
	if cut := read(t, path).Runs[0]; !cut.Changed || !cut.Interrupted {
		t.Errorf("%+v", cut)
	}
}

// A metric that one side does not have is named with that side, and cannot be judged.
func TestUnknownOfOneSide(t *testing.T) {
	a, b := run{seed: 1, allocation: "fifo", times: many(30, 1)}.write(t, t.TempDir()), run{seed: 1, allocation: "srtf", times: make([]float64, 30)}.write(t, t.TempDir())
	for _, paths := range [][]string{{a, b}, {b, a}} {
		r := compared(t, compare.Choice{Metrics: []string{"jct_seconds.mean"}}, paths...)
		row := rowOf(t, r, "jct_seconds.mean")
		if row.Why != compare.Unknown || len(row.Missing) != 1 || !strings.Contains(row.Missing[0], filepath.Base(b)) {
			t.Errorf("%+v", row)
		}
		_, err := r.Judge([]compare.Threshold{{Metric: "jct_seconds.mean", Limit: 9}}, false)
		if want := fmt.Sprintf("%s: jct_seconds.mean is not known, and cannot be judged", row.Missing[0]); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Which jobs completed where is told for both sides, and no mean is judged where they are others, however many.
func TestOtherJobsCompleted(t *testing.T) {
	dir := t.TempDir()
	cases := map[string]struct {
		base, other         []float64
		left                [2]int
		onlyBase, onlyOther string
	}{
		"only in the base":   {[]float64{100, 200, 300}, []float64{100, -1, 300}, [2]int{0, 1}, "job 1", ""},
		"only in the other":  {[]float64{100, -1, 0, 50}, []float64{100, 200, 300, 50}, [2]int{2, 0}, "", "job 1,job 2"},
		"as many in each":    {[]float64{100, 200, -1}, []float64{-1, 200, 100}, [2]int{1, 1}, "job 0", "job 2"},
		"the same in both":   {[]float64{100, 200, -1}, []float64{50, 200, -1}, [2]int{1, 1}, "", ""},
		"all of them":        {[]float64{100, 200, 300}, []float64{50, 200, 300}, [2]int{}, "", ""},
		"none in the other":  {[]float64{100, 200}, []float64{-1, -1}, [2]int{0, 2}, "job 0,job 1", ""},
		"more in the other":  {[]float64{0, 200, 0, 10}, []float64{10, 0, 30, 10}, [2]int{2, 1}, "job 1", "job 0,job 2"},
		"the first and last": {[]float64{10, 20, 30, 0}, []float64{0, 20, 30, 40}, [2]int{1, 1}, "job 0", "job 3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := compared(t, compare.Choice{}, run{seed: 1, allocation: "fifo", times: tc.base}.write(t, dir), run{seed: 1, allocation: "srtf", times: tc.other}.write(t, dir))
			e := r.Others[0].Ends
			if got := [2]int{e.LeftBase, e.LeftOther}; got != tc.left || strings.Join(e.OnlyBase, ",") != tc.onlyBase || strings.Join(e.OnlyOther, ",") != tc.onlyOther {
				t.Errorf("ends %+v", e)
			}
			if name == "none in the other" {
				return // there is no mean to show or to judge
			}
			common, restricted := false, false
			for i := range r.Rows {
				common = common || r.Rows[i].Metric == "jct_seconds.common_mean"
				restricted = restricted || r.Rows[i].Metric == "jct_seconds.restricted_mean"
			}
			if restricted != (tc.left != [2]int{}) {
				t.Errorf("the mean that counts all is shown: %v", restricted)
			}
			differ := tc.onlyBase+tc.onlyOther != ""
			if common != differ {
				t.Errorf("the mean over those of both is shown: %v", common)
			}
			verdicts, err := r.Judge([]compare.Threshold{{Metric: "jct_seconds.mean", Limit: 9, Part: true}}, false)
			if err != nil || verdicts[0].Failed != differ {
				t.Errorf("verdict %+v, %v", verdicts, err)
			}
		})
	}
}

// Runs of one trace are paired by their seed first, and then as they come.
func TestPairsOfSeeds(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for k, seeds := range [][2]uint64{{1, 2}, {3, 2}} {
		for i, seed := range seeds {
			run{seed: seed, allocation: []string{"fifo", "srtf"}[k], file: "in.csv", content: "x", times: []float64{100 * float64(i+1), 10}}.write(t, []string{a, b}[k])
		}
	}
	r := compared(t, compare.Choice{Jobs: 3}, a, b)
	if o := r.Others[0]; o.Pairs != 2 || len(o.Gained)+len(o.Lost) != 0 {
		t.Errorf("%+v", o)
	}
}

// A file is known by its content, however its name is written; beside runs a folder may hold what it likes.
func TestNamesThatAreQuoted(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	run{seed: 1, allocation: "fifo", file: `"1.5"`, content: "x", times: many(30, 1)}.write(t, a)
	run{seed: 1, allocation: "fifo", file: `"2.5"`, content: "x", times: many(30, 1)}.write(t, b)
	for dir, file := range map[string]string{a: "1.5", b: "2.5"} {
		edit(func(m *quartet.Manifest) { m.Inputs[0].File = file })(t, filepath.Join(dir, "fifo-1-30"))
		if err := os.Mkdir(filepath.Join(dir, "notes"), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "readme.txt"), "of mine")
	}
	r := compared(t, compare.Choice{}, a, b)
	if o := r.Others[0]; o.Inputs != nil || o.Composition != nil || o.Pairs != 1 {
		t.Errorf("%+v", o)
	}
}

// No more jobs are listed than were asked for, those that changed most first.
func TestListedJobs(t *testing.T) {
	dir := t.TempDir()
	a := run{seed: 1, allocation: "fifo", times: []float64{100, 100, 100, 100, 100, 100, 100}}.write(t, dir)
	b := run{seed: 1, allocation: "srtf", times: []float64{90, 50, 70, 100, 110, 190, 130}}.write(t, dir)
	for jobs, want := range map[int][2]string{0: {"", ""}, 1: {"job 1", "job 5"}, 2: {"job 1,job 2", "job 5,job 6"}, 9: {"job 1,job 2,job 0", "job 5,job 6,job 4"}} {
		var got [2]string
		o := compared(t, compare.Choice{Jobs: jobs}, a, b).Others[0]
		for k, list := range [][]compare.JobChange{o.Gained, o.Lost} {
			var names []string
			for _, j := range list {
				names = append(names, j.Name)
			}
			got[k] = strings.Join(names, ",")
		}
		if got != want {
			t.Errorf("%d jobs: %q, want %q", jobs, got, want)
		}
	}
}
