package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core/metrics"
)

func TestWriteReplacesTheTablesNamed(t *testing.T) {
	const document = "before\n<!-- table one -->\nold\n<!-- end -->\nbetween\n<!-- table two -->\nold\n<!-- end -->\n"
	replace := tables
	t.Cleanup(func() { tables = replace })
	rows := func(*bench) ([][]string, error) { return [][]string{{"a", "b"}, {"1", "2"}}, nil }
	tables = map[string]func(*bench) ([][]string, error){"one": rows, "two": rows}
	const table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
	for name, tc := range map[string]struct{ only, want, fails string }{
		"all":          {only: "", want: "before\n<!-- table one -->\n" + table + "<!-- end -->\nbetween\n<!-- table two -->\n" + table + "<!-- end -->\n"},
		"one":          {only: "two", want: "before\n<!-- table one -->\nold\n<!-- end -->\nbetween\n<!-- table two -->\n" + table + "<!-- end -->\n"},
		"a wrong name": {only: "two,three", want: document, fails: `no document in . has table "three"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("DOC.md", []byte(document), 0o600); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := (&bench{}).writeAll(".", tc.only); err != nil {
				got = err.Error()
			}
			if got != tc.fails {
				t.Errorf("error %q, want %q", got, tc.fails)
			}
			text, err := os.ReadFile("DOC.md")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(text)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	sorted := []float64{1, 2, 3, 4, 5}
	for part, want := range map[float64]float64{0: 1, 0.5: 3, 0.6: 3.4, 1: 5} {
		if got := percentile(sorted, part); got != want {
			t.Errorf("percentile %v is %v, want %v", part, got, want)
		}
	}
}

// Two jobs ask for all 64 devices each and overlap from second 50 to 100. The first one sees 1.5 times the cluster
// asked for on average, the second one as well; a third one, alone with its 8 devices, no contention.
func TestRho(t *testing.T) {
	jobs := map[string]*metrics.Job{
		"a": {SubmitSeconds: 0, FinishSeconds: 100, JCTSeconds: 100},
		"b": {SubmitSeconds: 50, FinishSeconds: 150, JCTSeconds: 100},
		"c": {SubmitSeconds: 1000, FinishSeconds: 1100, JCTSeconds: 100},
	}
	requested := map[string][]string{"a": {"", "", "", "64"}, "b": {"", "", "", "64"}, "c": {"", "", "", "8"}}
	got, err := rhosOf(jobs, requested, map[string]float64{"a": 50, "b": 100, "c": 80})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{100 / (50 * 1.5), 100 / (100 * 1.5), 100. / 80}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("rho (-want +got):\n%s", diff)
	}
}

func TestConfuseTurnsTheNames(t *testing.T) {
	dir := t.TempDir()
	pool, wrong := filepath.Join(dir, "pool"), filepath.Join(dir, "wrong")
	if err := os.WriteFile(pool, []byte("applications:\n    - name: a\n      jobs: 1\n    - name: b\n    - name: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := confuse(pool, wrong); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(wrong)
	if err != nil {
		t.Fatal(err)
	}
	want := "applications:\n    - name: b\n      jobs: 1\n    - name: c\n    - name: a\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
}

func TestMergeNumbersAnew(t *testing.T) {
	dir := t.TempDir()
	const header = "name,time,application,num_replicas,batch_size\n"
	write := func(name, rows string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(header+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	merged := filepath.Join(dir, "merged")
	if err := merge(merged, write("one", "ncf-0,5,ncf,1,32768\nbert-1,20,bert,6,384\n"), write("two", "ncf-0,10,ncf,1,32768\n")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(merged)
	if err != nil {
		t.Fatal(err)
	}
	want := header + "ncf-0,5,ncf,1,32768\nncf-1,10,ncf,1,32768\nbert-2,20,bert,6,384\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
