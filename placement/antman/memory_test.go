package antman

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

const shortOfMemory = "there are devices for it, and device memory is short"

// Whatever jobs there are beside each other, who is told that device memory is short finds devices enough that have all else, and not with so much memory.
func TestAntManBlamesMemoryThatIsShort(t *testing.T) {
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		cluster := policytest.DevicesWithMemory(core.TimeSlice, 16, rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "nodes")...)
		cluster.MaxOwners = rapid.IntRange(2, 3).Draw(t, "owners")
		most := rapid.IntRange(1, 2).Draw(t, "opportunistic")
		policy := policytest.New(t, New(), map[string]any{"opportunistic_per_device": most})
		var jobs []*coretest.JobBuilder
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			j := policytest.Waits(rapid.IntRange(1, 3).Draw(t, "replicas")).DeviceMemory(float64(rapid.IntRange(0, 12).Draw(t, "memory")))
			if rapid.Bool().Draw(t, "best effort") {
				j = j.BestEffort()
			}
			jobs = append(jobs, j)
		}
		v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		seating, err := policy.Place(t.Context(), v, policytest.InOrder(v))
		if err != nil {
			t.Fatal(err)
		}
		var left core.Shares
		left.Reset(cluster)
		guests, owned := map[core.Seat]int{}, map[core.Seat]bool{}
		for _, p := range seating.Placed {
			if !left.Occupy(v.Jobs[p.Job].JobSpec, p.Seats) {
				t.Fatalf("job %d does not fit on %v", p.Job, p.Seats)
			}
			for _, s := range p.Seats {
				for rest := s.Devices; rest != 0; rest &= rest - 1 {
					if at := (core.Seat{Node: s.Node, Devices: 1 << rest.First()}); v.Jobs[p.Job].BestEffort {
						guests[at]++
					} else {
						owned[at] = true
					}
				}
			}
		}
		for _, u := range seating.Unseated {
			j := v.Jobs[u.Job]
			room, enough := 0, 0
			for i := range cluster.Nodes {
				for d := range cluster.Nodes[i].Devices {
					at := core.Seat{Node: core.NodeID(i), Devices: 1 << d}
					if j.BestEffort && guests[at] >= min(most, cluster.MaxOwners-1) || !j.BestEffort && owned[at] {
						continue
					}
					room++
					if left.DeviceMemoryLeft(at.Node, d) > u.Available {
						enough++
					}
				}
			}
			short := u.Message == shortOfMemory
			if short && (u.Wanted != j.DeviceMemoryGB || u.Available >= u.Wanted || j.BestEffort && enough >= j.Requested) {
				t.Fatalf("job %d of %d replicas and %v GB is told %q, and %d devices have more", u.Job, j.Requested, j.DeviceMemoryGB, u.Explain(), enough)
			}
			last := !slices.ContainsFunc(seating.Placed, func(p core.Placement) bool { return v.Jobs[p.Job].BestEffort && p.Job > u.Job })
			if j.BestEffort && last && room >= j.Requested && !short {
				t.Fatalf("job %d of %d replicas and %v GB is told %q, and %d devices have room for it", u.Job, j.Requested, j.DeviceMemoryGB, u.Explain(), room)
			}
			if short {
				told++
			}
		}
	})
	if told == 0 {
		t.Error("nobody was short of memory")
	}
}
