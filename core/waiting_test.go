package core_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestWhyAJobWaitsWhileNodesAreMissing(t *testing.T) {
	lost := func(job core.JobID, wanted, available float64, devices string) core.Verdict {
		return core.Verdict{
			Job: job, Code: core.Defer, Reason: core.NodeUnavailable, Wanted: wanted, Available: available, Unit: "devices",
			Message: devices + " of the devices that it can use are on nodes that are down or draining", By: "pipeline",
		}
	}
	by := func(job core.JobID, reason core.Reason, who string) core.Verdict {
		return core.Verdict{Job: job, Code: core.Defer, Reason: reason, By: who}
	}
	on := func(e core.Event, types ...string) core.Event { e.Spec.Accelerators = types; return e }
	mixing := func(e core.Event) core.Event { e.Spec.MixesTypes = true; return e }
	node := func(id core.NodeID, h core.Health) core.Event {
		return core.Event{Kind: core.NodeChanged, Node: id, Health: h}
	}
	const placer = "placement/fake"
	for name, tc := range map[string]struct {
		events   []core.Event
		blocking bool
		grants   int // how many of the jobs are granted; 0 for all
		want     []core.Verdict
	}{
		"nothing is lost": {
			events: []core.Event{submit(0, 0, 4), submit(1, 0, 4), submit(2, 0, 4)},
			want:   []core.Verdict{by(2, core.WaitingForDevices, placer)},
		},
		"it would run on the drained node": {
			events: []core.Event{node(1, core.Draining), submit(0, 0, 4), submit(1, 0, 4)},
			want:   []core.Verdict{lost(1, 4, 0, "4")},
		},
		"some devices are free, too few": {
			events: []core.Event{node(1, core.Down), submit(0, 0, 2), submit(1, 0, 3)},
			want:   []core.Verdict{lost(1, 3, 2, "4")},
		},
		"the node would not be enough, for others hold the rest": {
			events: []core.Event{node(1, core.Down), submit(0, 0, 3), mixing(submit(1, 0, 6))},
			want:   []core.Verdict{lost(1, 6, 1, "4")},
		},
		"the rest would do without the node": {
			events: []core.Event{node(1, core.Down), submit(0, 0, 4), on(submit(1, 0, 4), "t4")},
			want:   []core.Verdict{by(1, core.WaitingForDevices, placer)},
		},
		"it cannot use the devices that are free": {
			events: []core.Event{node(1, core.Down), on(submit(0, 0, 1), "v100")},
			want:   []core.Verdict{lost(0, 1, 0, "4")},
		},
		"no node is left, and none is granted": {
			events: []core.Event{node(0, core.Down), node(1, core.Draining), submit(0, 0, 1), submit(1, 0, 2)}, grants: -1,
			want: []core.Verdict{lost(0, 1, 0, "8"), lost(1, 2, 0, "8")},
		},
		"an earlier job that waits for the node keeps its turn": {
			events: []core.Event{node(1, core.Down), on(submit(0, 0, 1), "v100"), submit(1, 0, 2)}, blocking: true, grants: 1,
			want: []core.Verdict{lost(0, 1, 0, "4"), by(1, core.BlockedByEarlier, "pipeline")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fakes{grant: grantAll{change: func(g []core.Grant) []core.Grant {
				for i := range g {
					g[i].Blocking = tc.blocking
				}
				if tc.grants != 0 {
					g = g[:max(tc.grants, 0)]
				}
				return g
			}}}
			f.seat.change = func(s core.Seating) core.Seating {
				// seatFirst knows no types: a job bound to the second one has nothing on the first node.
				s.Placed = slices.DeleteFunc(s.Placed, func(p core.Placement) bool {
					bound := slices.ContainsFunc(tc.events, func(e core.Event) bool {
						return e.Spec != nil && e.Job == p.Job && slices.Equal(e.Spec.Accelerators, []string{"v100"})
					})
					if bound && p.Seats[0].Node == 0 {
						s.Unseated = append(s.Unseated, core.Verdict{Job: p.Job, Code: core.Defer, Reason: core.WaitingForDevices})
						return true
					}
					return false
				})
				return s
			}
			var told recorder
			b := &script{observations: []core.Observation{{Events: tc.events}, {NowSeconds: 60}}}
			p := core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}})
			if err := p.Run(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, told.verdicts); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// A job that lost its devices with a node is told what it misses, once for each time, and why it waits when the node is back.
func TestAnInterruptedJobIsToldWhatIsMissing(t *testing.T) {
	down := core.Event{Kind: core.NodeChanged, Node: 0, Health: core.Down}
	up := core.Event{Kind: core.NodeChanged, Node: 0, Health: core.Ready}
	lost := func(at float64) core.Event { return core.Event{Kind: core.JobInterrupted, Job: 0, AtSeconds: at} }
	e := submit(0, 0, 4)
	e.Spec.Accelerators = []string{"t4"}
	f := fakes{seat: seatFirst{func(s core.Seating) core.Seating {
		if len(s.Placed) > 0 && s.Placed[0].Seats[0].Node == 1 { // of another type
			return core.Seating{Unseated: []core.Verdict{{Code: core.Defer, Reason: core.WaitingForDevices}}}
		}
		return s
	}}}
	var told recorder
	b := &script{observations: []core.Observation{
		{Events: []core.Event{e}},
		{NowSeconds: 60, Events: []core.Event{down, lost(60)}},
		{NowSeconds: 120},
		{NowSeconds: 180, Events: []core.Event{up}},
		{NowSeconds: 240, Events: []core.Event{down, lost(240)}},
		{NowSeconds: 300},
	}}
	p := core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}})
	if err := p.Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if len(told.verdicts) != 2 {
		t.Fatalf("got %+v, want one verdict for each interruption", told.verdicts)
	}
	for _, v := range told.verdicts {
		if v.Reason != core.NodeUnavailable || v.Wanted != 4 || v.Available != 0 {
			t.Errorf("got %+v, want 4 devices missing", v)
		}
	}
	if j := p.Unfinished()[0]; j.Preemptions != 2 || j.Restarts != 1 || j.Attained != 120*4 {
		t.Errorf("%d preemptions, %d restarts, %v device-seconds; want 2, 1 and 480", j.Preemptions, j.Restarts, j.Attained)
	}
}

// Two nodes of t4 are ready and a smaller one is down: the 8 devices that the job needs are there, and others hold them.
func TestAJobThatOthersKeepWaitingIsNotBlamedOnNodes(t *testing.T) {
	c := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{
		{ID: 0, Name: "a", Devices: 4}, {ID: 1, Name: "b", Devices: 4}, {ID: 2, Name: "c", Devices: 2},
	}}
	var told recorder
	b := &script{observations: []core.Observation{{Events: []core.Event{
		{Kind: core.NodeChanged, Node: 2, Health: core.Down}, submit(0, 0, 4), submit(1, 0, 3), submit(2, 0, 8),
	}}}}
	if err := core.NewPipeline(c, fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	want := []core.Verdict{{Job: 2, Code: core.Defer, Reason: core.WaitingForDevices, By: "placement/fake"}}
	if diff := cmp.Diff(want, told.verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// The round that stops a job on a drained node tells what it misses, though the stop gives the reason.
func TestAJobOnADrainedNodeIsToldWhatIsMissing(t *testing.T) {
	f := fakes{grant: grantAll{change: func(g []core.Grant) []core.Grant { return g[:min(1, len(g))] }}}
	var told recorder
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 4)}},
		{NowSeconds: 60, Events: []core.Event{
			{Kind: core.NodeChanged, Node: 0, Health: core.Draining}, {Kind: core.NodeChanged, Node: 1, Health: core.Draining},
		}},
	}}
	if err := core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if n := len(b.applied); n != 2 || b.applied[1].Action != core.Stop || b.applied[1].Reason != core.NodeUnavailable {
		t.Errorf("applied %+v, want a start and a stop", b.applied)
	}
	if len(told.verdicts) != 1 || told.verdicts[0].Wanted != 4 || told.verdicts[0].Reason != core.NodeUnavailable {
		t.Errorf("got %+v, want once that 4 devices are missing", told.verdicts)
	}
}

// Of three types, the last is down. What a job misses that mixes them is counted over all of its types.
func TestWhatAJobMissesThatMixesTypes(t *testing.T) {
	cluster := func(down int) *core.Cluster {
		return &core.Cluster{Accelerators: []string{"t4", "v100", "h100"}, Nodes: []core.Node{
			{ID: 0, Name: "a", Devices: 4}, {ID: 1, Name: "b", Devices: 4, Accelerator: 1}, {ID: 2, Name: "c", Devices: down, Accelerator: 2, Health: core.Down},
		}}
	}
	mixing := func(replicas int, types ...string) core.Event {
		e := submit(2, 0, replicas)
		e.Spec.MixesTypes, e.Spec.Accelerators = true, types
		return e
	}
	waits := core.Verdict{Job: 2, Code: core.Defer, Reason: core.WaitingForDevices, By: "placement/fake"}
	lost := func(wanted, available float64, devices string) core.Verdict {
		return core.Verdict{
			Job: 2, Code: core.Defer, Reason: core.NodeUnavailable, Wanted: wanted, Available: available, Unit: "devices", By: "pipeline",
			Message: devices + " of the devices that it can use are on nodes that are down or draining",
		}
	}
	for name, tc := range map[string]struct {
		cluster *core.Cluster
		held    [2]int // by jobs on a and b
		job     core.Event
		want    core.Verdict
	}{
		"with the node it would run":                 {cluster(4), [2]int{2, 1}, mixing(8), lost(8, 5, "4")},
		"with the node it would just run":            {cluster(3), [2]int{2, 1}, mixing(8), lost(8, 5, "3")},
		"even then it would not, as others run":      {cluster(2), [2]int{2, 1}, mixing(8), waits},
		"even alone it would not":                    {cluster(2), [2]int{2, 1}, mixing(9), lost(9, 5, "2")},
		"as many are free as it needs, on two nodes": {cluster(4), [2]int{2, 1}, mixing(5), waits},
		"one more is needed than are free":           {cluster(4), [2]int{2, 1}, mixing(6), lost(6, 5, "4")},
		"it cannot use the node":                     {cluster(4), [2]int{2, 1}, mixing(6, "t4", "v100"), waits},
		"it can use the node and another one":        {cluster(4), [2]int{2, 1}, mixing(6, "t4", "h100"), lost(6, 2, "4")},
	} {
		t.Run(name, func(t *testing.T) {
			var told recorder
			placed := 0
			f := fakes{seat: seatFirst{func(s core.Seating) core.Seating {
				placed = len(s.Placed)
				// Job 1 goes to b, whatever room is left on a.
				s.Placed[1].Seats = []core.Seat{{Node: 1, Devices: core.FirstDevices(tc.held[1])}}
				return s
			}}}
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, tc.held[0]), submit(1, 0, tc.held[1]), tc.job}}}}
			if err := core.NewPipeline(tc.cluster, f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if placed != 2 {
				t.Fatalf("%d jobs are placed, want 2", placed)
			}
			if diff := cmp.Diff([]core.Verdict{tc.want}, told.verdicts); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}
