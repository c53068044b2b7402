package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/coretest"
)

// seated is a job on seats.
func seated(spec core.JobSpec, seats ...core.Seat) *core.Job {
	j := core.NewJob(&spec)
	j.Seats = seats
	return j
}

func TestNodesTellWhatIsShared(t *testing.T) {
	on := func(node core.NodeID, devices core.DeviceSet) core.Seat {
		return core.Seat{Node: node, Devices: devices}
	}
	milli := func(n uint32) *uint32 { return &n }
	part := func(id core.JobID, milli int) core.JobSpec {
		return core.JobSpec{ID: id, Name: string(rune('a' + id)), Share: &core.Share{Milli: milli}, CPUs: 0.1, MemoryGB: 2}
	}
	whole := func(id core.JobID) core.JobSpec {
		return core.JobSpec{ID: id, Name: string(rune('a' + id)), CPUs: 0.1, MemoryGB: 2}
	}
	cases := map[string]struct {
		sharing core.Sharing
		counts  bool
		jobs    []*core.Job // one after the other; of the same id in the place of those before
		want    *controlv1.Node
	}{
		"whole devices": {core.Exclusive, false, []*core.Job{seated(whole(0), on(0, 0b11)), seated(whole(1), on(1, 0b1))}, &controlv1.Node{Used: 2}},
		"two on one":    {core.Fractional, false, []*core.Job{seated(part(0, 334), on(0, 0b1)), seated(part(1, 333), on(0, 0b11))}, &controlv1.Node{Used: 2, UsedMilli: milli(1000)}},
		"one of two leaves": {
			core.Fractional, false,
			[]*core.Job{seated(part(0, 334), on(0, 0b1)), seated(part(1, 333), on(0, 0b11)), seated(part(1, 333))},
			&controlv1.Node{Used: 1, UsedMilli: milli(334)},
		},
		"both leave": {
			core.Fractional, true,
			[]*core.Job{seated(part(0, 334), on(0, 0b1)), seated(part(1, 333), on(0, 0b1)), seated(part(0, 334)), seated(part(1, 333), on(1, 0b1))},
			&controlv1.Node{UsedMilli: milli(0), Resources: &controlv1.Resources{Cpus: 8, MemoryGb: 16}},
		},
		"on CPUs alone": {
			core.Fractional, true,
			[]*core.Job{seated(part(0, 0), on(0, 0b1))},
			&controlv1.Node{UsedMilli: milli(0), Resources: &controlv1.Resources{Cpus: 8, CpusUsed: 0.1, MemoryGb: 16, MemoryGbUsed: 2}},
		},
		"turns": {core.TimeSlice, false, []*core.Job{seated(whole(0), on(0, 0b1)), seated(whole(1), on(0, 0b1))}, &controlv1.Node{Used: 1, UsedMilli: milli(2000)}},
		"CPUs of whole devices": {
			core.Exclusive, true,
			[]*core.Job{seated(whole(0), on(0, 0b11)), seated(whole(1), on(0, 0b100))},
			&controlv1.Node{Used: 3, Resources: &controlv1.Resources{Cpus: 8, CpusUsed: 0.3, MemoryGb: 16, MemoryGbUsed: 6}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := cluster()
			c.Sharing, c.MaxOwners, c.CountsResources = tc.sharing, 2, tc.counts
			for i := range c.Nodes {
				c.Nodes[i].CPUs, c.Nodes[i].MemoryGB = 8, 16
			}
			b := NewBoard(c)
			for _, j := range tc.jobs {
				b.take(j)
			}
			tc.want.Name, tc.want.Accelerator, tc.want.Devices, tc.want.Health = "t4-0", "t4", 4, "ready"
			if diff := cmp.Diff(tc.want, b.listNodes(0)[0], protocmp.Transform(), protocmp.IgnoreFields(&controlv1.Node{}, "rack")); diff != "" {
				t.Errorf("-want,+got:\n%s", diff)
			}
		})
	}
}

// Jobs that were on one device when the run went on without sharing use it once, until they are parted.
func TestNodesTellWhatWasShared(t *testing.T) {
	c := coretest.MakeCluster().Nodes(1, "t4", 4).Obj()
	v := coretest.MakeView(c).Jobs(
		coretest.MakeJob("a").Running(0, coretest.Seat(0, 0, 1)), coretest.MakeJob("b").Running(0, coretest.Seat(0, 1)), coretest.MakeJob("c").Running(0, coretest.Seat(0, 2)),
	).Obj()
	b := NewBoard(c)
	if err := b.ObserveRound(&core.Report{View: v, Repeated: true}); err != nil {
		t.Fatal(err)
	}
	for _, j := range v.Jobs {
		b.take(j)
	}
	if used := b.listNodes(0)[0].GetUsed(); used != 3 {
		t.Errorf("%d devices are used, want 3", used)
	}
}

// What a job asks for is told where the cluster counts it.
func TestJobsTellWhatIsShared(t *testing.T) {
	spec := core.JobSpec{Name: "a", Share: &core.Share{Milli: 0}, DeviceMemoryGB: 3, CPUs: 2, MemoryGB: 5}
	milli := uint32(0)
	cases := map[string]struct {
		sharing core.Sharing
		counts  bool
		want    *controlv1.Job
	}{
		"nothing": {core.Exclusive, false, &controlv1.Job{}},
		"parts":   {core.Fractional, false, &controlv1.Job{ShareMilli: &milli, DeviceMemoryGb: 3}},
		"CPUs":    {core.Exclusive, true, &controlv1.Job{Cpus: 2, MemoryGb: 5}},
		"all":     {core.Fractional, true, &controlv1.Job{ShareMilli: &milli, DeviceMemoryGb: 3, Cpus: 2, MemoryGb: 5}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := cluster()
			c.Sharing, c.CountsResources = tc.sharing, tc.counts
			got := new(controlv1.Job)
			NewBoard(c).renderDemand(got, &spec)
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("-want,+got:\n%s", diff)
			}
		})
	}
}
