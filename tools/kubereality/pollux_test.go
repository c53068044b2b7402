//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Starts in rounds in which others have to leave may wait for these: they are neither.
func TestMeasureDelays(t *testing.T) {
	const (
		first  = `{"t_s": 10, "round": 1, "job": "a", "action": "start"}` + "\n" + `{"t_s": 10.5, "round": 2, "job": "a", "event": "job_started"}` + "\n"
		second = `{"t_s": 12, "round": 3, "job": "b", "action": "start"}` + "\n" + `{"t_s": 12.1, "round": 4, "job": "b", "event": "job_started"}` + "\n"
		moved  = `{"t_s": 14, "round": 5, "job": "a", "action": "move"}` + "\n" + `{"t_s": 14, "round": 5, "job": "c", "action": "start"}` + "\n" +
			`{"t_s": 15, "round": 6, "job": "a", "event": "job_started"}` + "\n" + `{"t_s": 19, "round": 7, "job": "c", "event": "job_started"}` + "\n"
		resumed = `{"t_s": 1, "round": 1, "job": "d", "event": "job_started"}` + "\n"
	)
	for name, tc := range map[string]struct {
		text string
		want delays
		err  string
	}{
		"all":      {resumed + first + second + moved, delays{start: 0.3, restart: 1, starts: 2, moves: 1}, ""},
		"no moves": {first, delays{start: 0.5, starts: 1}, ""},
		"none":     {"", delays{}, "nothing was started"},
		"no JSON":  {"x\n", delays{}, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := measureDelays(write(t, tc.text))
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%v, want %q", err, tc.err)
			}
			if err == nil {
				if diff := cmp.Diff(tc.want, *got, cmp.AllowUnexported(delays{}), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	for name, tc := range map[string]struct{ start, restart, want float64 }{"longer": {1, 3, 2}, "no longer": {1, 0.5, 0}} {
		if got := (&delays{start: tc.start, restart: tc.restart}).release(); got != tc.want {
			t.Errorf("%s: it takes %v to leave, want %v", name, got, tc.want)
		}
	}
}

func TestMeasureBegins(t *testing.T) {
	const before = "time=x level=INFO msg=\"a training begins\" run=a/1 after=9\n"
	const log = before + "time=x level=WARN msg=\"a pod cannot begin\" pod=b error=c\n" +
		"time=x level=INFO msg=\"a training begins\" run=a/2 after=0.5\ntime=x level=INFO msg=\"a training begins\" run=b/1 after=-0.1\n"
	path := write(t, log)
	if got, err := measureBegins(path, int64(len(before))); err != nil || got != 0.25 {
		t.Errorf("%v, %v; want 0.25", got, err)
	}
	if got, err := measureBegins(path, int64(len(log))); err == nil {
		t.Errorf("%v, and nothing began", got)
	}
}

func TestAsSubmitted(t *testing.T) {
	jobs := func() *workload.Workload {
		w := &workload.Workload{Jobs: make([]workload.Job, 2)}
		w.Jobs[0].Spec.Name, w.Jobs[1].Spec.Name = "job-0", "job-1"
		return w
	}
	const header = "job,name,submit_s\n"
	for name, tc := range map[string]struct {
		text string
		want []float64
		err  string
	}{
		"as they came":   {header + "0,space/job-0-1234,2.5\n1,space/job-1-1234,7\n", []float64{2.75, 7}, ""},
		"one is missing": {header + "0,space/job-0-1234,2.5\n", nil, "has 1 jobs"},
		"another":        {header + "0,space/job-0-1234,2.5\n1,space/job-9-1234,7\n", nil, "job job-1 was not run"},
		"other order":    {header + "0,space/job-1-1234,2.5\n1,space/job-0-1234,7\n", nil, "another order"},
		"no number":      {header + "0,space/job-0-1234,x\n1,space/job-1-1234,7\n", nil, "invalid syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobs()
			err := asSubmitted(w, []job{{after: 0.25}, {}}, write(t, tc.text))
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%v, want %q", err, tc.err)
			}
			if err != nil {
				return
			}
			if got := []float64{w.Jobs[0].Spec.SubmitSeconds, w.Jobs[1].Spec.SubmitSeconds}; !cmp.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// What plays a job reads the very profile by which it is simulated, and its bounds are those of the simulated job.
func TestTrainingJobs(t *testing.T) {
	b := &bench{seed: 3, jobs: 12, speedup: 30, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.dir, "config.yaml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := b.elastic(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := trainingJobs(w, true)
	if err != nil || len(list) != 12 {
		t.Fatalf("%d jobs, %v", len(list), err)
	}
	for i := range list {
		spec := &w.Jobs[i].Spec
		object := list[i].object("x")["spec"].(map[string]any)
		if object["work"] != spec.TotalWork || object["requested"] != spec.Requested || object["application"] != spec.Application {
			t.Errorf("job %d is %v", i, object)
		}
		annotations := object["template"].(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)
		p, err := goodput.ReadProfile("p", []byte(annotations["trainee.quartet.sched/profile"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.Jobs[i].Model.(workload.Profiled).Profile(), &p); diff != "" {
			t.Errorf("profile of job %d (-simulated +played):\n%s", i, diff)
		}
		if s := spec.SubmitSeconds; s != float64(int(s)) || s > 4*3600/30 {
			t.Errorf("job %d is submitted at %v", i, s)
		}
	}
}
