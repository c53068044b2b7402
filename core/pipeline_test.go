package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// The simplest policies that work; a test breaks one of them in one way.

type admitAll struct{ verdicts []core.Verdict }

func (a admitAll) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return a.verdicts, nil
}

type grantAll struct {
	gap    float64
	change func(grants []core.Grant) []core.Grant
	calls  *int
}

func (g grantAll) GapRatio() float64 { return g.gap }

func (g grantAll) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if g.calls != nil {
		*g.calls++
	}
	var grants []core.Grant
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MinReplicas})
	}
	if g.change != nil {
		grants = g.change(grants)
	}
	return grants, nil
}

type seatFirst struct {
	change func(s core.Seating) core.Seating
}

func (p seatFirst) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	var ledger core.Ledger
	ledger.Reset(v.Cluster)
	var s core.Seating
	for _, g := range grants {
		node := slices.IndexFunc(v.Cluster.Nodes, func(n core.Node) bool { return ledger.Free(n.ID) >= g.Replicas })
		if node < 0 {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			continue
		}
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: []core.Seat{ledger.Take(core.NodeID(node), g.Replicas)}})
	}
	if p.change != nil {
		s = p.change(s)
	}
	return s, nil
}

type rigid struct {
	respond func(r []core.Response) []core.Response
	tunings []core.Tuning
}

func (e rigid) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	var responses []core.Response
	for _, j := range jobs {
		responses = append(responses, core.Response{Job: j.ID, MinReplicas: j.Requested, MaxReplicas: j.Requested})
	}
	if e.respond != nil {
		responses = e.respond(responses)
	}
	return responses, nil
}

func (e rigid) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return e.tunings, nil
}

// script is a backend that tells what it was given, and remembers what it was asked to do.
type script struct {
	observations []core.Observation
	applied      []core.Change
	wakes        []core.Wake
}

func (s *script) Next(_ context.Context, w core.Wake) (core.Observation, error) {
	s.wakes = append(s.wakes, w)
	if len(s.observations) == 0 {
		return core.Observation{}, io.EOF
	}
	next := s.observations[0]
	s.observations = s.observations[1:]
	return next, nil
}

func (s *script) Apply(_ context.Context, changes []core.Change) error {
	s.applied = append(s.applied, changes...)
	return nil
}

func (s *script) Capabilities() []core.Capability { return nil }

// dueBy is by when each round was due, in seconds.
func (s *script) dueBy() (by []float64) {
	for _, w := range s.wakes {
		by = append(by, w.BySeconds)
	}
	return by
}

// recorder keeps what observers are told.
type recorder struct {
	verdicts []core.Verdict
	ended    []*core.Job
	used     []int
	events   []int
}

func (r *recorder) ObserveRound(report *core.Report) error {
	r.verdicts = append(r.verdicts, report.Verdicts...)
	r.ended = append(r.ended, report.Ended...)
	r.used = append(r.used, report.DevicesUsed)
	r.events = append(r.events, len(report.Events))
	return nil
}

func twoNodes() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"t4", "v100"}, Nodes: []core.Node{
		{ID: 0, Name: "a", Devices: 4}, {ID: 1, Name: "b", Devices: 4, Accelerator: 1},
	}}
}

func submit(id core.JobID, at float64, replicas int) core.Event {
	return core.Event{Kind: core.JobSubmitted, AtSeconds: at, Job: id, Spec: &core.JobSpec{
		ID: id, Name: string(rune('a' + id)), SubmitSeconds: at, Requested: replicas, MinReplicas: replicas, MaxReplicas: replicas,
	}}
}

type fakes struct {
	admit admitAll
	grant grantAll
	seat  seatFirst
	fixed rigid
}

func (f fakes) stages() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/fake", Policy: f.admit}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/fake", Policy: f.grant},
		Placement:  core.Component[core.Placer]{ID: "placement/fake", Policy: f.seat},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/fake", Policy: f.fixed},
	}
}

func TestInvariantsBlameTheComponent(t *testing.T) {
	grants := func(change func([]core.Grant) []core.Grant) fakes { return fakes{grant: grantAll{change: change}} }
	seating := func(change func(core.Seating) core.Seating) fakes { return fakes{seat: seatFirst{change: change}} }
	responses := func(change func([]core.Response) []core.Response) fakes { return fakes{fixed: rigid{respond: change}} }
	for name, tc := range map[string]struct {
		fakes     fakes
		component string
		rule      string
	}{
		"a verdict for a job never asked about": {
			fakes{admit: admitAll{[]core.Verdict{{Job: 7}}}}, "admission/fake", core.RuleAnswerForAsked,
		},
		"two verdicts for a job": {
			fakes{admit: admitAll{[]core.Verdict{{Job: 0}, {Job: 0}}}}, "admission/fake", core.RuleAnswerForAsked,
		},
		"a response missing": {
			responses(func(r []core.Response) []core.Response { return r[1:] }), "elasticity/fake", core.RuleAnswerForAsked,
		},
		"responses swapped": {
			responses(func(r []core.Response) []core.Response { r[0], r[1] = r[1], r[0]; return r }), "elasticity/fake", core.RuleAnswerForAsked,
		},
		"a response without replicas": {
			responses(func(r []core.Response) []core.Response { r[0].MinReplicas = 0; return r }), "elasticity/fake", core.RuleReplicasInRange,
		},
		"a response with a range upside down": {
			responses(func(r []core.Response) []core.Response { r[0].MaxReplicas = 0; return r }), "elasticity/fake", core.RuleReplicasInRange,
		},
		"a grant for a job that does not exist": {
			grants(func(g []core.Grant) []core.Grant { g[0].Job = 9; return g }), "allocation/fake", core.RuleAnswerForAsked,
		},
		"a grant for a negative job": {
			grants(func(g []core.Grant) []core.Grant { g[0].Job = -1; return g }), "allocation/fake", core.RuleAnswerForAsked,
		},
		"two grants for a job": {
			grants(func(g []core.Grant) []core.Grant { return append(g, g[0]) }), "allocation/fake", core.RuleAnswerOnce,
		},
		"a grant beyond the range": {
			grants(func(g []core.Grant) []core.Grant { g[0].Replicas++; return g }), "allocation/fake", core.RuleReplicasInRange,
		},
		"a grant of an unknown accelerator": {
			grants(func(g []core.Grant) []core.Grant { g[0].Accelerator = 5; return g }), "allocation/fake", core.RuleOneAccelerator,
		},
		"a grant of the first type that there is not": {
			grants(func(g []core.Grant) []core.Grant { g[0].Accelerator = 2; return g }), "allocation/fake", core.RuleOneAccelerator,
		},
		"a grant of a type below any": {
			grants(func(g []core.Grant) []core.Grant { g[0].Accelerator = core.AnyAccelerator - 1; return g }), "allocation/fake", core.RuleOneAccelerator,
		},
		"a gap beyond the whole": {
			fakes{grant: grantAll{gap: 1.5}}, "allocation/fake", core.RuleGapSane,
		},
		"a device twice": {
			seating(func(s core.Seating) core.Seating { s.Placed[1].Seats = s.Placed[0].Seats; return s }), "placement/fake", core.RuleDeviceOnce,
		},
		"a device that does not exist": {
			seating(func(s core.Seating) core.Seating { s.Placed[0].Seats[0].Devices = 3 << 4; return s }), "placement/fake", core.RuleDeviceOnce,
		},
		"a node that does not exist": {
			seating(func(s core.Seating) core.Seating { s.Placed[0].Seats[0].Node = 2; return s }), "placement/fake", core.RuleDeviceOnce,
		},
		"half a gang": {
			seating(func(s core.Seating) core.Seating { s.Placed[0].Seats[0].Devices = 1; return s }), "placement/fake", core.RuleGangComplete,
		},
		"a seat without devices": {
			seating(func(s core.Seating) core.Seating {
				s.Placed[0].Seats = append(s.Placed[0].Seats, core.Seat{Node: 0})
				return s
			}), "placement/fake", core.RuleGangComplete,
		},
		"two accelerator types for one job": {
			seating(func(s core.Seating) core.Seating {
				s.Placed[0].Seats = []core.Seat{{Node: 0, Devices: 8}, {Node: 1, Devices: 8}}
				return s
			}), "placement/fake", core.RuleOneAccelerator,
		},
		"a grant without an answer": {
			seating(func(s core.Seating) core.Seating { s.Placed = s.Placed[1:]; return s }), "placement/fake", core.RuleAnswerEveryGrant,
		},
		"a grant answered twice": {
			seating(func(s core.Seating) core.Seating { s.Unseated = []core.Verdict{{Job: 0}}; return s }), "placement/fake", core.RuleAnswerOnce,
		},
		"a verdict with an unknown code": {
			fakes{admit: admitAll{[]core.Verdict{{Job: 1, Code: core.End}}}}, "admission/fake", core.RuleVerdictAllowed,
		},
		"a verdict with an unknown reason": {
			fakes{admit: admitAll{[]core.Verdict{{Job: 1, Code: core.Defer, Reason: core.AwaitingResults + 1}}}}, "admission/fake", core.RuleVerdictAllowed,
		},
		"a grant refused with an unknown reason": {
			seating(func(s core.Seating) core.Seating {
				s.Placed, s.Unseated = s.Placed[1:], []core.Verdict{{Job: 0, Code: core.Defer, Reason: core.AwaitingResults + 1}}
				return s
			}), "placement/fake", core.RuleVerdictAllowed,
		},
		"a grant neither seated nor deferred": {
			seating(func(s core.Seating) core.Seating {
				s.Placed, s.Unseated = s.Placed[1:], []core.Verdict{{Job: 0, Code: core.Admit, Reason: core.WaitingForDevices}}
				return s
			}), "placement/fake", core.RuleVerdictAllowed,
		},
		"a grant rejected": {
			seating(func(s core.Seating) core.Seating {
				s.Placed, s.Unseated = s.Placed[1:], []core.Verdict{{Job: 0, Code: core.Reject, Reason: core.WaitingForDevices}}
				return s
			}), "placement/fake", core.RuleVerdictAllowed,
		},
		"a tuning for a job without devices": {
			fakes{fixed: rigid{tunings: []core.Tuning{{Job: 4}}}}, "elasticity/fake", core.RuleAnswerForAsked,
		},
		"a tuning twice": {
			fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1}, {Job: 1}}}}, "elasticity/fake", core.RuleAnswerOnce,
		},
		"a split over other replicas than it has": {
			fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1, BatchByReplica: []int{4, 4, 4}}}}}, "elasticity/fake", core.RuleTuningSane,
		},
		"a split with a negative part": {
			fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1, BatchByReplica: []int{9, -1}}}}}, "elasticity/fake", core.RuleTuningSane,
		},
		"a learning rate that is not a number": {
			fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1, LearningRateFactor: math.NaN()}}}}, "elasticity/fake", core.RuleTuningSane,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
			p := core.NewPipeline(twoNodes(), tc.fakes.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			err := p.Run(context.Background(), b)
			var broken *core.InvariantError
			if !errors.As(err, &broken) {
				t.Fatalf("error %v, want a broken invariant", err)
			}
			if broken.Component != tc.component || broken.Rule != tc.rule {
				t.Errorf("blames %q for %q, want %q for %q", broken.Component, broken.Rule, tc.component, tc.rule)
			}
			if len(b.applied) > 0 {
				t.Errorf("applied %v after a broken invariant", b.applied)
			}
		})
	}
}

// A job that mixes types may sit on two, with a batch split over them, but not on one that it cannot run on or that was not
// granted.
func TestJobsThatMixTypes(t *testing.T) {
	both := []core.Seat{{Node: 0, Devices: 8}, {Node: 1, Devices: 8}}
	for name, tc := range map[string]struct {
		spec    core.JobSpec
		granted core.AcceleratorID
		broken  string
	}{
		"on two types":                         {core.JobSpec{MixesTypes: true}, core.AnyAccelerator, ""},
		"a job that does not mix them":         {core.JobSpec{}, core.AnyAccelerator, core.RuleOneAccelerator},
		"one that it cannot run on":            {core.JobSpec{MixesTypes: true, Accelerators: []string{"t4"}}, core.AnyAccelerator, core.RuleOneAccelerator},
		"one beside that which it was granted": {core.JobSpec{MixesTypes: true}, 1, core.RuleOneAccelerator},
	} {
		t.Run(name, func(t *testing.T) {
			e := submit(0, 0, 2)
			e.Spec.MixesTypes, e.Spec.Accelerators = tc.spec.MixesTypes, tc.spec.Accelerators
			b := &script{observations: []core.Observation{{Events: []core.Event{e}}}}
			f := fakes{
				grant: grantAll{change: func(g []core.Grant) []core.Grant { g[0].Accelerator = tc.granted; return g }},
				seat:  seatFirst{func(core.Seating) core.Seating { return core.Seating{Placed: []core.Placement{{Seats: both}}} }},
				fixed: rigid{tunings: []core.Tuning{{BatchPerDevice: 5, BatchByReplica: []int{7, 3}}}},
			}
			err := core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(context.Background(), b)
			var broken *core.InvariantError
			if errors.As(err, &broken) != (tc.broken != "") || broken != nil && broken.Rule != tc.broken {
				t.Fatalf("error %v, want %q broken", err, tc.broken)
			}
			if tc.broken == "" && (len(b.applied) != 1 || !slices.Equal(b.applied[0].Tuning.BatchByReplica, []int{7, 3})) {
				t.Errorf("applied %+v, want a start with the batch split", b.applied)
			}
		})
	}
}

// A split holds for the devices it was made for.
func TestASplitEndsWithItsSeats(t *testing.T) {
	seats := [][]core.Seat{{{Node: 0, Devices: 8}, {Node: 1, Devices: 8}}, {{Node: 0, Devices: 8}}}
	replicas, round := []int{2, 1}, 0
	e := submit(0, 0, 1)
	e.Spec.MixesTypes, e.Spec.MaxReplicas = true, 2
	b := &script{observations: []core.Observation{{Events: []core.Event{e}}, {NowSeconds: 60}}}
	f := fakes{
		grant: grantAll{change: func(g []core.Grant) []core.Grant { g[0].Replicas = replicas[round]; return g }},
		seat: seatFirst{func(core.Seating) core.Seating {
			round++
			return core.Seating{Placed: []core.Placement{{Seats: seats[round-1]}}}
		}},
		fixed: rigid{respond: func(r []core.Response) []core.Response { r[0].MaxReplicas = 2; return r }},
	}
	stages := f.stages()
	stages.Elasticity.Policy = tunesOnce{f.fixed, new(int)}
	if err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if len(b.applied) != 2 || !slices.Equal(b.applied[0].Tuning.BatchByReplica, []int{7, 3}) || b.applied[1].Tuning.BatchByReplica != nil {
		t.Errorf("applied %+v, want a split, and none after the move", b.applied)
	}
}

// tunesOnce splits a batch in the first round only.
type tunesOnce struct {
	rigid
	calls *int
}

func (e tunesOnce) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	if *e.calls++; *e.calls > 1 {
		return nil, nil
	}
	return []core.Tuning{{BatchPerDevice: 5, BatchByReplica: []int{7, 3}}}, nil
}

func TestSeatsOnANodeThatIsNotReadyAreRefused(t *testing.T) {
	for _, health := range []core.Health{core.Draining, core.Down} {
		t.Run(health.String(), func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{
				{Kind: core.NodeChanged, Node: 0, Health: health}, submit(0, 0, 2),
			}}}}
			stages := fakes{seat: seatFirst{func(core.Seating) core.Seating {
				return core.Seating{Placed: []core.Placement{{Job: 0, Seats: []core.Seat{{Node: 0, Devices: 3}}}}}
			}}}.stages()
			err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(context.Background(), b)
			var broken *core.InvariantError
			if !errors.As(err, &broken) || broken.Rule != core.RuleDeviceOnce {
				t.Errorf("error %v, want %q broken", err, core.RuleDeviceOnce)
			}
		})
	}
}

func TestPinnedJobsKeepTheirDevices(t *testing.T) {
	late := func(change func([]core.Grant) []core.Grant) grantAll {
		round := 0
		return grantAll{change: func(g []core.Grant) []core.Grant {
			if round++; round > 1 {
				return change(g)
			}
			return g
		}}
	}
	for name, tc := range map[string]struct {
		fakes fakes
		event core.Event // of the second round
		want  string     // component to blame; empty for none
	}{
		"kept": {},
		"no grant": {
			fakes: fakes{grant: late(func([]core.Grant) []core.Grant { return nil })}, want: "allocation/fake",
		},
		"another place": {
			fakes: fakes{seat: seatFirst{func(s core.Seating) core.Seating {
				if len(s.Placed) > 1 { // the second round
					s.Placed[0].Seats = []core.Seat{{Node: 1, Devices: 3}}
					s.Placed[1].Seats = []core.Seat{{Node: 0, Devices: 3}}
				}
				return s
			}}}, want: "placement/fake",
		},
		"evicted to the same place": {
			fakes: fakes{seat: seatFirst{func(s core.Seating) core.Seating {
				s.Placed[0].Evicted = len(s.Placed) > 1
				return s
			}}}, want: "placement/fake",
		},
		"no seats": {
			fakes: fakes{seat: seatFirst{func(s core.Seating) core.Seating {
				if len(s.Placed) > 1 {
					s.Placed, s.Unseated = s.Placed[1:], []core.Verdict{{Job: 0, Code: core.Defer, Reason: core.Fragmented}}
				}
				return s
			}}}, want: "placement/fake",
		},
		"its node is drained": {
			fakes: fakes{grant: late(func([]core.Grant) []core.Grant { return nil })},
			event: core.Event{Kind: core.NodeChanged, Node: 0, Health: core.Draining},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pinned := submit(0, 0, 2)
			pinned.Spec.Pinned = true
			second := []core.Event{submit(1, 60, 2)}
			if tc.event.Kind != 0 {
				second = append(second, tc.event)
			}
			b := &script{observations: []core.Observation{{Events: []core.Event{pinned}}, {NowSeconds: 60, Events: second}}}
			err := core.NewPipeline(twoNodes(), tc.fakes.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(t.Context(), b)
			var broken *core.InvariantError
			switch errors.As(err, &broken); {
			case tc.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case tc.want != "" && (broken == nil || broken.Component != tc.want || broken.Rule != core.RulePinnedStays):
				t.Errorf("error %v, want %q blamed for %q", err, tc.want, core.RulePinnedStays)
			}
		})
	}
}

func TestRoundTellsTheWholeStory(t *testing.T) {
	b := &script{observations: []core.Observation{
		{NowSeconds: 0, Events: []core.Event{submit(0, 0, 4), submit(1, 0, 3), submit(2, 0, 2), submit(3, 0, 9)}},
		{NowSeconds: 60, Events: []core.Event{{Kind: core.JobFinished, Job: 0, AtSeconds: 50}}},
	}}
	var told recorder
	p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}})
	if err := p.Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	wantApplied := []core.Change{
		{Round: 1, Action: core.Start, Job: 0, Seats: []core.Seat{{Node: 0, Devices: 15}}, By: "placement/fake"},
		{Round: 1, Action: core.Start, Job: 1, Seats: []core.Seat{{Node: 1, Devices: 7}}, By: "placement/fake"},
		{Round: 1, Action: core.Discard, Job: 3, Reason: core.ExceedsCluster, By: "pipeline"},
		// seatFirst keeps nobody's seats
		{Round: 2, Action: core.Move, Job: 1, Seats: []core.Seat{{Node: 0, Devices: 7}}, By: "placement/fake"},
		{Round: 2, Action: core.Start, Job: 2, Seats: []core.Seat{{Node: 1, Devices: 3}}, By: "placement/fake"},
	}
	if diff := cmp.Diff(wantApplied, b.applied); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	wantVerdicts := []core.Verdict{
		{Job: 3, Code: core.Reject, Reason: core.ExceedsCluster, Wanted: 9, Available: 4, Unit: "devices", By: "pipeline"},
		{Job: 2, Code: core.Defer, Reason: core.WaitingForDevices, By: "placement/fake"},
	}
	if diff := cmp.Diff(wantVerdicts, told.verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{7, 5}, told.used); diff != "" {
		t.Errorf("devices used (-want +got):\n%s", diff)
	}
	if len(told.ended) != 2 || told.ended[1].Attained != 200 || told.ended[1].FinishSeconds != 50 {
		t.Errorf("ended %+v, want job 3 rejected and job 0 after 200 device-seconds", told.ended)
	}
	unfinished := p.Unfinished()
	if len(unfinished) != 2 || unfinished[0].Held != 3 || unfinished[1].Held != 2 {
		t.Errorf("unfinished %+v, want jobs 1 and 2 with devices", unfinished)
	}
}

// The simplest policies again, each with what it tells of its answers.

func TestTimeNeverGoesBack(t *testing.T) {
	b := &script{observations: []core.Observation{{NowSeconds: 60}, {NowSeconds: 30}}}
	if err := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(context.Background(), b); err == nil {
		t.Error("a backend that goes back in time was believed")
	}
}

func TestEventsToldAgain(t *testing.T) {
	numbered := func(id uint64, e core.Event) core.Event { e.ID = id; return e }
	interrupted := core.Event{Kind: core.JobInterrupted, Job: 0, AtSeconds: 30, StepsLeft: math.NaN()}
	finished := core.Event{Kind: core.JobFinished, Job: 0, AtSeconds: 50}
	cases := map[string]struct {
		second, third []core.Event
		want          []int // events that observers are told of each round
		ended         int
		restarts      int
		err           string
	}{
		"once": {
			second: []core.Event{numbered(2, interrupted)}, third: []core.Event{numbered(3, finished)},
			want: []int{1, 1, 1}, ended: 1, restarts: 1,
		},
		"again in the same round and in the next": {
			second: []core.Event{numbered(1, submit(0, 0, 4)), numbered(2, interrupted), numbered(2, interrupted)},
			third:  []core.Event{numbered(2, interrupted), numbered(3, finished), numbered(1, submit(0, 0, 4))},
			want:   []int{1, 1, 1}, ended: 1, restarts: 1,
		},
		"without numbers, of a job that has ended": {
			second: []core.Event{finished}, third: []core.Event{interrupted, finished},
			want: []int{1, 1, 2}, ended: 1,
		},
		"without a number, a submission": {
			second: []core.Event{finished}, third: []core.Event{submit(0, 0, 4)},
			want: []int{1, 1}, ended: 1, err: "round 3: backend submitted job 0 without a specification of its own",
		},
		"of a job that never was": {
			second: []core.Event{{Kind: core.JobFinished, Job: 1}},
			want:   []int{1}, err: "round 2: backend reported job_finished of unknown job 1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{
				{NowSeconds: 0, Events: []core.Event{numbered(1, submit(0, 0, 4))}},
				{NowSeconds: 60, Events: tc.second},
				{NowSeconds: 120, Events: tc.third},
			}}
			var told recorder
			p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}})
			err := p.Run(context.Background(), b)
			if got := fmt.Sprint(err); got != tc.err && (err != nil || tc.err != "") {
				t.Errorf("error %q, want %q", got, tc.err)
			}
			if diff := cmp.Diff(tc.want, told.events); diff != "" {
				t.Errorf("events of each round (-want +got):\n%s", diff)
			}
			if len(told.ended) != tc.ended {
				t.Fatalf("%d jobs ended, want %d", len(told.ended), tc.ended)
			}
			if tc.ended > 0 && told.ended[0].Restarts != tc.restarts {
				t.Errorf("%d restarts, want %d", told.ended[0].Restarts, tc.restarts)
			}
		})
	}
}
