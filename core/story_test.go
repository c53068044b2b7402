package core_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// accounts is a story with the accounts of each job that is not over, or ended in the round.
type accounts struct {
	story
	cursor int
}

func (a *accounts) ObserveRound(r *core.Report) error {
	if err := a.story.ObserveRound(r); err != nil {
		return err
	}
	last := &a.rounds[len(a.rounds)-1]
	changed, next, _ := r.View.ChangesSince(a.cursor)
	changed = slices.Compact(slices.Sorted(slices.Values(changed)))
	a.cursor = next
	*last += fmt.Sprintf("; changed %v, in all %v, devices %d", r.View.Changed, changed, r.View.Devices)
	if !math.IsNaN(r.GapRatio) {
		*last += fmt.Sprintf(", gap %v", r.GapRatio)
	}
	jobs := slices.Concat(r.View.Jobs, r.Ended)
	for _, j := range jobs {
		if j == nil {
			continue
		}
		*last += fmt.Sprintf("\n\t%d %v, done %v at %v and %v a second, steps left %v, reason %v, restarts %d, preempted %d, attained %v, last change %v",
			j.ID, j.State, j.Progress, j.ProgressAsOf, j.ProgressRate, j.StepsLeft, j.WaitingReason, j.Restarts, j.Preemptions, j.Attained, j.LastChange)
		if j.Tuning.BatchPerDevice > 0 {
			*last += fmt.Sprintf(", batch %d", j.Tuning.BatchPerDevice)
		}
		if len(j.Measured) > 0 {
			*last += fmt.Sprintf(", measured %v s, square %v", j.Measured[0].StepSeconds, j.Gradients.SquaredNorm)
		}
	}
	return nil
}

// scripted plays a part round by round: which jobs are granted, which are evicted on the way, and how they are tuned.
type scripted struct {
	seatFirst
	rigid
	granted [][]core.JobID // nil for all
	evicted [][]core.JobID
	tuned   [][]core.Tuning
	ended   *[]string
}

func of[T any](list [][]T, round int) []T {
	if round < len(list) {
		return list[round]
	}
	return nil
}

func (s scripted) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) (grants []core.Grant, err error) {
	for _, c := range candidates {
		if only := of(s.granted, v.Round); only == nil || slices.Contains(only, c.ID) {
			grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MinReplicas})
		}
	}
	return grants, nil
}

func (s scripted) GapRatio() float64 { return 0.25 }

func (s scripted) Place(ctx context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	seating, err := s.seatFirst.Place(ctx, v, grants)
	for i := range seating.Placed {
		seating.Placed[i].Evicted = slices.Contains(of(s.evicted, v.Round), seating.Placed[i].Job)
	}
	return seating, err
}

func (s scripted) Tune(_ context.Context, v *core.View, _ []core.Placement) ([]core.Tuning, error) {
	return of(s.tuned, v.Round), nil
}

func (s scripted) Ended(_ context.Context, v *core.View, jobs []*core.Job) error {
	for _, j := range jobs {
		*s.ended = append(*s.ended, fmt.Sprintf("%d %v in round %d", j.ID, j.State, v.Round))
	}
	return nil
}

func (s scripted) stages() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/fake", Policy: admitAll{}}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/fake", Policy: s},
		Placement:  core.Component[core.Placer]{ID: "placement/fake", Policy: s},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/fake", Policy: s},
	}
}

// Four jobs on two nodes of four devices each, told of round by round.
func TestTheAccountsOfARun(t *testing.T) {
	with := func(e core.Event, change func(*core.Event)) core.Event { change(&e); return e }
	first := with(submit(0, 0, 4), func(e *core.Event) { e.StepsLeft, e.Spec.TotalWork = 50, 100 })
	b := &script{observations: []core.Observation{
		{Events: []core.Event{first, submit(1, 0, 4), submit(2, 0, 2)}},
		{NowSeconds: 60, Events: []core.Event{
			{Kind: core.JobProgressed, Job: 0, AtSeconds: 60, Progress: 10, Rate: 0.5, FromSeconds: 20, StepsLeft: 40},
			{Kind: core.JobMeasured, Job: 1, AtSeconds: 60, Measurement: core.Measurement{Nodes: 1, Replicas: 4, StepSeconds: 2}, Gradients: core.Gradients{SquaredNorm: 3}},
			{Kind: core.JobProgressed, Job: 1, AtSeconds: 60, Progress: 5, Rate: 0.25, FromSeconds: 0, StepsLeft: 20},
		}},
		{NowSeconds: 120},
		{NowSeconds: 180, Events: []core.Event{
			{Kind: core.JobInterrupted, Job: 2, AtSeconds: 150, Progress: 3, StepsLeft: 9},
			submit(3, 170, 9),
		}},
		{NowSeconds: 240},
		{NowSeconds: 300},
		{NowSeconds: 360, Events: []core.Event{
			{Kind: core.JobFinished, Job: 0, AtSeconds: 350, Progress: 99},
			{Kind: core.JobFailed, Job: 1, AtSeconds: 355, Progress: 7},
			{Kind: core.NodeChanged, Node: 1, AtSeconds: 340, Health: core.Down},
		}},
		{NowSeconds: 420, Events: []core.Event{{Kind: core.JobCancelled, Job: 2, AtSeconds: 400, Progress: 8}}},
		{NowSeconds: 480},
	}}
	var told accounts
	var ended []string
	policy := scripted{
		granted: [][]core.JobID{3: {0, 2}, 4: {0, 2}, 5: {0, 1}, 6: {0, 1}},
		evicted: [][]core.JobID{5: {0}},
		tuned:   [][]core.Tuning{5: {{BatchPerDevice: 8}}, 6: {{BatchPerDevice: 8}}},
		ended:   &ended,
	}
	p := core.NewPipeline(twoNodes(), policy.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(accountsOfARun, "\n"), strings.Split(strings.Join(told.rounds, "\n"), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{"0 completed in round 7", "1 failed in round 7", "2 cancelled in round 8"} // who was rejected, taught nothing
	if diff := cmp.Diff(want, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	var wakes []float64
	for _, w := range b.wakes {
		wakes = append(wakes, w.BySeconds)
	}
	never := math.Inf(1)
	if diff := cmp.Diff([]float64{never, 60, 120, 180, 240, 300, 360, 420, never, never}, wakes); diff != "" {
		t.Errorf("wakes (-want +got):\n%s", diff)
	}
}

const accountsOfARun = `1 at 0: active [0 1 2], waiting 1, used 8; start 0 0[0,1,2,3] by placement/fake; start 1 1[0,1,2,3] by placement/fake; 2 defer waiting_for_devices by placement/fake; changed [0 1 2], in all [0 1 2], devices 8, gap 0.25
	0 running, done 0 at 0 and 0 a second, steps left 50, reason none, restarts 0, preempted 0, attained 0, last change 0
	1 running, done 0 at 0 and 0 a second, steps left 0, reason none, restarts 0, preempted 0, attained 0, last change 0
	2 waiting, done 0 at 0 and 0 a second, steps left 0, reason waiting_for_devices, restarts 0, preempted 0, attained 0, last change 0
2 at 60: active [0 1 2], waiting 1, used 8; changed [0 1], in all [0 1], devices 8, gap 0.25
	0 running, done 10 at 20 and 0.5 a second, steps left 40, reason none, restarts 0, preempted 0, attained 0, last change 0
	1 running, done 5 at 0 and 0.25 a second, steps left 20, reason none, restarts 0, preempted 0, attained 0, last change 0, measured 2 s, square 3
	2 waiting, done 0 at 0 and 0 a second, steps left 0, reason waiting_for_devices, restarts 0, preempted 0, attained 0, last change 0
3 at 120: active [0 1 2], waiting 1, used 6; stop 1 preempted_by_priority by allocation/fake; start 2 1[0,1] by placement/fake; changed [], in all [1 2], devices 8, gap 0.25
	0 running, done 10 at 20 and 0.5 a second, steps left 40, reason none, restarts 0, preempted 0, attained 0, last change 0
	1 waiting, done 35 at 120 and 0 a second, steps left 20, reason preempted_by_priority, restarts 0, preempted 1, attained 480, last change 120, measured 2 s, square 3
	2 running, done 0 at 120 and 0 a second, steps left 0, reason none, restarts 0, preempted 0, attained 0, last change 120
4 at 180: active [0 1 2], waiting 1, used 6; start 2 1[0,1] by placement/fake; discard 3 exceeds_cluster by pipeline; 3 reject exceeds_cluster by pipeline; 1 defer waiting_for_devices by pipeline; 3 rejected; changed [2 3], in all [1 2 3], devices 8, gap 0.25
	0 running, done 10 at 20 and 0.5 a second, steps left 40, reason none, restarts 0, preempted 0, attained 0, last change 0
	1 waiting, done 35 at 120 and 0 a second, steps left 20, reason waiting_for_devices, restarts 0, preempted 1, attained 480, last change 120, measured 2 s, square 3
	2 running, done 3 at 180 and 0 a second, steps left 9, reason none, restarts 1, preempted 1, attained 60, last change 180
	3 rejected, done 0 at 170 and 0 a second, steps left 0, reason exceeds_cluster, restarts 0, preempted 0, attained 0, last change 170
5 at 240: active [0 1 2], waiting 1, used 8; stop 2 preempted_by_priority by allocation/fake; tune 0 by elasticity/fake; start 1 1[0,1,2,3] by placement/fake; changed [], in all [0 1 2], devices 8, gap 0.25
	0 running, done 10 at 20 and 0.5 a second, steps left 40, reason none, restarts 0, preempted 1, attained 0, last change 0, batch 8
	1 running, done 35 at 240 and 0 a second, steps left 20, reason none, restarts 1, preempted 1, attained 480, last change 240, measured 2 s, square 3
	2 waiting, done 3 at 240 and 0 a second, steps left 9, reason preempted_by_priority, restarts 1, preempted 2, attained 180, last change 240
6 at 300: active [0 1 2], waiting 1, used 8; 2 defer waiting_for_devices by pipeline; changed [], in all [2], devices 8, gap 0.25
	0 running, done 10 at 20 and 0.5 a second, steps left 40, reason none, restarts 0, preempted 1, attained 0, last change 0, batch 8
	1 running, done 35 at 240 and 0 a second, steps left 20, reason none, restarts 1, preempted 1, attained 480, last change 240, measured 2 s, square 3
	2 waiting, done 3 at 240 and 0 a second, steps left 9, reason waiting_for_devices, restarts 1, preempted 2, attained 180, last change 240
7 at 360: active [2], waiting 0, used 2; start 2 0[0,1] by placement/fake; 0 completed; 1 failed; changed [0 1], in all [0 1 2], devices 4, gap 0.25
	2 running, done 3 at 360 and 0 a second, steps left 9, reason none, restarts 2, preempted 2, attained 180, last change 360
	0 completed, done 100 at 20 and 0 a second, steps left 40, reason none, restarts 0, preempted 1, attained 1400, last change 350, batch 8
	1 failed, done 7 at 240 and 0 a second, steps left 20, reason none, restarts 1, preempted 1, attained 940, last change 355, measured 2 s, square 3
8 at 420: active [], waiting 0, used 0; 2 cancelled; changed [2], in all [2], devices 4
	2 cancelled, done 8 at 360 and 0 a second, steps left 9, reason none, restarts 2, preempted 2, attained 260, last change 400
9 at 480: active [], waiting 0, used 0; changed [], in all [], devices 4`

// A stopwatch that goes on by a second at each look: each stage takes one.
func TestStageTimes(t *testing.T) {
	var now time.Duration
	var got []time.Duration
	p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{
		Rounds: core.RoundOptions{IntervalSeconds: 60},
		Stopwatch: func() time.Duration {
			now += time.Second
			return now
		},
		Observers: []core.Observer{observer(func(r *core.Report) { got = append(got, r.StageTime[:]...) })},
	})
	if err := p.Run(t.Context(), &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Repeat([]time.Duration{time.Second}, 5), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type observer func(*core.Report)

func (o observer) ObserveRound(r *core.Report) error { o(r); return nil }

// A deferred job is told once, and again when the reason is another.
func TestADeferralIsToldOnce(t *testing.T) {
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}, {NowSeconds: 60}, {NowSeconds: 120}, {NowSeconds: 180},
	}}
	var told story
	stages := fakes{}.stages()
	stages.Admission[0].Policy = defers{core.PolicyDecision, core.PolicyDecision, core.Fragmented, core.NoReason}
	if err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 at 0: active [1], waiting 0, used 2; start 1 0[0,1] by placement/fake; 0 defer policy_decision by admission/fake",
		"2 at 60: active [1], waiting 0, used 2",
		"3 at 120: active [1], waiting 0, used 2; 0 defer fragmented by admission/fake",
		"4 at 180: active [0 1], waiting 0, used 4; start 0 0[0,1] by placement/fake; move 1 0[2,3] by placement/fake",
	}
	if diff := cmp.Diff(want, told.rounds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// defers tells job 0 to wait for the reason of the round.
type defers []core.Reason

func (d defers) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	if reason := d[v.Round-1]; reason != core.NoReason && waiting[0].ID == 0 {
		return []core.Verdict{{Job: 0, Code: core.Defer, Reason: reason}}, nil
	}
	return nil, nil
}

// What a backend tells of jobs and nodes that there cannot be is refused.
func TestEventsOfNothing(t *testing.T) {
	other := submit(0, 0, 2)
	other.Job = 1
	for name, tc := range map[string]struct {
		event core.Event
		want  string
	}{
		"no specification":        {core.Event{Kind: core.JobSubmitted, Job: 1}, "round 1: backend submitted job 1 without a specification of its own"},
		"that of another":         {other, "round 1: backend submitted job 1 without a specification of its own"},
		"below all":               {submit(-1, 0, 2), "round 1: backend submitted job -1 without a specification of its own"},
		"the second time":         {submit(0, 0, 2), "round 1: backend submitted job 0 without a specification of its own"},
		"a node below all":        {core.Event{Kind: core.NodeChanged, Node: -1}, "round 1: backend reported unknown node -1"},
		"the node after the last": {core.Event{Kind: core.NodeChanged, Node: 2}, "round 1: backend reported unknown node 2"},
		"a job that is not there": {core.Event{Kind: core.JobFinished, Job: 7}, "round 1: backend reported job_finished of unknown job 7"},
		"a job below all":         {core.Event{Kind: core.JobFinished, Job: -1}, "round 1: backend reported job_finished of unknown job -1"},
		"one that is there":       {core.Event{Kind: core.NodeChanged, Node: 1}, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), tc.event}}}}
			err := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(t.Context(), b)
			if got := fmt.Sprint(err); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

// An allocator that puts each job on one type has the others rejected, by name.
func TestAnAllocatorOfOneTypeRejectsWhatNeedsTwo(t *testing.T) {
	mixing := submit(0, 0, 6)
	mixing.Spec.MixesTypes = true
	missing := submit(1, 0, 2)
	missing.Spec.Accelerators = []string{"h100"}
	for name, tc := range map[string]struct {
		oneType bool
		want    []core.Verdict
	}{
		"one type": {true, []core.Verdict{
			{Job: 0, Code: core.Reject, Reason: core.ExceedsCluster, Wanted: 6, Available: 4, Unit: "devices", By: "allocation/fake", Message: core.NotMixed("allocation/fake", "t4")},
			{Job: 1, Code: core.Reject, Reason: core.AcceleratorMissing, Wanted: 2, Unit: "devices", By: "pipeline"},
		}},
		"several": {false, []core.Verdict{
			{Job: 1, Code: core.Reject, Reason: core.AcceleratorMissing, Wanted: 2, Unit: "devices", By: "pipeline"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stages := fakes{seat: seatFirst{func(core.Seating) core.Seating {
				return core.Seating{Placed: []core.Placement{{Seats: []core.Seat{{Node: 0, Devices: 15}, {Node: 1, Devices: 3}}}}}
			}}}.stages()
			stages.Allocation.OneType = tc.oneType
			var told recorder
			b := &script{observations: []core.Observation{{Events: []core.Event{mixing, missing}}}}
			if err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, told.verdicts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
