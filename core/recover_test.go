package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// repentant breaks a rule once, and does better when it is told.
type repentant struct {
	grantAll
	told *int
}

func (r repentant) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	grants, err := r.grantAll.Allocate(ctx, v, candidates)
	if *r.told == 0 {
		grants = append(grants, grants[0])
	}
	return grants, err
}

func (r repentant) Recover(_ context.Context, broken error) (bool, error) {
	*r.told++
	return *r.told == 1, broken
}

func TestAStageThatRecoversIsAskedAgain(t *testing.T) {
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
	stages, told := fakes{}.stages(), 0
	stages.Allocation.Policy = repentant{told: &told}
	if err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if told != 1 || len(b.applied) != 2 {
		t.Errorf("got %d times, %d changes applied; want 1 and 2", told, len(b.applied))
	}
}

func TestAStageThatDoesNotRecoverEndsTheRun(t *testing.T) {
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}}}
	stages, told := fakes{}.stages(), 1 // so that it gives up at once
	stages.Allocation.Policy = repentant{grantAll: grantAll{change: func(g []core.Grant) []core.Grant { return append(g, g[0]) }}, told: &told}
	err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(context.Background(), b)
	if broken := (*core.InvariantError)(nil); !errors.As(err, &broken) || broken.Rule != core.RuleAnswerOnce {
		t.Errorf("error %v, want %q broken", err, core.RuleAnswerOnce)
	}
}
