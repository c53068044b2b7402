package core_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// seatedJob is a job and what it holds, as the test knows it.
type seatedJob struct {
	spec  *core.JobSpec
	seats []core.Seat
}

// overfull says what of a cluster jobs take more of than there is; "" for nothing. It adds up everything anew.
func overfull(c *core.Cluster, jobs []seatedJob) string {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		cpus, memory := 0.0, 0.0
		for device := range n.Devices {
			milli, owners, whole, most, sum := 0, 0, false, 0.0, 0.0
			for _, j := range jobs {
				for _, s := range j.seats {
					if s.Node != n.ID || s.Devices&(1<<device) == 0 {
						continue
					}
					cpus, memory = cpus+j.spec.CPUs, memory+j.spec.MemoryGB
					share := core.Share{Milli: core.WholeDevice}
					if j.spec.Share != nil {
						share = *j.spec.Share
					}
					if milli += share.Milli; share.Milli > 0 {
						owners++
						most, sum = max(most, j.spec.DeviceMemoryGB), sum+j.spec.DeviceMemoryGB
						whole = whole || j.spec.Share == nil
					}
				}
			}
			if c.OversubscribesMemory {
				sum = most
			}
			if c.Sharing == core.Exclusive && owners > 1 || c.Sharing == core.Fractional && (milli > core.WholeDevice || whole && owners > 1) ||
				c.Sharing == core.TimeSlice && owners > c.MaxOwners || c.Sharing != core.Exclusive && n.DeviceMemoryGB > 0 && sum > n.DeviceMemoryGB+1e-9 {
				return fmt.Sprintf("device %d of node %d: %d jobs, %d thousandths", device, i, owners, milli)
			}
		}
		if c.CountsResources && (n.CPUs > 0 && cpus > n.CPUs+1e-9 || n.MemoryGB > 0 && memory > n.MemoryGB+1e-9) {
			return fmt.Sprintf("node %d: %v CPUs, %v GB", i, cpus, memory)
		}
	}
	return ""
}

// Shares seat a job just where nothing comes to more than there is, and what is given back is what was taken.
func TestShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &core.Cluster{
			Accelerators: []string{"t4"}, Sharing: rapid.SampledFrom([]core.Sharing{core.Exclusive, core.Fractional, core.TimeSlice}).Draw(t, "sharing"),
			MaxOwners: rapid.IntRange(1, 3).Draw(t, "owners"), OversubscribesMemory: rapid.Bool().Draw(t, "oversubscribe"),
			CountsResources: rapid.Bool().Draw(t, "count"),
		}
		amount := func(of string, most int) float64 { return float64(rapid.IntRange(0, 10*most).Draw(t, of)) / 10 }
		for i := range core.NodeID(rapid.IntRange(1, 3).Draw(t, "nodes")) {
			c.Nodes = append(c.Nodes, core.Node{
				ID: i, Devices: rapid.IntRange(1, 3).Draw(t, "devices"), CPUs: amount("cpus", 8), MemoryGB: amount("memory", 8),
				DeviceMemoryGB: amount("device memory", 3),
				Unusable:       core.DeviceSet(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "broken")),
			})
		}
		var shares core.Shares
		shares.Reset(c)
		var jobs []seatedJob
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if len(jobs) > 0 && rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
				i := rapid.IntRange(0, len(jobs)-1).Draw(t, "who")
				shares.Release(jobs[i].spec, jobs[i].seats)
				jobs = append(jobs[:i], jobs[i+1:]...)
				continue
			}
			j := seatedJob{spec: &core.JobSpec{CPUs: amount("job cpus", 3), MemoryGB: amount("job memory", 3), DeviceMemoryGB: amount("job device memory", 2)}}
			if rapid.Bool().Draw(t, "shares") {
				j.spec.Share = &core.Share{Milli: rapid.SampledFrom([]int{0, 1, 300, 500, 501, 1000}).Draw(t, "milli")}
			}
			usable := true
			for i := range c.Nodes {
				n := &c.Nodes[i]
				if set := core.DeviceSet(rapid.IntRange(0, 15).Draw(t, "seat")); set != 0 {
					j.seats = append(j.seats, core.Seat{Node: n.ID, Devices: set})
					usable = usable && set&^n.Usable() == 0
				}
			}
			want := usable && overfull(c, append(slices.Clip(jobs), j)) == ""
			if got := shares.Occupy(j.spec, j.seats); got != want {
				t.Fatalf("seated %t, want %t: %s", got, want, overfull(c, append(slices.Clip(jobs), j)))
			}
			if want {
				jobs = append(jobs, j)
			}
		}
		for _, j := range jobs {
			shares.Release(j.spec, j.seats)
		}
		for i := range c.Nodes {
			n := &c.Nodes[i]
			for device := range n.Devices {
				if milli, owners := shares.Milli(n.ID, device), shares.Owners(n.ID, device); milli != core.WholeDevice || owners != 0 {
					t.Fatalf("device %d of the empty node %d has %d thousandths and %d jobs", device, i, milli, owners)
				}
				if left := shares.DeviceMemoryLeft(n.ID, device); n.DeviceMemoryGB > 0 && math.Abs(left-n.DeviceMemoryGB) > 1e-9 {
					t.Fatalf("device %d of the empty node %d has %v GB", device, i, left)
				}
			}
			if cpus, memory := shares.Left(n.ID); n.CPUs > 0 && math.Abs(cpus-n.CPUs) > 1e-9 || n.MemoryGB > 0 && math.Abs(memory-n.MemoryGB) > 1e-9 {
				t.Fatalf("the empty node %d has %v CPUs and %v GB", i, cpus, memory)
			}
		}
	})
}
