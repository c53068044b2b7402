package twin

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// What ended before anybody looked is known as what ended since, and the latest submissions are the latest whatever came of them.
func TestRecall(t *testing.T) {
	b := NewBeliefs(BeliefOptions{Window: 3})
	var ended []*core.Job
	for i, submitted := range []float64{50, 10, 30} {
		j := core.NewJob(&core.JobSpec{ID: core.JobID(i), Application: "a", Requested: 2, TotalWork: 100, SubmitSeconds: submitted})
		j.State, j.FinishSeconds, j.Executed, j.Attained, j.Progress = core.Completed, 60+float64(i), 40, 80, 100
		ended = append(ended, j)
	}
	ended[2].Attained = 0 // it never ran
	b.Recall(ended)
	b.submissions.add(&core.JobSpec{SubmitSeconds: 20}, math.NaN(), 3) // that goes on
	want := []ending{
		{application: "a", requested: 2, work: 100, seconds: 40, declared: 100, all: true},
		{application: "a", requested: 2, work: 100, seconds: 40, declared: 100, all: true},
	}
	if diff := cmp.Diff(want, b.history.ended, cmp.AllowUnexported(ending{})); diff != "" {
		t.Errorf("jobs that ended (-want +got):\n%s", diff)
	}
	var moments []float64
	for _, spec := range b.submissions.list {
		moments = append(moments, spec.SubmitSeconds)
	}
	if diff := cmp.Diff([]float64{20, 30, 50}, moments); diff != "" {
		t.Errorf("submissions (-want +got):\n%s", diff)
	}
}
