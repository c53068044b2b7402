package operate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// What a job reports, and the search that it is a trial of, are told to people and to programs.
func TestOperateReports(t *testing.T) {
	trial := coretest.MakeJob("trial").ID(3).Tenant("vision").Experiment("sweep").Replicas(1).Submit(10).Work(1000).Obj().JobSpec
	told := func(metric string, step, value float64) core.Event {
		return core.Event{Kind: core.JobReported, AtSeconds: 10, Job: 3, Metric: metric, Step: step, Value: value}
	}
	scheduler(t, &operated{}, core.Event{Kind: core.JobSubmitted, AtSeconds: 10, Job: 3, Spec: trial},
		told("loss", 1, 2.5), told("loss", 2, 0.5), told("loss", 3, 1.0/3), told("accuracy", 3, 0.75))
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"jobs of a search": {[]string{"jobs", "--experiment", "sweep", "-o", "wide"}, `id  job    state    tenant  application  replicas     age     ran  restarts  progress  experiment  reported            where or why not
 3  trial  running  vision                      1  1m 00s  1m 00s         0     0.0 %  sweep       loss 0.333333 at 3  t4-0:2
`},
		"of another search": {[]string{"jobs", "--experiment", "other", "-o", "json"}, "[]\n"},
		"jobs for programs": {[]string{"jobs", "-o", "csv"}, `id,job,tenant,application,state,reason,requested,min_replicas,max_replicas,replicas,seats,submit_s,first_start_s,finish_s,executed_s,gpu_seconds,restarts,preemptions,progress,total_work,failures,message,experiment,metric,step,value
0,first,vision,,waiting,preempted_by_priority,8,8,8,0,,0,0,,10,80,0,1,40,1000,0,,,,,
2,second,vision,,running,,2,2,2,2,"t4-0:0,1",10,10,,60,120,0,0,0,1000,0,,,,,
3,trial,vision,,running,,1,1,1,1,t4-0:2,10,10,,60,60,0,0,0,1000,0,,sweep,loss,3,0.3333333333333333
`},
		"described": {[]string{"describe", "trial"}, `experiment    sweep
`},
		"a table": {[]string{"describe", "trial"}, `
metric    step     value    lowest  at step  highest  at step      at  reports
loss         3  0.333333  0.333333        3      2.5        1  10.0 s        3
accuracy     3      0.75      0.75        3     0.75        3  10.0 s        1

`},
		"described for programs": {[]string{"describe", "trial", "-o", "json"}, `"lowest_step": 3,`},
	} {
		t.Run(name, func(t *testing.T) {
			code, got, errs := invoke(t, tc.args...)
			if code != 0 || !strings.Contains(got, tc.want) {
				t.Errorf("exit %d, %s\n%s\nwant:\n%s", code, errs, got, tc.want)
			}
		})
	}
	if _, got, _ := invoke(t, "describe", "first", "-o", "json"); strings.Contains(got, "metrics") {
		t.Errorf("a job that reported nothing is described with metrics:\n%s", got)
	}
}

// Why a job was ended or held back is told with the report that it was judged by, of a run that is over and in the words of the policy.
func TestExplainWhatWasReviewed(t *testing.T) {
	const judged = `"reason":"converged","message":"loss is 0.5 at step 7","by":"admission/convergence"}`
	for name, tc := range map[string]struct{ lines, want string }{
		"ended": {
			`{"round":1,"t_s":0,"job":"a","action":"start","replicas":1,"seats":[["n","0"]],"by":"p"}` + "\n" +
				`{"round":2,"t_s":60,"job":"a","verdict":"end",` + judged + "\n" + `{"round":2,"t_s":60,"job":"a","action":"finish","reason":"converged","by":"admission/convergence"}` + "\n",
			`Job a has completed: loss is 0.5 at step 7 (round 2, admission/convergence) [converged]`,
		},
		"held back": {
			`{"round":2,"t_s":60,"job":"a","verdict":"defer","reason":"awaiting_results","message":"rung 3","by":"admission/x"}` + "\n" +
				`{"round":2,"t_s":60,"job":"a","action":"pause","reason":"awaiting_results","by":"admission/x"}` + "\n",
			`Job a is pending admission: rung 3 (round 2, admission/x) [awaiting_results]`,
		},
		"came to its end": {`{"round":2,"t_s":60,"job":"a","event":"job_finished"}` + "\n", "Job a has completed.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "decisions.jsonl"), []byte(tc.lines), 0o600); err != nil {
				t.Fatal(err)
			}
			code, got, errs := invoke(t, "explain", "a", "--run-dir", dir)
			if code != 0 || !strings.HasPrefix(got, tc.want) {
				t.Errorf("exit %d, %s\n%s\nwant:\n%s", code, errs, got, tc.want)
			}
		})
	}
}
