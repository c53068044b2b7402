package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// numbered gives grants the numbers of groups, in their order.
func numbered(groups ...int) func([]core.Grant) []core.Grant {
	return func(g []core.Grant) []core.Grant {
		for i := range g {
			g[i].Group = groups[i]
		}
		return g
	}
}

// onDevices seats the jobs on these, by JobID; nil refuses one.
func onDevices(seats ...[]core.Seat) func(core.Seating) core.Seating {
	return func(core.Seating) core.Seating {
		var s core.Seating
		for i := range seats {
			if seats[i] == nil {
				s.Unseated = append(s.Unseated, core.Verdict{Job: core.JobID(i), Code: core.Defer, Reason: core.Fragmented})
				continue
			}
			s.Placed = append(s.Placed, core.Placement{Job: core.JobID(i), Seats: seats[i]})
		}
		return s
	}
}

func TestGroupsOfGrants(t *testing.T) {
	at := func(node core.NodeID, devices core.DeviceSet) []core.Seat {
		return []core.Seat{{Node: node, Devices: devices}}
	}
	apart, across := at(0, 12), []core.Seat{{Node: 0, Devices: 1}, {Node: 1, Devices: 1}}
	cases := map[string]struct {
		sharing  core.Sharing
		owners   int
		change   func([]core.Grant) []core.Grant
		seats    [4][]core.Seat // of jobs 0 to 3
		replicas [4]int         // 2 where it says nothing
		rule     string         // broken; "" for none
		by       string
	}{
		"two pairs": {
			core.TimeSlice, 2, numbered(1, 1, 2, 2), [4][]core.Seat{at(0, 3), at(0, 3), at(1, 3), at(1, 3)}, [4]int{}, "", "",
		},
		"two alone, and a pair": {
			core.TimeSlice, 2, numbered(0, 7, 7, 0), [4][]core.Seat{at(0, 3), at(0, 12), at(0, 12), at(1, 3)}, [4]int{}, "", "",
		},
		"of a group one has no devices": {
			core.TimeSlice, 2, numbered(1, 1, 2, 2), [4][]core.Seat{at(0, 3), nil, nil, at(1, 3)}, [4]int{}, "", "",
		},
		"one alone on devices of a group, as long as there are owners left": {
			core.TimeSlice, 3, numbered(0, 1, 1, 0), [4][]core.Seat{at(0, 3), at(0, 3), at(0, 3), at(1, 3)}, [4]int{}, "", "",
		},
		"where each device is one job's": {
			core.Exclusive, 0, numbered(0, 1, 1, 0), [4][]core.Seat{}, [4]int{}, core.RuleGroupSane, "allocation/fake",
		},
		"where jobs have parts of devices": {
			core.Fractional, 0, numbered(0, 1, 1, 0), [4][]core.Seat{}, [4]int{}, core.RuleGroupSane, "allocation/fake",
		},
		"more than a device has owners": {
			core.TimeSlice, 2, numbered(1, 1, 1, 0), [4][]core.Seat{}, [4]int{}, core.RuleGroupSane, "allocation/fake",
		},
		"as many as a device has owners": {
			core.TimeSlice, 3, numbered(1, 1, 1, 0), [4][]core.Seat{at(0, 3), at(0, 3), at(0, 3), at(1, 3)}, [4]int{}, "", "",
		},
		"numbers fall": {
			core.TimeSlice, 4, numbered(2, 2, 1, 1), [4][]core.Seat{}, [4]int{}, core.RuleGroupSane, "allocation/fake",
		},
		"a group comes again": {
			core.TimeSlice, 4, numbered(1, 0, 1, 0), [4][]core.Seat{}, [4]int{}, core.RuleGroupSane, "allocation/fake",
		},
		"a number below 0": {
			core.TimeSlice, 4, numbered(-1, -1, 0, 0), [4][]core.Seat{}, [4]int{}, core.RuleGroupSane, "allocation/fake",
		},
		"of different sizes": {
			core.TimeSlice, 4, numbered(1, 1, 0, 0), [4][]core.Seat{}, [4]int{0, 1}, core.RuleGroupSane, "allocation/fake",
		},
		"the last of them of another size": {
			core.TimeSlice, 4, numbered(1, 1, 1, 1), [4][]core.Seat{}, [4]int{0, 0, 0, 3}, core.RuleGroupSane, "allocation/fake",
		},
		"of different types": {
			core.TimeSlice, 4, func(g []core.Grant) []core.Grant {
				g = numbered(1, 1, 0, 0)(g)
				g[1].Accelerator = 0
				return g
			}, [4][]core.Seat{}, [4]int{}, core.RuleGroupSane, "allocation/fake",
		},
		"seated apart": {
			core.TimeSlice, 2, numbered(1, 1, 2, 2), [4][]core.Seat{at(0, 3), apart, at(1, 3), at(1, 3)}, [4]int{}, core.RuleGroupTogether, "placement/fake",
		},
		"the second group apart": {
			core.TimeSlice, 2, numbered(1, 1, 2, 2), [4][]core.Seat{at(0, 3), at(0, 3), at(1, 3), at(1, 12)}, [4]int{}, core.RuleGroupTogether, "placement/fake",
		},
		"a device in common is not enough": {
			core.TimeSlice, 2, numbered(1, 1, 2, 2), [4][]core.Seat{at(0, 3), at(0, 6), at(1, 3), at(1, 3)}, [4]int{}, core.RuleGroupTogether, "placement/fake",
		},
		"the third beside a seat that is none": {
			core.TimeSlice, 4, numbered(1, 1, 1, 0), [4][]core.Seat{at(0, 3), nil, apart, at(1, 3)}, [4]int{}, core.RuleGroupTogether, "placement/fake",
		},
		"more owners than there may be": {
			core.TimeSlice, 2, numbered(0, 1, 1, 0), [4][]core.Seat{at(0, 3), at(0, 3), at(0, 3), at(1, 3)}, [4]int{}, core.RuleDeviceLeft, "placement/fake",
		},
		"types across": {
			core.TimeSlice, 2, numbered(1, 1, 0, 0), [4][]core.Seat{across, across, at(0, 12), at(1, 12)}, [4]int{}, core.RuleOneAccelerator, "placement/fake",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := twoNodes()
			cluster.Sharing, cluster.MaxOwners = tc.sharing, tc.owners
			var events []core.Event
			for id, replicas := range tc.replicas {
				if replicas == 0 {
					replicas = 2
				}
				events = append(events, submit(core.JobID(id), 0, replicas))
			}
			f := fakes{grant: grantAll{change: tc.change}, seat: seatFirst{change: onDevices(tc.seats[:]...)}}
			b := &script{observations: []core.Observation{{Events: events}}}
			err := core.NewPipeline(cluster, f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(context.Background(), b)
			if tc.rule == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			broken, ok := errors.AsType[*core.InvariantError](err)
			if !ok {
				t.Fatalf("error %v, want a broken invariant", err)
			}
			if broken.Rule != tc.rule || broken.Component != tc.by {
				t.Errorf("blames %q for %q, want %q for %q", broken.Component, broken.Rule, tc.by, tc.rule)
			}
		})
	}
}

// Replicas may be numbered in another order, as long as the devices are the same.
func TestGroupsMayOrderTheirSeats(t *testing.T) {
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{ID: 0, Name: "a", Devices: 1}, {ID: 1, Name: "b", Devices: 1}}, Sharing: core.TimeSlice, MaxOwners: 2}
	a, b := core.Seat{Node: 0, Devices: 1}, core.Seat{Node: 1, Devices: 1}
	f := fakes{grant: grantAll{change: numbered(1, 1)}, seat: seatFirst{change: onDevices([]core.Seat{a, b}, []core.Seat{b, a})}}
	script := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
	if err := core.NewPipeline(cluster, f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(context.Background(), script); err != nil {
		t.Error(err)
	}
	if len(script.applied) == 0 {
		t.Error("nobody is started")
	}
}
