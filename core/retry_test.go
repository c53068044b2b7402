package core_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// nodesOf are nodes of one type with so many devices each, in two racks, and then one of another type.
func nodesOf(devices ...int) *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"t4", "v100"}}
	for i, n := range devices {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Name: string(rune('a' + i)), Devices: n, Rack: []string{"x", "y"}[i%2]})
	}
	c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(len(devices)), Name: "other", Devices: 1, Accelerator: 1})
	return c
}

// fails has a job fail on devices.
func fails(job core.JobID, at float64, seats ...core.Seat) core.Event {
	return core.Event{Kind: core.JobInterrupted, Job: job, AtSeconds: at, Cause: core.CauseExited, Seats: seats}
}

// on has a job that is submitted run on a type only.
func on(accelerator string, e core.Event) core.Event {
	e.Spec.Accelerators = []string{accelerator}
	return e
}

// one leaves the nodes of one type only.
func one(c *core.Cluster) *core.Cluster {
	c.Accelerators, c.Nodes = c.Accelerators[:1], c.Nodes[:len(c.Nodes)-1]
	return c
}

// until has a job of an event wait.
func until(at float64, e core.Event) core.Event {
	e.NotBeforeSeconds = at
	return e
}

func seat(n core.NodeID, d core.DeviceSet) core.Seat { return core.Seat{Node: n, Devices: d} }

// changed is the story of rounds, but for what they used.
type changed struct{ rounds []string }

func (c *changed) ObserveRound(r *core.Report) error {
	line := fmt.Sprintf("%v:", r.View.NowSeconds)
	for _, change := range r.Changes {
		line += fmt.Sprintf(" %v %d", change.Action, change.Job)
		for _, s := range change.Seats {
			line += fmt.Sprintf(" %d[%s]", s.Node, s.Devices)
		}
	}
	for _, v := range r.Verdicts {
		line += fmt.Sprintf(" %d %v", v.Job, v.Reason)
	}
	for _, j := range r.View.Jobs {
		if j != nil && j.State == core.Waiting {
			line += fmt.Sprintf(" (%d waits: %v)", j.ID, j.WaitingReason)
		}
	}
	c.rounds = append(c.rounds, line)
	return nil
}

// A job that failed goes to other devices than those on which it did, where there are some, when it is time.
func TestJobsAvoidWhereTheyFailed(t *testing.T) {
	leaves := func(job core.JobID, at float64) core.Event {
		return core.Event{Kind: core.JobFinished, Job: job, AtSeconds: at}
	}
	health := func(n core.NodeID, at float64, h core.Health, unusable core.DeviceSet) core.Event {
		return core.Event{Kind: core.NodeChanged, Node: n, AtSeconds: at, Health: h, Unusable: unusable}
	}
	for name, tc := range map[string]struct {
		cluster *core.Cluster
		rounds  [][]core.Event
		want    []string
	}{
		"another device of the node": {nodesOf(2, 2), [][]core.Event{{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1))}}, []string{
			"0: start 0 0[0]", "60: start 0 0[1]",
		}},
		"another node, of its rack first": {nodesOf(2, 2, 2), [][]core.Event{{submit(0, 0, 2)}, {fails(0, 50, seat(0, 1))}}, []string{
			"0: start 0 0[0,1]", "60: start 0 2[0,1]",
		}},
		"another type, if need be": {nodesOf(1), [][]core.Event{{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1))}}, []string{
			"0: start 0 0[0]", "60: start 0 1[0]",
		}},
		"only a type is left on which it cannot run": {nodesOf(1), [][]core.Event{{on("t4", submit(0, 0, 1))}, {fails(0, 50, seat(0, 1))}}, []string{
			"0: start 0 0[0]", "60: start 0 0[0]",
		}},
		"where it failed before, too": {nodesOf(1, 1, 1), [][]core.Event{{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1))}, {fails(0, 110, seat(2, 1))}, {fails(0, 170, seat(1, 1))}}, []string{
			"0: start 0 0[0]", "60: start 0 2[0]", "120: start 0 1[0]", "180: start 0 3[0]",
		}},
		"no reason to blame them": {nodesOf(2), [][]core.Event{{submit(0, 0, 1)}, {fails(0, 50)}}, []string{
			"0: start 0 0[0]", "60: start 0 0[0]",
		}},
		"others have the good ones": {one(nodesOf(2)), [][]core.Event{{submit(0, 0, 1), submit(1, 0, 1)}, {fails(0, 50, seat(0, 1))}}, []string{
			"0: start 0 0[0] start 1 0[1]", "60: start 0 0[0]",
		}},
		"others that come now": {one(nodesOf(2)), [][]core.Event{{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1)), submit(1, 50, 1)}}, []string{
			"0: start 0 0[0]", "60: start 0 0[1] start 1 0[0]",
		}},
		"others that come now on another node": {one(nodesOf(1, 1)), [][]core.Event{{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1)), submit(1, 50, 1)}}, []string{
			"0: start 0 0[0]", "60: start 0 1[0] start 1 0[0]",
		}},
		"both failed there": {one(nodesOf(1, 1)), [][]core.Event{
			{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1)), submit(1, 50, 1)}, {fails(0, 110, seat(1, 1)), fails(1, 110, seat(0, 1))},
		}, []string{"0: start 0 0[0]", "60: start 0 1[0] start 1 0[0]", "120: start 0 0[0] start 1 1[0]"}},
		"the node was repaired": {nodesOf(1, 1), [][]core.Event{
			{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1)), health(0, 51, core.Draining, 0), health(0, 52, core.Ready, 0)},
		}, []string{"0: start 0 0[0]", "60: start 0 0[0]"}},
		"another device was repaired": {nodesOf(2), [][]core.Event{
			{submit(0, 0, 1), health(0, 0, core.Ready, 2)}, {fails(0, 50, seat(0, 1)), health(0, 51, core.Ready, 0)},
		}, []string{"0: start 0 0[0]", "60: start 0 0[1]"}},
		"it waits, and holds nothing": {nodesOf(1), [][]core.Event{
			{submit(0, 0, 1), submit(1, 0, 1)}, {until(150, fails(0, 50, seat(0, 1)))}, {leaves(1, 100)}, {},
		}, []string{
			"0: start 0 0[0] start 1 1[0]", "60: (0 waits: interrupted)", "120: (0 waits: interrupted)", "180: start 0 1[0]",
		}},
		"it waits while others get what it had": {nodesOf(1, 1), [][]core.Event{
			{submit(0, 0, 1)}, {until(100, fails(0, 50, seat(0, 1))), submit(1, 50, 1)}, {},
		}, []string{"0: start 0 0[0]", "60: start 1 0[0] (0 waits: interrupted)", "120: start 0 1[0]"}},
		"it is cancelled while it waits": {nodesOf(1), [][]core.Event{
			{submit(0, 0, 1)}, {until(100, fails(0, 50, seat(0, 1)))}, {{Kind: core.JobCancelled, Job: 0, AtSeconds: 61}},
		}, []string{"0: start 0 0[0]", "60: (0 waits: interrupted)", "120:"}},
		"one of two devices was repaired": {nodesOf(2), [][]core.Event{
			{submit(0, 0, 1)}, {fails(0, 50, seat(0, 1), seat(0, 2)), health(0, 51, core.Ready, 1), health(0, 52, core.Ready, 0)},
		}, []string{"0: start 0 0[0]", "60: start 0 0[0]"}},
		"a moment that comes now": {nodesOf(1, 1), [][]core.Event{{submit(0, 0, 1)}, {until(60, fails(0, 50, seat(0, 1)))}}, []string{
			"0: start 0 0[0]", "60: start 0 1[0]",
		}},
		"a moment that has come": {nodesOf(1, 1), [][]core.Event{{submit(0, 0, 1)}, {until(50, fails(0, 50, seat(0, 1)))}}, []string{
			"0: start 0 0[0]", "60: start 0 1[0]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got changed
			b := &script{}
			for i, events := range tc.rounds {
				b.observations = append(b.observations, core.Observation{NowSeconds: 60 * float64(i), Events: events})
			}
			stages := fakes{}.stages()
			stages.Placement.Policy = seatKept{}
			p := core.NewPipeline(tc.cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&got}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.rounds); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// seatKept keeps jobs that run where they are, and gives others the first devices that are free.
type seatKept struct{}

func (seatKept) Place(_ context.Context, v *core.View, grants []core.Grant) (s core.Seating, _ error) {
	var free core.Ledger
	free.Reset(v.Cluster)
	kept := map[core.JobID]bool{}
	for _, g := range grants {
		if j := v.Jobs[g.Job]; j.Held == g.Replicas && free.Occupy(j.Seats) {
			kept[g.Job] = true
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: j.Seats})
		}
	}
	for _, g := range grants {
		if kept[g.Job] {
			continue
		}
		node := slices.IndexFunc(v.Cluster.Nodes, func(n core.Node) bool { return free.Free(n.ID) >= g.Replicas })
		if node < 0 {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			continue
		}
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: []core.Seat{free.Take(core.NodeID(node), g.Replicas)}})
	}
	return s, nil
}

// A round comes when a job may be tried again, though nothing happens.
func TestARoundComesForARetry(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds core.RoundOptions
		then   []core.Observation
		want   float64
	}{
		"on events":                {core.RoundOptions{OnEvents: true}, nil, 95},
		"on the grid":              {core.RoundOptions{IntervalSeconds: 30}, nil, 120},
		"not for one that is gone": {core.RoundOptions{OnEvents: true}, []core.Observation{at(60, end(0, 60), submit(1, 60, 1)), at(61)}, math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: append([]core.Observation{at(0, submit(0, 0, 1)), at(50, until(95, fails(0, 50, seat(0, 1))))}, tc.then...)}
			stages := fakes{}.stages()
			stages.Allocation.Policy = steadyGrants{}
			if err := core.NewPipeline(nodesOf(1), stages, core.PipelineOptions{Rounds: tc.rounds}).Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if got := b.wakes[len(b.wakes)-1].BySeconds; got != tc.want && !(tc.rounds.IntervalSeconds > 0 && got <= tc.want) {
				t.Errorf("the next round is due at %v s, want %v", got, tc.want)
			}
		})
	}
}

// steadyGrants is an allocator whose answers stand for ever.
type steadyGrants struct{ grantAll }

func (steadyGrants) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

// suspend is the job of submit(0, 0, 3) as its owner suspends it, or lets it run again.
func suspend(seconds float64, suspended bool) core.Event {
	e := submit(0, 0, 3)
	edited := *e.Spec
	edited.Suspended = suspended
	return core.Event{Kind: core.JobChanged, AtSeconds: seconds, Job: 0, Spec: &edited}
}

// A job that lost a device gets no more than those that are left before it is time, whatever its elasticity says, and then others; one that is stopped meanwhile may
// have any number at once.
func TestAJobThatShrankWaitsForMore(t *testing.T) {
	shrunk := core.Event{Kind: core.JobShrunk, Job: 0, AtSeconds: 50, Seats: []core.Seat{seat(0, 0b110)}, Cause: core.CauseKilled}
	narrowed := submit(0, 0, 1)
	narrowed.Kind, narrowed.AtSeconds = core.JobChanged, 100
	for name, tc := range map[string]struct {
		least   int
		until   float64
		stopped bool // in the third round, for another job
		then    []core.Event
		want    []string
	}{
		"elastic":               {1, 130, false, nil, []string{"0: start 0 0[0,1,2]", "60:", "120:", "180: move 0 0[1,2,3]"}},
		"rigid":                 {3, 130, false, nil, []string{"0: start 0 0[0,1,2]", "60:", "120:", "180: move 0 0[1,2,3]"}},
		"stopped":               {3, 300, true, nil, []string{"0: start 0 0[0,1,2]", "60:", "120: stop 0 (0 waits: preempted_by_priority)", "180: start 0 0[1,2,3]"}},
		"lost with its node":    {3, 130, false, []core.Event{{Kind: core.JobInterrupted, Job: 0, AtSeconds: 100, Cause: core.CauseNodeFailed}}, []string{"0: start 0 0[0,1,2]", "60:", "120: start 0 0[1,2,3]", "180:"}},
		"its owner wants fewer": {1, 300, false, []core.Event{narrowed}, []string{"0: start 0 0[0,1,2]", "60:", "120: move 0 0[1]", "180:"}},
		"suspended and resumed": {3, 130, false, []core.Event{suspend(100, true), suspend(110, false)}, []string{"0: start 0 0[0,1,2]", "60:", "120: move 0 0[1,2,3]", "180:"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got changed
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 3)}}, {NowSeconds: 60, Events: []core.Event{until(tc.until, shrunk)}}, {NowSeconds: 120, Events: tc.then}, {NowSeconds: 180}}}
			stages := fakes{fixed: rigid{respond: func(r []core.Response) []core.Response {
				for i := range r {
					r[i].MinReplicas = tc.least
				}
				return r
			}}}.stages()
			round := 0
			stages.Allocation.Policy = grantMost{grantAll{change: func(grants []core.Grant) []core.Grant {
				if round++; round == 3 && tc.stopped {
					return nil
				}
				return grants
			}}}
			p := core.NewPipeline(one(nodesOf(4)), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, KeepDevices: true, Observers: []core.Observer{&got}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.rounds); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// grantMost grants each job the most that it can use.
type grantMost struct{ grantAll }

func (g grantMost) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) (grants []core.Grant, err error) {
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MaxReplicas})
	}
	return g.change(grants), nil
}

// A job that waits to be tried again is no candidate. An allocator that grants it devices all the same, as a plugin built before there were such jobs, loses
// that grant alone: its answer does not stand when it was to stand with that job seated.
func TestGrantsOfJobsThatWaitAreDropped(t *testing.T) {
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 1), submit(1, 0, 1), submit(2, 0, 1)}},
		{NowSeconds: 50, Events: []core.Event{until(95, fails(0, 50, seat(0, 1)))}},
	}}
	stages := fakes{}.stages()
	var asked []string
	stages.Allocation.Policy = &grantEverybody{asked: &asked}
	stages.Placement.Policy = seatKept{}
	seen := &changed{}
	err := core.NewPipeline(one(nodesOf(3)), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 30}, Observers: []core.Observer{seen}}).Run(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"[0 1 2]", "[1 2]"}, asked); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0: start 0 0[0] start 1 0[1] start 2 0[2]", "50: (0 waits: interrupted)"}, seen.rounds); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
	if len(b.wakes) < 2 || b.wakes[1].BySeconds > 60 {
		t.Errorf("%+v: want a round at 60 s, as what was answered does not stand\n%v", b.wakes, seen.rounds)
	}
}

// grantEverybody grants devices to all active jobs, whoever the question is about, and stands when all of them are seated.
type grantEverybody struct {
	grantAll
	granted int
	asked   *[]string // the candidates of each question
}

func (g *grantEverybody) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) (grants []core.Grant, err error) {
	var names []core.JobID
	for _, c := range candidates {
		names = append(names, c.ID)
	}
	*g.asked = append(*g.asked, fmt.Sprint(names))
	for _, id := range v.Active {
		grants = append(grants, core.Grant{Job: id, Accelerator: core.AnyAccelerator, Replicas: 1})
	}
	g.granted = len(grants)
	return grants, nil
}

func (g *grantEverybody) Standing() core.Standing {
	return core.Standing{UntilSeconds: math.Inf(1), IfSeated: g.granted}
}
