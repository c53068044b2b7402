package study_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/study"
)

// What is asked for is run, and the tables are of that, whatever is kept besides; what was not asked for is not shown.
func TestExplore(t *testing.T) {
	explore := func(dir string, workers int) (*study.Result, map[string]string) {
		o, steps := options(dir), 0
		o.Workers = workers
		s := parse(t, small)
		r, err := study.Explore(t.Context(), s, o, func(rows []study.Row) ([]int, error) {
			known := 0
			for i := range rows {
				if rows[i].Record != nil {
					if known++; !(rows[i].Value("jct_seconds.mean") > 0) {
						t.Errorf("run %d has no completion time", i)
					}
				}
			}
			if want := []int{0, 2, 3}[steps]; known != want {
				t.Errorf("step %d: %d runs are shown, want %d", steps, known, want)
			}
			steps++
			return [][]int{{0, 71}, {24}, nil}[steps-1], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r, tables(t, dir)
	}
	dir := t.TempDir()
	r, want := explore(dir, 2)
	if len(r.Rows) != 3 || r.Ran != 3 || r.Reused != 0 || r.Missing != 0 {
		t.Errorf("%d rows, ran %d, reused %d, missing %d", len(r.Rows), r.Ran, r.Reused, r.Missing)
	}
	if all := execute(t, small, options(dir)); all.Ran != 69 || all.Reused != 3 {
		t.Errorf("the others: ran %d, reused %d", all.Ran, all.Reused)
	}
	again, got := explore(dir, 8)
	if again.Ran != 0 || again.Reused != 3 {
		t.Errorf("again: ran %d, reused %d", again.Ran, again.Reused)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

// Windows stand where they are put; those that overlap or end behind the trace are refused.
func TestStride(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.csv")
	text := "name,submit_s,duration_s,replicas\n"
	for i := range 10 {
		text += string(rune('a'+i)) + "," + string(rune('0'+i)) + ",60,1\n"
	}
	if err := os.WriteFile(trace, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(windows string) string {
		return "version: 1\naxes:\n  workload:\n  - {name: t, set: {workload: {type: csv, config: {path: " + trace + "}}}, windows: " + windows + "}\n"
	}
	cases := map[string]struct{ windows, wrong string }{
		"fits":      {"{jobs: 2, count: 3, first_job: 2, stride: 3}", ""},
		"too long":  {"{jobs: 2, count: 3, first_job: 3, stride: 3}", "window 3 ends with job 10, and the trace with job 9"},
		"overlap":   {"{jobs: 2, count: 3, stride: 1}", "windows of 2 jobs overlap at a stride of 1"},
		"of a span": {"{span: 1m, count: 3, stride: 1}", "first_job and stride go with jobs only"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := study.Parse("s.yaml", "s", []byte(with(tc.windows)))
			var r *study.Result
			if err == nil {
				r, err = study.Execute(t.Context(), s, options(filepath.Join(dir, "s")))
			}
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil || len(r.Rows) != 3 {
				t.Fatalf("result %v, error %v", r, err)
			}
			resolved, err := os.ReadFile(filepath.Join(dir, "s", study.StudyFile))
			if err != nil || !strings.Contains(string(resolved), "windows: {jobs: 2, first_job: 2, stride: 3, count: 3}") {
				t.Errorf("resolved study %s, error %v", resolved, err)
			}
		})
	}
}
