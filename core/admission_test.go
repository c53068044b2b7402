package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// oneAtATime admits the first job that waits.
type oneAtATime struct{}

func (oneAtATime) Admit(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	var rest []core.Verdict
	for _, j := range waiting[1:] {
		rest = append(rest, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.PolicyDecision})
	}
	return rest, nil
}

func (oneAtATime) Standing() core.Standing { return forEver }

// rejectFirst rejects job 0.
type rejectFirst struct{}

func (rejectFirst) Admit(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	if waiting[0].ID != 0 {
		return nil, nil
	}
	return []core.Verdict{{Job: 0, Code: core.Reject, Reason: core.PolicyDecision}}, nil
}

// The first admitter defers job 1 for the sake of job 0, which the second one rejects.
func TestARejectionAsksEarlierAdmittersAgain(t *testing.T) {
	stages := steady(forEver)
	stages.Admission = []core.Component[core.Admitter]{{ID: "admission/one", Policy: oneAtATime{}}, {ID: "admission/reject", Policy: rejectFirst{}}}
	p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
	seen := core.Observation{NowSeconds: 60, Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4)}}
	b := &script{}
	if err := p.Round(context.Background(), seen, b); err != nil {
		t.Fatal(err)
	}
	if len(b.applied) != 2 || b.applied[0].Action != core.Start || b.applied[0].Job != 1 {
		t.Errorf("applied %+v, want job 1 started in the place of job 0", b.applied)
	}
}

// onlooker keeps which jobs the view shows.
type onlooker struct{ shown *[]core.JobID }

func (o onlooker) Admit(_ context.Context, v *core.View, _ []*core.Job) ([]core.Verdict, error) {
	for id, j := range v.Jobs {
		if j != nil {
			*o.shown = append(*o.shown, core.JobID(id))
		}
	}
	return nil, nil
}

// Job 2 does not fit the cluster, and job 0 is rejected by the admitter between the onlookers.
func TestAdmittersAreNotShownWhatIsRejected(t *testing.T) {
	var before, after []core.JobID
	stages := fakes{}.stages()
	stages.Admission = []core.Component[core.Admitter]{
		{ID: "admission/before", Policy: onlooker{&before}}, {ID: "admission/reject", Policy: rejectFirst{}}, {ID: "admission/after", Policy: onlooker{&after}},
	}
	p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
	seen := core.Observation{NowSeconds: 60, Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4), submit(2, 0, 9)}}
	b := &script{}
	if err := p.Round(context.Background(), seen, b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]core.JobID{0, 1}, before); diff != "" {
		t.Errorf("shown before the rejection (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]core.JobID{1}, after); diff != "" {
		t.Errorf("shown after the rejection (-want +got):\n%s", diff)
	}
	var actions []string
	for _, c := range b.applied {
		actions = append(actions, fmt.Sprint(c.Action, c.Job))
	}
	if diff := cmp.Diff([]string{"start 1", "discard 0", "discard 2"}, actions); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
}
