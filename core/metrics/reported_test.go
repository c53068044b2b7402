package metrics

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// The column of experiments is the last, is there when a job is a trial, and is read back.
func TestExperimentColumn(t *testing.T) {
	var written bytes.Buffer
	c := NewCollector(Components{}, Outputs{Jobs: &written})
	v := &core.View{Cluster: &core.Cluster{}}
	for id, experiment := range []string{"", "sweep"} {
		spec := &core.JobSpec{ID: core.JobID(id), Name: "job", Experiment: experiment}
		v.Jobs = append(v.Jobs, core.NewJob(spec))
		if err := c.ObserveRound(&core.Report{View: v, Events: []core.Event{{Kind: core.JobSubmitted, Job: spec.ID, Spec: spec}}}); err != nil {
			t.Fatal(err)
		}
		if has := strings.HasSuffix(c.more().header(), ",outcome,experiment\n"); has != (experiment != "") {
			t.Errorf("after job %d there is a column: %v", id, has)
		}
	}
	if _, err := c.Finish(v.Jobs, 1); err != nil {
		t.Fatal(err)
	}
	jobs, err := ReadJobs(strings.NewReader(written.String()))
	if err != nil || len(jobs) != 2 || jobs[0].Experiment != "" || jobs[1].Experiment != "sweep" {
		t.Errorf("%+v, %v", jobs, err)
	}
}

// A snapshot tells the latest of the first four metrics of jobs that have not ended, and is not changed by what they report later.
func TestSnapshotTellsWhatJobsReported(t *testing.T) {
	live := NewLive(NewCollector(Components{}, Outputs{}), Run{})
	v := &core.View{Cluster: &core.Cluster{}, Jobs: []*core.Job{core.NewJob(&core.JobSpec{ID: 0, Name: "silent"}), core.NewJob(&core.JobSpec{ID: 1, Name: "many"})}}
	for k := range 6 {
		v.Jobs[1].Reported = append(v.Jobs[1].Reported, core.Series{Metric: fmt.Sprint(k), Points: []core.Point{{Step: 1, Value: 9}, {Step: 2, Value: float64(k)}}})
	}
	for _, j := range v.Jobs {
		if err := live.ObserveRound(&core.Report{View: v, Events: []core.Event{{Kind: core.JobSubmitted, Job: j.ID, Spec: j.JobSpec}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range v.Jobs {
		live.copy(v, j.ID) // as of a job that changed
	}
	got := live.Snapshot().Reported
	v.Jobs[1].Reported[0].Points[1].Value = 7
	want := []ReportedValue{{"many", "0", 2, 0}, {"many", "1", 2, 1}, {"many", "2", 2, 2}, {"many", "3", 2, 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
