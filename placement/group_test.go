package placement

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/placement/gandivaaffinity"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

func TestGroups(t *testing.T) {
	const beside = " (on the devices of its group device memory is short)"
	cases := map[string]struct {
		jobs   []*coretest.JobBuilder
		groups []int
		want   string
	}{
		"two share what is new":               {[]*coretest.JobBuilder{policytest.Waits(2), policytest.Waits(2), policytest.Waits(2)}, []int{1, 1, 2}, policytest.Lines("0: 0[0,1]", "1: 0[0,1]", "2: 0[2,3]")},
		"the second joins where a first runs": {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 2)), policytest.Waits(1)}, []int{1, 1}, policytest.Lines("0: 1[2]", "1: 1[2]")},
		"the first joins where a second runs": {[]*coretest.JobBuilder{policytest.Waits(1), policytest.Holds(coretest.Seat(1, 2))}, []int{1, 1}, policytest.Lines("1: 1[2]", "0: 1[2]")},
		"of two that run one moves":           {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 2)), policytest.Holds(coretest.Seat(0, 3))}, []int{1, 1}, policytest.Lines("0: 1[2]", "1: 1[2]")},
		"two that run together stay, in the order of each": {
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 2), coretest.Seat(0, 1)), policytest.Holds(coretest.Seat(0, 1), coretest.Seat(1, 2))}, []int{1, 1}, policytest.Lines("0: 1[2] 0[1]", "1: 0[1] 1[2]"),
		},
		"a pinned one stays":                  {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 2)), policytest.Holds(coretest.Seat(0, 3)).Pinned()}, []int{1, 1}, policytest.Lines("1: 0[3]", "0: 0[3]")},
		"two that ran together part":          {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 2)), policytest.Holds(coretest.Seat(1, 2)), policytest.Holds(coretest.Seat(0, 0, 1, 2, 3))}, []int{0, 0, 0}, policytest.Lines("0: 1[2]", "2: 0[0,1,2,3]", "1: 1[0]")},
		"none of a group that does not fit":   {[]*coretest.JobBuilder{policytest.Waits(9), policytest.Waits(9)}, []int{1, 1}, policytest.Lines("0: waiting_for_devices 9/8", "1: waiting_for_devices 9/8")},
		"others of its devices are free":      {[]*coretest.JobBuilder{policytest.Waits(4), policytest.Waits(4), policytest.Waits(4), policytest.Waits(4)}, []int{1, 1, 2, 2}, policytest.Lines("0: 0[0,1,2,3]", "1: 0[0,1,2,3]", "2: 1[0,1,2,3]", "3: 1[0,1,2,3]")},
		"together they need too much memory":  {[]*coretest.JobBuilder{policytest.Waits(1).DeviceMemory(10), policytest.Waits(1).DeviceMemory(6.001)}, []int{1, 1}, policytest.Lines("0: 0[0]", "1: fragmented 6.001/6"+beside)},
		"together they need all its memory":   {[]*coretest.JobBuilder{policytest.Waits(1).DeviceMemory(10), policytest.Waits(1).DeviceMemory(6)}, []int{1, 1}, policytest.Lines("0: 0[0]", "1: 0[0]")},
		"one needs more memory than there is": {[]*coretest.JobBuilder{policytest.Waits(1).DeviceMemory(17)}, []int{0}, "0: accelerator_missing 1/0"},
		"a third beside two that fill the memory": {
			[]*coretest.JobBuilder{policytest.Waits(1).DeviceMemory(10), policytest.Waits(1).DeviceMemory(7), policytest.Waits(1).DeviceMemory(6)},
			[]int{1, 1, 1},
			policytest.Lines("0: 0[0]", "2: 0[0]", "1: fragmented 7/6"+beside),
		},
	}
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(3, 16).Obj()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(cluster).Jobs(tc.jobs...).Obj()
			for of, f := range map[string]core.Factory[core.Placer]{"first_fit": NewFirstFit(), "proposed": NewProposed()} {
				if got := policytest.Place(t, policytest.New(t, f, nil), v, policytest.Grouped(v, tc.groups...)); got != tc.want {
					t.Errorf("%s:\n%s\nwant\n%s", of, got, tc.want)
				}
			}
		})
	}
}

// A group goes where is proposed for its first, and those that are there already stay.
func TestProposedGroups(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(2, 0).Obj()
	v := coretest.MakeView(cluster).Jobs(policytest.Waits(1), policytest.Holds(coretest.Seat(1, 1)), policytest.Waits(1), policytest.Holds(coretest.Seat(0, 0))).Obj()
	grants := policytest.Grouped(v, 1, 1, 2, 2)
	grants[0].Proposed, grants[2].Proposed = []core.Seat{coretest.Seat(1, 1)}, []core.Seat{coretest.Seat(1, 3)}
	want := policytest.Lines("1: 1[1]", "0: 1[1]", "2: 1[3]", "3: 1[3]")
	if got := policytest.Place(t, policytest.New(t, NewProposed(), nil), v, grants); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever the groups, their seated jobs are together, no device has jobs of two groups, and a placer asked again moves nobody.
func TestGroupsAreTogether(t *testing.T) {
	factories := []core.Factory[core.Placer]{NewFirstFit(), NewConsolidated(), NewMostFree(), NewTiresiasSkew(), NewProposed(), gandivaaffinity.New()}
	rapid.Check(t, func(t *rapid.T) {
		cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Nodes(1, "v100", 2).TakesTurns(3, 16).Obj()
		policy := policytest.New(t, rapid.SampledFrom(factories).Draw(t, "placer"), nil)
		var jobs []*coretest.JobBuilder
		var groups []int
		for group := 1; group <= rapid.IntRange(1, 5).Draw(t, "groups"); group++ {
			replicas := rapid.IntRange(1, 5).Draw(t, "replicas")
			for range rapid.IntRange(1, 3).Draw(t, "members") {
				jobs = append(jobs, policytest.Waits(replicas).DeviceMemory(rapid.Float64Range(0, 12).Draw(t, "memory")))
				groups = append(groups, group)
			}
		}
		v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		grants := policytest.Grouped(v, groups...)
		seating, err := policy.Place(t.Context(), v, grants)
		if err != nil {
			t.Fatal(err)
		}
		of := map[core.NodeID]map[int]int{}
		first := map[int][]core.Seat{}
		var left core.Shares
		left.Reset(cluster)
		for _, p := range seating.Placed {
			group := groups[p.Job]
			if seats, found := first[group]; found && !core.SameDevices(seats, p.Seats) {
				t.Fatalf("group %d is on %v and %v", group, seats, p.Seats)
			}
			first[group] = p.Seats
			if !left.Occupy(v.Jobs[p.Job].JobSpec, p.Seats) {
				t.Fatalf("job %d is on %v, of which something is taken", p.Job, p.Seats)
			}
			for _, s := range p.Seats {
				for _, d := range s.Devices.List() {
					if of[s.Node] == nil {
						of[s.Node] = map[int]int{}
					}
					if other, taken := of[s.Node][d]; taken && other != group {
						t.Fatalf("device %d of node %d has jobs of groups %d and %d", d, s.Node, other, group)
					}
					of[s.Node][d] = group
				}
			}
			jobs[p.Job].Running(0, append([]core.Seat(nil), p.Seats...)...)
		}
		again := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		seats := policytest.Place(t, policy, again, grants)
		if repeated := policytest.Place(t, policy, again, grants); repeated != seats {
			t.Fatalf("asked again:\n%s\nbefore:\n%s", repeated, seats)
		}
	})
}
