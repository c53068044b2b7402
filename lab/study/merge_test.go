package study_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/lab/study"
)

func merge(t *testing.T, dir string, from ...string) {
	t.Helper()
	r, err := study.Merge(t.Context(), parse(t, small), options(dir), from)
	if err != nil || r.Missing != 0 {
		t.Fatalf("result %v, error %v", r, err)
	}
}

// A folder with runs of other studies only is refused; one that was joined before is not, nor one of a shard that ran nothing yet.
func TestMergeRefusesOtherStudies(t *testing.T) {
	const one = "version: 1\nbase: [default.yaml]\nset: {workload.config.jobs: 3}\naxes: {scheduler: [fifo, srtf]}\nseeds: {count: 2}\n"
	dir, part, other, empty := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for i, d := range []string{dir, part} {
		o := options(d)
		o.Shard, o.Shards = i+1, 2
		execute(t, one, o)
	}
	execute(t, strings.ReplaceAll(one, "jobs: 3", "jobs: 4"), options(other))
	if err := os.Mkdir(filepath.Join(empty, ".runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		from        []string
		want        string
		ran, reused int
	}{
		"another study":    {from: []string{part, other}, want: other + ": keeps 4 runs, and none is of study \"small\""},
		"no study":         {from: []string{t.TempDir()}, want: "keeps no runs of a study"},
		"nothing yet":      {from: []string{empty}, reused: 2},
		"a shard":          {from: []string{empty, part}, ran: 2, reused: 2},
		"twice":            {from: []string{part, part}, ran: 2, reused: 2},
		"no other":         {reused: 2},
		"its own":          {from: []string{dir}, reused: 2},
		"of other studies": {from: []string{other, t.TempDir()}, want: "keeps no runs of a study"},
	} {
		t.Run(name, func(t *testing.T) {
			into := t.TempDir()
			if err := os.CopyFS(filepath.Join(into, ".runs"), os.DirFS(filepath.Join(dir, ".runs"))); err != nil {
				t.Fatal(err)
			}
			r, err := study.Merge(t.Context(), parse(t, one), options(into), tc.from)
			switch {
			case tc.want != "":
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
			case err != nil:
				t.Error(err)
			case r.Ran != tc.ran || r.Reused != tc.reused || r.Missing != 4-tc.ran-tc.reused:
				t.Errorf("took %d, kept %d before, %d missing; want %d, %d", r.Ran, r.Reused, r.Missing, tc.ran, tc.reused)
			}
		})
	}
}

// What is joined is of one content of each input file: of that which is here, where it is.
func TestMergeOfInputsThatChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.csv")
	text := fmt.Sprintf(`
version: 1
base: [default.yaml]
axes:
  scheduler: [fifo, srtf]
  load: [0.5, 1]
set: {workload: {type: csv, config: {path: %q}}}
baseline: {scheduler: fifo}
metrics: [jct_seconds.mean]
`, file)
	const early, late = "name,submit_s,duration_s,replicas\na,0,60,1\nb,60,60,1\n", "name,submit_s,duration_s,replicas\na,0,90,1\nb,60,60,1\n"
	for name, tc := range map[string]struct {
		contents [2]string // when each shard ran
		now      string    // none when it is gone
		missing  int
		refused  bool
	}{
		"as it was":                  {contents: [2]string{early, early}, now: early},
		"not here":                   {contents: [2]string{early, early}},
		"changed since":              {contents: [2]string{early, early}, now: late, missing: 4},
		"changed between two shards": {contents: [2]string{early, late}, now: late, refused: true},
		"changed, and not here":      {contents: [2]string{early, late}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			var dirs []string
			write := func(content string) {
				if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for i, content := range tc.contents {
				write(content)
				o := options(t.TempDir())
				o.Shard, o.Shards = i+1, 2
				if r := execute(t, text, o); r.Ran != 2 {
					t.Fatalf("shard %d ran %d, want 2", i+1, r.Ran)
				}
				dirs = append(dirs, o.Dir)
			}
			if write(tc.now); tc.now == "" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			r, err := study.Merge(t.Context(), parse(t, text), options(dirs[0]), dirs[1:])
			if tc.refused {
				if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), dirs[0]) || !strings.Contains(err.Error(), dirs[1]) {
					t.Errorf("error %v, want one that names the file and both folders", err)
				}
				return
			}
			if err != nil || r.Missing != tc.missing {
				t.Fatalf("result %+v, error %v; want %d missing", r, err, tc.missing)
			}
			if tc.missing == 0 {
				return
			}
			o := options(t.TempDir()) // the shards run again, in another folder
			execute(t, text, o)
			if r, err := study.Merge(t.Context(), parse(t, text), options(dirs[0]), append(dirs[1:], o.Dir)); err != nil || r.Missing > 0 || r.Ran != 4 {
				t.Errorf("result %+v, error %v; want 4 taken", r, err)
			}
		})
	}
}
