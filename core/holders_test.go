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
				h.add(c, jobs[i], jobs[i].Seats, jobs[i].Slices(), -1)
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
				h.add(c, j, j.Seats, nil, 1)
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
