package core_test

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quartet-sched/quartet/core"
)

type steadyAdmit struct {
	admitAll
	told core.Standing
}

func (s steadyAdmit) Standing() core.Standing { return s.told }

type steadyGrant struct {
	grantAll
	told core.Standing
}

func (s steadyGrant) Standing() core.Standing { return s.told }

type steadySeat struct {
	seatFirst
	told core.Standing
}

func (s steadySeat) Standing() core.Standing { return s.told }

type steadyRigid struct {
	rigid
	told core.Standing
}

func (s steadyRigid) Standing() core.Standing { return s.told }

var forEver = core.Standing{UntilSeconds: math.Inf(1)}

// steady is the composition of stages that stand for ever, but for the allocator.
func steady(allocator core.Standing) core.Stages {
	s := fakes{}.stages()
	s.Admission[0].Policy = steadyAdmit{told: forEver}
	s.Allocation.Policy = steadyGrant{told: allocator}
	s.Placement.Policy = steadySeat{told: forEver}
	s.Elasticity.Policy = steadyRigid{told: forEver}
	return s
}

func TestWakesWhenTheFirstStageIsNoLongerSteady(t *testing.T) {
	restless := steady(forEver)
	restless.Placement.Policy = seatFirst{}
	tuning := steady(core.Standing{UntilSeconds: 500})
	tuning.Elasticity.Policy = steadyRigid{told: core.Standing{UntilSeconds: 130}}
	for name, tc := range map[string]struct {
		stages core.Stages
		want   []float64
	}{
		"a stage that cannot tell is asked every interval": {restless, []float64{math.Inf(1), 60, 120}},
		"steady stages are asked on the grid afterwards":   {tuning, []float64{math.Inf(1), 180, 180}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{
				{NowSeconds: 0, Events: []core.Event{submit(0, 0, 4)}},
				{NowSeconds: 60},
			}}
			p := core.NewPipeline(twoNodes(), tc.stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			if err := p.Run(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.dueBy()); diff != "" {
				t.Errorf("wake-ups (-want +got):\n%s", diff)
			}
		})
	}
}

// Of three grants the first two are seated.
func TestStandsIfTheGrantsAreSeated(t *testing.T) {
	for name, tc := range map[string]struct {
		told core.Standing
		want float64
	}{
		"for ever":                         {forEver, math.Inf(1)},
		"until a moment":                   {core.Standing{UntilSeconds: 500}, 500},
		"until a moment that is gone":      {core.Standing{UntilSeconds: math.Inf(-1)}, 60},
		"if grants run that do":            {core.Standing{UntilSeconds: 500, IfSeated: 2}, 500},
		"if grants run of which one waits": {core.Standing{UntilSeconds: 500, IfSeated: 3}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			p := core.NewPipeline(twoNodes(), steady(tc.told), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			if got := p.StandsUntil(); got != math.Inf(1) {
				t.Errorf("before the first round: stands until %v s, want for ever", got)
			}
			seen := core.Observation{NowSeconds: 60, Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4), submit(2, 0, 4)}}
			if err := p.Round(context.Background(), seen, &script{}); err != nil {
				t.Fatal(err)
			}
			if got := p.StandsUntil(); got != tc.want {
				t.Errorf("stands until %v s, want %v", got, tc.want)
			}
		})
	}
}

// Only admission was asked in the second round: what the others told of earlier answers no longer matters.
func TestAStageThatWasNotAskedHasNoSay(t *testing.T) {
	stages := steady(core.Standing{UntilSeconds: 100, IfSeated: 1})
	stages.Placement.Policy = seatFirst{}
	stages.Admission[0].Policy = steadyAdmit{admitAll{[]core.Verdict{{Job: 1, Code: core.Defer, Reason: core.PolicyDecision}}}, forEver}
	p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
	for _, round := range []struct {
		seen core.Observation
		want float64
	}{
		{core.Observation{Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4)}}, 0},
		{core.Observation{NowSeconds: 60, Events: []core.Event{{Kind: core.JobFinished, Job: 0, AtSeconds: 50}}}, math.Inf(1)},
	} {
		if err := p.Round(context.Background(), round.seen, &script{}); err != nil {
			t.Fatal(err)
		}
		if got := p.StandsUntil(); got != round.want {
			t.Errorf("at %v s: stands until %v s, want %v", round.seen.NowSeconds, got, round.want)
		}
	}
}

// askedAbout notes when Respond is asked about how many jobs.
type askedAbout struct {
	steadyRigid
	asked *[]float64
}

func (a askedAbout) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	for range jobs {
		*a.asked = append(*a.asked, v.NowSeconds)
	}
	return a.steadyRigid.Respond(ctx, v, jobs)
}

// What a job can do may change as time passes: the elasticity names the moment, on event-only rounds too, and is asked then about
// the jobs that run.
func TestElasticityIsAskedAgainAtItsMoment(t *testing.T) {
	var asked []float64
	stages := steady(forEver)
	stages.Elasticity.Policy = askedAbout{steadyRigid{told: core.Standing{UntilSeconds: 10}}, &asked}
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 4)}}, {NowSeconds: 9}, {NowSeconds: 10}, {NowSeconds: 11},
	}}
	if err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{0, 10}, asked); diff != "" {
		t.Errorf("asked at (-want +got):\n%s", diff)
	}
	var by []float64
	for _, w := range b.wakes {
		by = append(by, w.BySeconds)
	}
	if diff := cmp.Diff([]float64{math.Inf(1), 10, 10, math.Inf(1), math.Inf(1)}, by); diff != "" {
		t.Errorf("wake-ups (-want +got):\n%s", diff)
	}
}
