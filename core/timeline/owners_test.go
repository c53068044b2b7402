package timeline_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// A device is used once, whoever comes and goes on it. A job that computes on CPUs alone uses none.
func TestSharedDevicesAreUsedOnce(t *testing.T) {
	onCPUs := func(id core.JobID, at float64) core.Event {
		e := submitted(id, at)
		e.Spec.Share = &core.Share{}
		return e
	}
	edited := func(id core.JobID, at float64) core.Event {
		return core.Event{Kind: core.JobChanged, AtSeconds: at, Job: id, Spec: spec(id)}
	}
	for sharing, want := range map[core.Sharing]string{
		core.Fractional: lines(usageHeader, "0,6,1,2,0,0,3,,", "10,6,3,3,0,0,6,,", "20,6,3,2,0,0,5,,", "25,6,2,1,1,0,5,,", "30,6,3,1,1,0,5,,", "40,6,3,1,1,0,5,,"),
		core.TimeSlice:  lines(usageHeader, "0,6,1,2,0,0,3,,", "10,6,3,3,0,0,6,,", "20,6,3,2,0,0,5,,", "25,6,2,1,1,0,5,,", "30,6,3,1,1,0,5,,", "40,6,3,1,1,0,5,,"),
	} {
		s := storyOf(t, nil, &core.Cluster{Sharing: sharing, MaxOwners: 3, Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 6}}})
		running, waiting := core.Running, core.Waiting
		s.round(0, map[core.JobID]core.JobState{0: running, 1: running}, []core.Event{submitted(0, 0), submitted(1, 0)},
			start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(0, 1)))
		s.round(10, map[core.JobID]core.JobState{0: running, 1: running, 2: running}, []core.Event{submitted(2, 10)}, start(core.Start, 2, seat(0, 0b111)))
		s.round(20, map[core.JobID]core.JobState{0: core.Completed, 1: running, 2: running}, []core.Event{happened(core.JobFinished, 0, 20)})
		s.round(25, map[core.JobID]core.JobState{1: running, 2: waiting}, nil, core.Change{Action: core.Stop, Job: 2}, start(core.Move, 1, seat(0, 0b11)))
		s.round(30, map[core.JobID]core.JobState{1: running, 2: waiting}, nil, start(core.Move, 1, seat(0, 0b111)))
		s.finish(40)
		if got := s.files.usage.String(); got != want {
			t.Errorf("%v: usage.csv\n%s\nwant\n%s", sharing, got, want)
		}
	}
	s := storyOf(t, nil, &core.Cluster{Sharing: core.Fractional, Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 6}}})
	s.round(0, map[core.JobID]core.JobState{0: core.Running, 1: core.Running}, []core.Event{onCPUs(0, 0), submitted(1, 0)},
		start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(0, 0b11)))
	s.round(10, map[core.JobID]core.JobState{0: core.Running, 1: core.Running}, nil, start(core.Move, 1, seat(0, 0b10)))
	s.round(20, map[core.JobID]core.JobState{0: core.Running, 1: core.Running}, []core.Event{edited(0, 20)}) // to a whole device
	s.finish(30)
	expect(t, "usage.csv", lines(usageHeader, "0,6,2,2,0,0,3,,", "10,6,1,2,0,0,3,,", "20,6,2,2,0,0,3,,", "30,6,2,2,0,0,3,,"), &s.files.usage)
}

// Ends that are told at once count when they were, in whatever order they are told.
func TestEndsOnASharedDeviceToldAtOnce(t *testing.T) {
	s := storyOf(t, nil, &core.Cluster{Sharing: core.TimeSlice, MaxOwners: 2, Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 2}}})
	s.round(0, map[core.JobID]core.JobState{0: core.Running, 1: core.Running}, []core.Event{submitted(0, 0), submitted(1, 0)},
		start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(0, 1)))
	s.round(30, map[core.JobID]core.JobState{0: core.Completed, 1: core.Completed}, []core.Event{happened(core.JobFinished, 0, 25), happened(core.JobFinished, 1, 10)})
	s.finish(30)
	got := s.files.usage.String()
	for _, row := range []string{"0,2,1,2,", "10,2,1,1,", "25,2,0,0,"} {
		if !strings.Contains(got, "\n"+row) {
			t.Errorf("no row %q in\n%s", row, got)
		}
	}
}

// usage.csv counts what a look at all jobs counts.
func TestUsageOfAnySharing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sharing := rapid.SampledFrom([]core.Sharing{core.Exclusive, core.Fractional, core.TimeSlice}).Draw(rt, "sharing")
		s := storyOf(t, nil, &core.Cluster{Sharing: sharing, MaxOwners: 9, Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 5}, {ID: 1, Name: "b", Devices: 5}}})
		held, jobs := map[core.JobID][]core.Seat{}, map[core.JobID]core.JobState{}
		var events []core.Event
		for id := range core.JobID(5) {
			events, jobs[id] = append(events, submitted(id, 0)), core.Waiting
		}
		var want []string
		for round := range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			var changes []core.Change
			for id := range core.JobID(5) {
				devices := [2]core.DeviceSet{core.DeviceSet(rapid.IntRange(0, 31).Draw(rt, "on a")), core.DeviceSet(rapid.IntRange(0, 31).Draw(rt, "on b"))}
				var seats []core.Seat
				for node, on := range devices {
					if on != 0 {
						seats = append(seats, seat(core.NodeID(node), on))
					}
				}
				switch {
				case rapid.Bool().Draw(rt, "stays"):
				case len(seats) > 0:
					changes, held[id], jobs[id] = append(changes, start(core.Move, id, seats...)), seats, core.Running
				case len(held[id]) > 0:
					changes, held[id], jobs[id] = append(changes, core.Change{Action: core.Stop, Job: id}), nil, core.Waiting
				}
			}
			s.round(float64(round), jobs, events, changes...)
			events = nil
			var once [2]core.DeviceSet
			replicas := 0
			for _, seats := range held {
				for _, on := range seats {
					once[on.Node] |= on.Devices
				}
				replicas += core.Replicas(seats)
			}
			used := once[0].Count() + once[1].Count()
			if sharing == core.Exclusive {
				used = replicas // whatever they are
			}
			want = append(want, fmt.Sprintf("%d,10,%d,", round, used))
		}
		s.finish(100)
		for row := range strings.SplitSeq(s.files.usage.String(), "\n") {
			at, _, _ := strings.Cut(row, ",")
			for _, w := range want {
				if strings.HasPrefix(w, at+",") && !strings.HasPrefix(row, w) {
					rt.Fatalf("row %s, want it to begin with %s", row, w)
				}
			}
		}
	})
}
