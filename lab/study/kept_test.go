package study_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/study"
)

// single is one workload on a cluster that is too small for it.
const single = `
version: 1
name: single
base: [default.yaml]
set:
  workload.config: {jobs: 40, span: 30m, applications: false, replicas: one}
  cluster.nodes: [{name: n, accelerator: t4, devices: 2}]
axes:
  scheduler: [fifo, srtf]
baseline: {scheduler: fifo}
metrics: [jct_seconds.mean, jct_seconds.p50, gpu_hours]
`

// A cell of one workload is compared within its trace, in what is a mean over jobs.
func TestOneWorkloadIsComparedWithinItsTrace(t *testing.T) {
	dir := t.TempDir()
	execute(t, single, options(dir))
	kept, err := study.ReadKept(dir)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]float64{}
	for i := range kept.Runs {
		jobs, err := kept.Jobs(&kept.Runs[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			values[kept.Runs[i].Items[0]] = append(values[kept.Runs[i].Items[0]], float64(j.JCTSeconds))
		}
	}
	want, err := stats.CompareWithin(values["srtf"], values["fifo"], 0, 0.95)
	if err != nil || len(values["fifo"]) != 40 {
		t.Fatalf("%d jobs, %v", len(values["fifo"]), err)
	}
	rows := records(t, tables(t, dir)[study.StatsFile])
	got := rows[0]
	if got["method"] != stats.MethodBlocks || got["n"] != "1" || got["wins"] != "1" || number(t, got["change"]) != want.Change ||
		number(t, got["t_low"]) != want.Expanded.Low || number(t, got["t_high"]) != want.Expanded.High || got["bca_low"] != "" || got["wilcoxon_p"] != "" || number(t, got["holm_p"]) != want.P {
		t.Errorf("got %v, want %+v", got, want)
	}
	if rows[1]["method"] != stats.MethodValues || rows[1]["t_low"] != "" {
		t.Errorf("a quantile: %v", rows[1])
	}
	// gpu_hours differ by what restarts cost, and are a sum over jobs.
	if rows[2]["method"] != stats.MethodBlocks && rows[2]["change"] != "0" {
		t.Errorf("a sum: %v", rows[2])
	}
}

func TestKept(t *testing.T) {
	dir := t.TempDir()
	r := execute(t, small, options(dir))
	kept, err := study.ReadKept(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Runs) != len(r.Rows) {
		t.Fatalf("%d runs, want %d", len(kept.Runs), len(r.Rows))
	}
	for i, row := range r.Rows {
		got := kept.Runs[i]
		want := fmt.Sprintf("%s %d %d", row.ID(), row.Replicate, row.Seed)
		if diff := cmp.Diff(want, fmt.Sprintf("%s %d %d", got.ID, got.Replicate, got.Seed)); diff != "" || got.Hash != row.Run.Hash || !strings.HasPrefix(got.Config, "version: 1\n") {
			t.Fatalf("run %d (-want +got):\n%s", i, diff)
		}
	}
	for name, tc := range map[string]struct {
		file, text string // that the file is made of; removed when it is empty
		want       string
	}{
		"no study":      {study.StudyFile, "", "no such file"},
		"no table":      {study.RunsFile, "", "no such file"},
		"half a table":  {study.RunsFile, "run,scheduler,workload,load,replicate,seed,offered_load,outcome\na,b", "cannot be read whole"},
		"another table": {study.RunsFile, "a,b\n", "is not the table of study.yaml"},
		"no number":     {study.RunsFile, "run,scheduler,workload,load,replicate,seed,offered_load,outcome\na,fifo,apps,1,one,1,1,completed\n", "row 2"},
		"unknown run":   {study.RunsFile, "run,scheduler,workload,load,replicate,seed,offered_load,outcome\nabc,fifo,apps,1,1,1,1,completed\n", `run "abc" cannot be read`},
		"nothing kept":  {".runs", "", "what is kept of the runs is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := t.TempDir()
			if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(broken, tc.file)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if tc.text != "" {
				if err := os.WriteFile(path, []byte(tc.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := study.ReadKept(broken); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
