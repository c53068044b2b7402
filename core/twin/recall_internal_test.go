package twin

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// What ended before anybody looked is known as what ended since, and the latest submissions are the latest whatever came of them.
func TestRecall(t *testing.T) {
	b := NewWorkloadModel(WorkloadModelOptions{Window: 3})
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

// Jobs that come like one that ended have nothing of a live job that is another and has its id, and all that is known of that which they are like.
func TestComingLikeAnotherOfThatID(t *testing.T) {
	live := &core.JobSpec{ID: 1, Name: "live", Application: "a", Requested: 1, MinReplicas: 1, MaxReplicas: 1}
	same := *live
	for name, tc := range map[string]struct {
		spec *core.JobSpec
		rate float64
		anew bool
	}{
		"the live job":           {live, 5, true},
		"a copy of its spec":     {&same, 5, true},
		"another of that id":     {&core.JobSpec{ID: 1, Name: "ended", Application: "b", Requested: 1, MinReplicas: 1, MaxReplicas: 1}, 1, false},
		"another of no job's id": {&core.JobSpec{ID: 9, Name: "ended", Application: "b", Requested: 1, MinReplicas: 1, MaxReplicas: 1}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewWorkloadModel(WorkloadModelOptions{Arrivals: ArrivalsRecent})
			b.init()
			b.begun = true
			b.records[1] = &record{rated: workload.Running{Replicas: 1, Shape: []int{1}}, rate: 5}
			b.restarts.note(1, core.BeginsAnew)
			b.submissions.add(tc.spec, math.NaN(), 20)
			p := b.prepare(&core.View{Cluster: &core.Cluster{}, Jobs: []*core.Job{nil, core.NewJob(live)}})
			if got := p.coming[0]; got.asked != tc.rate || got.anew != tc.anew {
				t.Errorf("asked %v, anew %v; want %v, %v", got.asked, got.anew, tc.rate, tc.anew)
			}
			if p.jobs[0].asked != 5 || !p.jobs[0].anew {
				t.Errorf("the live job: asked %v, anew %v", p.jobs[0].asked, p.jobs[0].anew)
			}
		})
	}
}
