package placement

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// unlikeJob takes so many seconds a step on one t4 and on one v100, and has so many steps left.
func unlikeJob(name string, t4, v100, left float64) *coretest.JobBuilder {
	return coretest.MakeJob(name).Elastic(1, 2, 8).MixesTypes().Waiting().StepTimes(&core.StepTimes{MixedTypes: &core.MixedTypeTimes{
		SingleDeviceTimes: []core.SingleDeviceTime{{Accelerator: "t4", Seconds: t4}, {Accelerator: "v100", Seconds: v100}},
		SyncSeconds:       make([]float64, 8),
	}}, left)
}

// typedJob is the same for a job that does not mix types.
func typedJob(name string, t4, v100, left float64) *coretest.JobBuilder {
	times := func(alone float64) []float64 { return []float64{alone, alone / 2, alone / 3, alone / 4} }
	return coretest.MakeJob(name).Elastic(1, 2, 8).Waiting().StepTimes(&core.StepTimes{Types: []core.TypeTimes{
		{Accelerator: "t4", OneNode: times(t4), ManyNodes: times(t4)}, {Accelerator: "v100", OneNode: times(v100), ManyNodes: times(v100)},
	}}, left)
}

// onTypes does not mix types by its step times but may, and has 100 steps left.
func onTypes(name string, times ...core.TypeTimes) *coretest.JobBuilder {
	return coretest.MakeJob(name).Elastic(1, 2, 8).MixesTypes().Waiting().StepTimes(&core.StepTimes{Types: times}, 100)
}

// Nodes 0 and 1 have 2 t4 each, node 2 has 2 v100.
func TestMatchingSeats(t *testing.T) {
	grant := func(job core.JobID, replicas int) core.Grant {
		return core.Grant{Job: job, Accelerator: core.AnyAccelerator, Replicas: replicas}
	}
	blocking := func(g core.Grant) core.Grant { g.Blocking = true; return g }
	of := func(g core.Grant, t core.AcceleratorID) core.Grant { g.Accelerator = t; return g }
	held := unlikeJob("d", 1, 1, 1).Running(0, coretest.Seat(2, 0))
	cases := map[string]struct {
		config MatchingConfig
		jobs   []*coretest.JobBuilder
		grants []core.Grant
		want   map[core.JobID][]core.Seat
	}{
		"the v100 go to the job they shorten most": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("short", 1, 0.2, 10), unlikeJob("long", 1, 0.25, 1000)},
			[]core.Grant{grant(0, 2), grant(1, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1)}, 1: {coretest.Seat(2, 0, 1)}},
		},
		"and by raw rates to the fastest": {
			MatchingConfig{Values: "raw_rate"},
			[]*coretest.JobBuilder{unlikeJob("short", 1, 0.2, 10), unlikeJob("long", 1, 0.25, 1000)},
			[]core.Grant{grant(0, 2), grant(1, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(2, 0, 1)}, 1: {coretest.Seat(0, 0, 1)}},
		},
		"a job that mixes types has some of each": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 0.25, 1000)},
			[]core.Grant{grant(0, 5)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1), coretest.Seat(1, 0), coretest.Seat(2, 0, 1)}},
		},
		"another has one type": {
			MatchingConfig{},
			[]*coretest.JobBuilder{typedJob("a", 1, 0.25, 1000)},
			[]core.Grant{grant(0, 3)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1), coretest.Seat(1, 0)}},
		},
		"and the market is held again for the rest": {
			MatchingConfig{},
			[]*coretest.JobBuilder{typedJob("a", 1, 0.25, 1000), unlikeJob("b", 1, 0.5, 10)},
			[]core.Grant{grant(0, 2), grant(1, 3)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(2, 0, 1)}, 1: {coretest.Seat(0, 0, 1), coretest.Seat(1, 0)}},
		},
		"a granted type is kept": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 0.25, 1000)},
			[]core.Grant{of(grant(0, 2), 0)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1)}},
		},
		"what runs stays": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 0.25, 1).Running(0, coretest.Seat(2, 0, 1)), unlikeJob("b", 1, 0.1, 1000)},
			[]core.Grant{grant(0, 2), grant(1, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(2, 0, 1)}, 1: {coretest.Seat(0, 0, 1)}},
		},
		"a job that grows stays on its nodes": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 10, 1).Running(0, coretest.Seat(1, 0))},
			[]core.Grant{grant(0, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(1, 0, 1)}},
		},
		"one that does not fit is passed over": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 1), unlikeJob("b", 1, 1, 1), unlikeJob("c", 1, 1, 1)},
			[]core.Grant{grant(0, 4), grant(1, 3), grant(2, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1), coretest.Seat(1, 0, 1)}, 2: {coretest.Seat(2, 0, 1)}},
		},
		"unless it blocks": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 1), unlikeJob("b", 1, 1, 1), unlikeJob("c", 1, 1, 1)},
			[]core.Grant{grant(0, 4), blocking(grant(1, 3)), grant(2, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1), coretest.Seat(1, 0, 1)}},
		},
		// On the v100 that is free b saves 100 s if it takes 25 s there, as c does; c saves 75 s.
		"a job of unknown length counts as average": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 0), unlikeJob("b", 1, 0.2, math.NaN()), unlikeJob("c", 1, 0.25, 100), held},
			[]core.Grant{grant(0, 1), grant(1, 1), grant(2, 1), grant(3, 1)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0)}, 1: {coretest.Seat(2, 1)}, 2: {coretest.Seat(0, 1)}, 3: {coretest.Seat(2, 0)}},
		},
		// The mean of 95 s and 25 s is 60 s, and b saves as much.
		"of which the mean is taken": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 95), unlikeJob("b", 1, 0.5, math.NaN()), unlikeJob("c", 1, 0.25, 100), held},
			[]core.Grant{grant(0, 1), grant(1, 1), grant(2, 1), grant(3, 1)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0)}, 1: {coretest.Seat(0, 1)}, 2: {coretest.Seat(2, 1)}, 3: {coretest.Seat(2, 0)}},
		},
		"so that a longer job makes it longer": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 155), unlikeJob("b", 1, 0.5, math.NaN()), unlikeJob("c", 1, 0.25, 100), held},
			[]core.Grant{grant(0, 1), grant(1, 1), grant(2, 1), grant(3, 1)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0)}, 1: {coretest.Seat(2, 1)}, 2: {coretest.Seat(0, 1)}, 3: {coretest.Seat(2, 0)}},
		},
		"but not one without step times": {
			MatchingConfig{},
			[]*coretest.JobBuilder{coretest.MakeJob("a").Replicas(1).Waiting().StepTimes(nil, 1e6), unlikeJob("b", 1, 0.5, math.NaN()), unlikeJob("c", 1, 0.25, 100), held},
			[]core.Grant{grant(0, 1), grant(1, 1), grant(2, 1), grant(3, 1)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0)}, 1: {coretest.Seat(0, 1)}, 2: {coretest.Seat(2, 1)}, 3: {coretest.Seat(2, 0)}},
		},
		"a type of unknown speed is the last choice": {
			MatchingConfig{},
			[]*coretest.JobBuilder{onTypes("a", core.TypeTimes{Accelerator: "t4", OneNode: []float64{100, 50}})},
			[]core.Grant{grant(0, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1)}},
		},
		"unknown is also a time of 0": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 100, 0, 1000)},
			[]core.Grant{grant(0, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1)}},
		},
		"where one node will not do, many nodes count": {
			MatchingConfig{},
			[]*coretest.JobBuilder{onTypes("a",
				core.TypeTimes{Accelerator: "t4", OneNode: []float64{1, 0.5}},
				core.TypeTimes{Accelerator: "v100", OneNode: []float64{0.5, 0}, ManyNodes: []float64{0, 1}})},
			[]core.Grant{grant(0, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1)}},
		},
		"and the times of so many replicas": {
			MatchingConfig{},
			[]*coretest.JobBuilder{onTypes("a",
				core.TypeTimes{Accelerator: "t4", OneNode: []float64{1, 0.5}},
				core.TypeTimes{Accelerator: "v100", OneNode: []float64{2, 0.25}})},
			[]core.Grant{grant(0, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(2, 0, 1)}},
		},
		// Together two devices of a do 2 or 4 steps a second: it saves 25 s on the v100, and b 12.5 s.
		"which are shared by the replicas": {
			MatchingConfig{},
			[]*coretest.JobBuilder{onTypes("a",
				core.TypeTimes{Accelerator: "t4", OneNode: []float64{1, 0.5}},
				core.TypeTimes{Accelerator: "v100", OneNode: []float64{0.5, 0.25}}), unlikeJob("b", 1, 0.5, 50)},
			[]core.Grant{grant(0, 2), grant(1, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(2, 0, 1)}, 1: {coretest.Seat(0, 0, 1)}},
		},
		"a job that mixes types may know no more than others": {
			MatchingConfig{},
			[]*coretest.JobBuilder{typedJob("a", 1, 0.25, 1000).MixesTypes()},
			[]core.Grant{grant(0, 3)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0), coretest.Seat(2, 0, 1)}},
		},
		"whom a blocking grant keeps waiting takes no part in the market": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 1), unlikeJob("b", 1, 0.1, 1000), unlikeJob("c", 1, 0.5, 100).Running(0, coretest.Seat(0, 0))},
			[]core.Grant{blocking(grant(0, 7)), grant(1, 2), grant(2, 2)},
			map[core.JobID][]core.Seat{2: {coretest.Seat(2, 0, 1)}},
		},
		"and leaves room to one that runs": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 1), unlikeJob("b", 1, 0.1, 1000), unlikeJob("c", 1, 0.5, 100).Running(0, coretest.Seat(0, 0))},
			[]core.Grant{blocking(grant(0, 7)), grant(1, 4), grant(2, 3)},
			map[core.JobID][]core.Seat{2: {coretest.Seat(0, 0), coretest.Seat(2, 0, 1)}},
		},
		"one that fits blocks nobody": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 1), unlikeJob("b", 1, 0.1, 1000)},
			[]core.Grant{blocking(grant(0, 2)), grant(1, 2)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1)}, 1: {coretest.Seat(2, 0, 1)}},
		},
		"nor does one that does not fit and does not block": {
			MatchingConfig{},
			[]*coretest.JobBuilder{unlikeJob("a", 1, 1, 1), unlikeJob("b", 1, 0.1, 1000)},
			[]core.Grant{grant(0, 7), grant(1, 2)},
			map[core.JobID][]core.Seat{1: {coretest.Seat(2, 0, 1)}},
		},
		// The market gives the v100 to b, and none to a. As a comes first it takes one, b turns to the t4, and c to what is left.
		"what fits is seated, whatever the market gave away": {
			MatchingConfig{},
			[]*coretest.JobBuilder{typedJob("a", 1, 0.25, 10).Accelerators("v100"), typedJob("b", 1, 0.25, 1000), unlikeJob("c", 1, 1, 1)},
			[]core.Grant{grant(0, 1), grant(1, 2), grant(2, 3)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(2, 0)}, 1: {coretest.Seat(0, 0, 1)}, 2: {coretest.Seat(1, 0, 1), coretest.Seat(2, 1)}},
		},
		"jobs without step times are seated too": {
			MatchingConfig{},
			[]*coretest.JobBuilder{coretest.MakeJob("a").Replicas(4).Waiting(), coretest.MakeJob("b").Replicas(2).Waiting()},
			[]core.Grant{grant(1, 2), grant(0, 4)},
			map[core.JobID][]core.Seat{0: {coretest.Seat(0, 0, 1), coretest.Seat(1, 0, 1)}, 1: {coretest.Seat(2, 0, 1)}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 2).Nodes(1, "v100", 2).Obj()).Jobs(tc.jobs...).Obj()
			policy, err := NewMatching().New(&tc.config, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			seating, err := policy.Place(context.Background(), v, tc.grants)
			if err != nil {
				t.Fatal(err)
			}
			got := map[core.JobID][]core.Seat{}
			for _, p := range seating.Placed {
				got[p.Job] = p.Seats
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("seats (-want +got):\n%s", diff)
			}
			if len(seating.Placed)+len(seating.Unseated) != len(tc.grants) {
				t.Errorf("%d placed and %d unseated of %d", len(seating.Placed), len(seating.Unseated), len(tc.grants))
			}
		})
	}
}

// Asked again, with what it seated running and other lengths, it answers the same.
func TestMatchingStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := coretest.MakeCluster()
		for _, accelerator := range []string{"t4", "v100"} {
			cluster.Nodes(1, accelerator, rapid.IntRange(2, 6).Draw(t, "devices"))
		}
		seconds, left := rapid.Float64Range(0.01, 10), rapid.Float64Range(0, 1e6)
		var jobs []*coretest.JobBuilder
		var grants []core.Grant
		for i := range rapid.IntRange(3, 6).Draw(t, "jobs") {
			j := typedJob("a", seconds.Draw(t, "t4"), seconds.Draw(t, "v100"), left.Draw(t, "left"))
			if rapid.Bool().Draw(t, "mixes types") {
				j = unlikeJob("a", seconds.Draw(t, "t4 alone"), seconds.Draw(t, "v100 alone"), left.Draw(t, "left"))
			}
			if rapid.IntRange(0, 2).Draw(t, "bound") == 0 {
				j.Accelerators("v100")
			}
			jobs = append(jobs, j)
			grants = append(grants, core.Grant{
				Job: core.JobID(i), Accelerator: core.AnyAccelerator, Replicas: rapid.IntRange(1, 6).Draw(t, "replicas"),
				Blocking: rapid.IntRange(0, 5).Draw(t, "blocking") == 0,
			})
		}
		policy := policytest.New(t, NewMatching(), nil)
		c := cluster.Obj()
		first, err := policy.Place(context.Background(), coretest.MakeView(c).Jobs(jobs...).Obj(), grants)
		if err != nil {
			t.Fatal(err)
		}
		want := map[core.JobID][]core.Seat{}
		for _, p := range first.Placed {
			want[p.Job] = slices.Clone(p.Seats)
			jobs[p.Job].Running(0, want[p.Job]...)
		}
		v := coretest.MakeView(c).Jobs(jobs...).Obj()
		for _, j := range v.Jobs {
			j.StepsLeft = left.Draw(t, "left later")
		}
		again, err := policy.Place(context.Background(), v, grants)
		if err != nil {
			t.Fatal(err)
		}
		got := map[core.JobID][]core.Seat{}
		for _, p := range again.Placed {
			got[p.Job] = p.Seats
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seats (-first +again):\n%s", diff)
		}
	})
}
