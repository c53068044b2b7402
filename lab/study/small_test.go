package study_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/study"
)

// tiny is a study of four runs.
const tiny = `
version: 1
name: tiny
base: [default.yaml]
set: {workload.config.jobs: 4, workload.config.span: 5m, workload.config.applications: false, round.interval: 5m}
axes:
  scheduler: [fifo, srtf]
  load: [1, 2]
baseline: {scheduler: fifo}
metrics: [jct_seconds.mean]
`

// A run is known by all that it depends on, and by nothing else.
func TestARunIsKnownByWhatItDependsOn(t *testing.T) {
	dir := t.TempDir()
	if r := execute(t, tiny, options(dir)); r.Ran != 4 || r.Reused != 0 {
		t.Fatalf("ran %d, reused %d", r.Ran, r.Reused)
	}
	for name, tc := range map[string]struct {
		text  string
		build string
		ran   int
	}{
		"the same":           {tiny, "test", 0},
		"another name":       {strings.Replace(tiny, "name: tiny", "name: other", 1), "test", 0},
		"other metrics":      {strings.Replace(tiny, "[jct_seconds.mean]", "[gpu_hours]", 1), "test", 0},
		"one item less":      {strings.Replace(tiny, "[1, 2]", "[2]", 1), "test", 0},
		"one item more":      {strings.Replace(tiny, "[1, 2]", "[1, 2, 3]", 1), "test", 2},
		"another seed":       {tiny + "seeds: {first: 2}\n", "test", 4},
		"one seed more":      {tiny + "seeds: {count: 2}\n", "test", 4},
		"another setting":    {strings.Replace(tiny, "round.interval: 5m", "round.interval: 4m", 1), "test", 4},
		"another program":    {tiny, "other", 4},
		"twice the same run": {strings.Replace(tiny, "[fifo, srtf]", "[fifo, srtf, {name: first, set: {pipeline.allocation.type: fifo}}]", 1), "test", 0},
	} {
		t.Run(name, func(t *testing.T) {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			o := options(copied)
			o.Build = tc.build
			var told []int
			o.Progress = func(done, total int) { told = append(told, done, total) }
			if r := execute(t, tc.text, o); r.Ran != tc.ran || r.Missing != 0 || r.Failed != 0 || len(told) != 2*tc.ran {
				t.Errorf("ran %d, missing %d, failed %d, told %v; want %d", r.Ran, r.Missing, r.Failed, told, tc.ran)
			} else if tc.ran > 0 && (told[len(told)-2] != tc.ran || told[1] != tc.ran) {
				t.Errorf("progress %v", told)
			}
		})
	}
}

// A run whose jobs do not all end says so, and is compared by means that count them.
func TestUnfinishedRuns(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "long.csv")
	if err := os.WriteFile(trace, []byte("name,submit_s,duration_s,replicas\na,0,100,1\nx,1000,100000,8\ny,1001,100000,8\nz,1002,100000,8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := `
version: 1
base: [default.yaml]
set:
  cluster.nodes: [{name: n, count: 2, accelerator: t4, devices: 4}]
  workload: {type: csv, config: {path: ` + trace + `}}
  round.interval: 60s
  pipeline.elasticity: {job: {type: fixed}}
  backend.config.restart_overhead: 60s
axes:
  scheduler: [fifo, {name: las, set: {pipeline.allocation.type: las, pipeline.allocation.config.quantum_seconds: 0}}]
baseline: {scheduler: fifo}
metrics: [jct_seconds.mean, jct_seconds.restricted_mean, jobs.completed, gpu_hours]
`
	o := options(t.TempDir())
	r := execute(t, text, o)
	left := r.Rows[1].Summary.Jobs.Unfinished
	if r.Rows[0].Outcome != study.Completed || r.Rows[1].Outcome != study.Unfinished || left == 0 {
		t.Fatalf("%s and %s with %d jobs", r.Rows[0].Outcome, r.Rows[1].Outcome, left)
	}
	for i, want := range []bool{false, true, true, false} {
		if c := r.Stats[i]; c.Known != want || c.OtherJobs == want || c.NotCompleted != left || c.BaselineNotCompleted != 0 {
			t.Errorf("%s: known %v, of other jobs %v, %d and %d jobs left; want known %v, %d, 0", c.Metric, c.Known, c.OtherJobs, c.NotCompleted, c.BaselineNotCompleted, want, left)
		}
	}
	if r := execute(t, text, o); r.Ran != 0 || r.Rows[1].Outcome != study.Unfinished {
		t.Errorf("again: ran %d, %s", r.Ran, r.Rows[1].Outcome)
	}
}

// Notes of a run are kept with it, and a repeat tells them again.
func TestNotesAreKept(t *testing.T) {
	closed := 0
	o := options(t.TempDir())
	o.Environment = func(context.Context) study.Environment {
		return study.Environment{Close: func() error { closed++; return nil }}
	}
	o.Workers = 1
	execute(t, tiny, o)
	if closed != 8 {
		t.Errorf("%d environments were closed, want one for each config and one for each run: 8", closed)
	}
	first := tables(t, o.Dir)
	if diff := cmp.Diff(first, func() map[string]string { execute(t, tiny, o); return tables(t, o.Dir) }()); diff != "" {
		t.Errorf("a repeat (-first +again):\n%s", diff)
	}
	o.Environment = func(context.Context) study.Environment {
		return study.Environment{Close: func() error { return errors.New("does not end") }}
	}
	if _, err := study.Execute(t.Context(), parse(t, tiny), o); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("error %v, want that of the environment", err)
	}
}

// The offered load is of the jobs and the cluster of a run.
func TestOfferedLoad(t *testing.T) {
	text := strings.Replace(tiny, "load: [1, 2]", "cluster: [{name: small, set: {cluster.nodes: [{name: n, accelerator: t4, devices: 4}]}}, {name: twice, set: {cluster.nodes: [{name: n, accelerator: t4, devices: 8}]}}]", 1)
	r := execute(t, text, options(t.TempDir()))
	loads := make([]float64, 0, 4)
	for i := range r.Rows {
		loads = append(loads, float64(r.Rows[i].OfferedLoad))
	}
	if len(loads) != 4 || !(loads[0] > 0) || loads[0] != 2*loads[1] || loads[2] != loads[0] || loads[3] != loads[1] {
		t.Errorf("offered loads %v: want half on twice the devices, and the same for both schedulers", loads)
	}
}
