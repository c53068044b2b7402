package tuning

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// A search that hears nothing tells why.
func TestUnheard(t *testing.T) {
	reported := func(id core.JobID, metric string) core.Event {
		return core.Event{Kind: core.JobReported, Job: id, Metric: metric}
	}
	ends := []workload.Result{{Kind: workload.JobFinished, Job: "a"}}
	cases := map[string]struct {
		events  []core.Event
		results []workload.Result
		want    string
	}{
		"another metric":      {[]core.Event{reported(0, "loss"), reported(0, "accuracy"), reported(0, "loss")}, ends, `no trial reported the metric "val"; they reported accuracy, loss`},
		"with the last words": {[]core.Event{reported(2, "loss")}, ends, `no trial reported the metric "val"; they reported loss`},
		"of other jobs":       {[]core.Event{reported(1, "loss")}, ends, `no trial reported the metric "val", nor any other`},
		"nothing yet":         {nil, nil, ""},
		"the right one too":   {[]core.Event{reported(0, "loss"), reported(0, "val")}, []workload.Result{{Kind: workload.JobReported, Job: "a", Value: 1}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Run{experiment: &experiment{plan: &plan{Config: Config{Experiment: "x", Metric: "val", Goal: "minimize"}}}, used: map[string]usage{}}
			first := newTrial("a", 0)
			r.trials, r.byJob = []*trial{first}, map[string]*trial{"a": first}
			report := &core.Report{
				View:   &core.View{Jobs: []*core.Job{{JobSpec: &core.JobSpec{ID: 0, Experiment: "x"}}, {JobSpec: &core.JobSpec{ID: 1}}, nil}},
				Events: tc.events, Ended: []*core.Job{{JobSpec: &core.JobSpec{ID: 2, Experiment: "x"}}},
			}
			if err := r.ObserveRound(report); err != nil {
				t.Fatal(err)
			}
			for i := range tc.results {
				r.take(first, &tc.results[i])
			}
			if got := r.Summary().Unheard(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
