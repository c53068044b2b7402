package core

import (
	"testing"

	"pgregory.net/rapid"
)

// However jobs come and go, each device on which one of them computes counts once, and one of jobs that do not compute does not count.
func TestHoldersCountDevicesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Cluster{Sharing: rapid.SampledFrom([]Sharing{Exclusive, Fractional, TimeSlice, Mig}).Draw(t, "sharing")}
		var h holders
		var jobs []*Job
		for id := range JobID(rapid.IntRange(1, 12).Draw(t, "steps")) {
			if len(jobs) > 0 && rapid.IntRange(0, 2).Draw(t, "goes") == 0 {
				i := rapid.IntRange(0, len(jobs)-1).Draw(t, "who")
				h.add(c.Sharing, jobs[i], jobs[i].Seats, jobs[i].Slices(), -1)
				jobs = append(jobs[:i], jobs[i+1:]...)
			} else {
				devices := DeviceSet(rapid.IntRange(1, 7).Draw(t, "devices"))
				if c.Sharing == Exclusive {
					devices <<= 3 * id // that nobody else has
				}
				j := &Job{JobSpec: &JobSpec{ID: id}, Seats: []Seat{{Node: NodeID(rapid.IntRange(0, 1).Draw(t, "node")), Devices: devices}}}
				if c.Sharing != Exclusive && rapid.Bool().Draw(t, "part") {
					j.Share = &Share{Milli: rapid.SampledFrom([]int{0, 125, 125, 1000}).Draw(t, "milli")}
				}
				h.add(c.Sharing, j, j.Seats, nil, 1)
				jobs = append(jobs, j)
			}
			used := map[NodeID]DeviceSet{}
			for _, j := range jobs {
				if j.Share == nil || j.Share.Milli > 0 {
					used[j.Seats[0].Node] |= j.Seats[0].Devices
				}
			}
			if want := used[0].Count() + used[1].Count(); h.devices != want {
				t.Fatalf("%d devices in use, want %d", h.devices, want)
			}
		}
	})
}

// Who is given other CPUs than it asks for has its part of a device all the same.
func TestPartsOfThoseThatAreGivenCPUs(t *testing.T) {
	v := &View{Cluster: &Cluster{Accelerators: []string{"t4"}, Sharing: Fractional, CountsResources: true, Nodes: []Node{{Devices: 1, CPUs: 8}}}}
	var o occupancy
	o.reset(v)
	seats := []Seat{{Devices: 1}}
	for id, want := range []bool{true, true, false} {
		j := &Job{JobSpec: &JobSpec{ID: JobID(id), CPUs: 4, Share: &Share{Milli: 500}}}
		if got := o.occupy(j, &Placement{Job: j.ID, Seats: seats, Resources: &Resources{CPUs: 1}}); got != want {
			t.Errorf("job %d, of half a device, has a seat: %t, want %t", id, got, want)
		}
	}
}

// A job that moves gets another slice where it comes to, wherever its own began.
func TestSlicesOfAJobThatMoves(t *testing.T) {
	v := &View{Cluster: &Cluster{Accelerators: []string{"a100"}, Sharing: Mig, Nodes: []Node{{Devices: 1}, {ID: 1, Devices: 1}}}}
	var o occupancy
	o.reset(v)
	runs := func(id JobID, node NodeID) *Job {
		return &Job{JobSpec: &JobSpec{ID: id, Share: &Share{Milli: 100}}, State: Running, Held: 1, Seats: []Seat{{Node: node, Devices: 1}}, Sliced: &Sliced{Starts: []uint8{6}}}
	}
	stays, moves := runs(0, 1), runs(1, 0)
	for _, j := range []*Job{stays, moves} {
		if !o.occupy(j, &Placement{Job: j.ID, Seats: stays.Seats}) {
			t.Errorf("job %d has no seat", j.ID)
		}
	}
	if first, second := o.shares.SliceOf(stays.JobSpec, 1, 0), o.shares.SliceOf(moves.JobSpec, 1, 0); first != 6 || second == 6 || second == NoSlice {
		t.Errorf("slices begin at %d and %d", first, second)
	}
}

// On devices of which nobody checked that there is room, a job has no slice there, and those of its others.
func TestSlicesWithoutRoom(t *testing.T) {
	l := layouts{}
	whole := &JobSpec{}
	l.place(whole, []Seat{{Devices: 0b010}})
	if got := l.place(whole, []Seat{{Devices: 0b111}}); len(got) != 3 || got[0] != 0 || got[1] != NoSlice || got[2] != 0 {
		t.Errorf("slices begin at %v, want 0, nowhere and 0", got)
	}
}
