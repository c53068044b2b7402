package tuning

import (
	"slices"
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

// What a run leaves unfinished has used devices too, and a trial that has ended hears nothing more.
func TestAccountsOfTheEnd(t *testing.T) {
	r := &Run{experiment: &experiment{plan: &plan{Config: Config{Experiment: "x", Metric: "val", Goal: "minimize"}}}, used: map[string]usage{}}
	a, b := newTrial("a", 0), newTrial("b", 0)
	r.trials, r.byJob, r.live = []*trial{a, b}, map[string]*trial{"a": a, "b": b}, 2
	r.take(a, &workload.Result{Kind: workload.JobFinished, Job: "a", AtSeconds: 4})
	if !a.state.ended() || b.state.ended() || r.live != 1 {
		t.Errorf("states %v and %v, %d live; want one that has ended", a.state, b.state, r.live)
	}
	r.Finish([]*core.Job{{JobSpec: &core.JobSpec{Name: "b", Experiment: "x"}, Held: 2, AsOfSeconds: 10, Attained: 5, FirstStart: 7}}, 20)
	header, rows := r.Table()
	at := func(name string) int { return slices.Index(header, name) }
	if got := rows[1][at("device_seconds")]; got != "25" {
		t.Errorf("device seconds %q, want 25: 5 and 10 s on 2 devices", got)
	}
	if got := rows[1][at("start_s")]; got != "7" {
		t.Errorf("started at %q, want 7", got)
	}
	for _, id := range []int{-1, 2} {
		if _, err := r.byID(id); err == nil {
			t.Errorf("trial %d is found, of two", id)
		}
	}
}

// A run is gone on with by a config that says the same, also by one that was written out with what is empty, and by no other.
func TestIdentities(t *testing.T) {
	of := func(seed uint64, c Config) string {
		return (&experiment{plan: &plan{Config: c}, seed: seed}).identity()
	}
	base := Config{Experiment: "x", Trials: 4, Job: map[string]any{"command": []any{"a", "b"}}}
	same, other := base, base
	same.Job = map[string]any{"command": []any{"a", "b"}, "environment": []any{}, "batch": map[string]any{}}
	same.Space, same.Search.Config = []map[string]any{}, map[string]any{}
	other.Job = map[string]any{"command": []any{"a", "c"}}
	more := base
	more.Trials = 5
	want := of(1, base)
	if got := of(1, same); got != want {
		t.Error("another identity with what is empty written out")
	}
	for name, got := range map[string]string{"another command": of(1, other), "more trials": of(1, more), "another seed": of(2, base)} {
		if got == want {
			t.Errorf("the same identity with %s", name)
		}
	}
}
