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

// leftDifference says what of a cluster is told to be left that is not; "" for nothing. It adds up everything anew.
func leftDifference(shares *core.Shares, c *core.Cluster, jobs []seatedJob) string {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		cpus, memory := n.CPUs, n.MemoryGB
		for device := range n.Devices {
			owners, milli, deviceMemory := 0, core.WholeDevice, n.DeviceMemoryGB
			for _, j := range jobs {
				for _, s := range j.seats {
					if s.Node != n.ID || s.Devices&(1<<device) == 0 {
						continue
					}
					if c.CountsResources {
						cpus, memory = cpus-j.spec.CPUs, memory-j.spec.MemoryGB
					}
					part := core.WholeDevice
					if j.spec.Share != nil {
						part = j.spec.Share.Milli
					}
					if part == 0 {
						continue
					}
					owners++
					if c.Sharing != core.TimeSlice {
						milli -= part
					}
					if !c.OversubscribesMemory {
						deviceMemory -= j.spec.DeviceMemoryGB
					}
				}
			}
			if got := shares.Owners(n.ID, device); got != owners {
				return fmt.Sprintf("device %d of node %d has %d jobs, want %d", device, i, got, owners)
			}
			if got := shares.Milli(n.ID, device); got != milli {
				return fmt.Sprintf("device %d of node %d has %d thousandths, want %d", device, i, got, milli)
			}
			if got := shares.DeviceMemoryLeft(n.ID, device); differs(n.DeviceMemoryGB, deviceMemory, got) {
				return fmt.Sprintf("device %d of node %d has %v GB, want %v", device, i, got, deviceMemory)
			}
		}
		if gotCPUs, gotMemory := shares.Left(n.ID); differs(n.CPUs, cpus, gotCPUs) || differs(n.MemoryGB, memory, gotMemory) {
			return fmt.Sprintf("node %d has %v CPUs and %v GB, want %v and %v", i, gotCPUs, gotMemory, cpus, memory)
		}
	}
	return ""
}

// differs reports whether what is told to be left is not that; of what is not known there is no end.
func differs(has, left, told float64) bool {
	if has == 0 {
		return !math.IsInf(told, 1)
	}
	return math.Abs(left-told) > 1e-9
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
				set := core.DeviceSet(rapid.IntRange(0, 15).Draw(t, "seat"))
				if rapid.IntRange(0, 9).Draw(t, "wrong") > 0 {
					set &= n.Usable()
				}
				if set != 0 {
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
			if told := leftDifference(&shares, c, jobs); told != "" {
				t.Fatal(told)
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

func TestFitsOn(t *testing.T) {
	t.Parallel()
	whole, half := &core.JobSpec{ID: 1}, &core.JobSpec{ID: 1, Share: &core.Share{Milli: 500}, DeviceMemoryGB: 8}
	none := &core.JobSpec{ID: 1, Share: &core.Share{}}
	for name, tc := range map[string]struct {
		sharing core.Sharing
		first   *core.JobSpec // on the device; nil for nobody
		spec    *core.JobSpec
		want    bool
	}{
		"an empty one":                         {core.Exclusive, nil, whole, true},
		"one that another has":                 {core.Exclusive, &core.JobSpec{}, whole, false},
		"a part of one that nobody shares":     {core.Exclusive, &core.JobSpec{}, half, false},
		"a half where nobody shares":           {core.Exclusive, &core.JobSpec{Share: &core.Share{Milli: 500}}, half, false},
		"the memory of a slice beside another": {core.Mig, &core.JobSpec{Share: &core.Share{Milli: 100}, DeviceMemoryGB: 2}, &core.JobSpec{ID: 1, Share: &core.Share{Milli: 100}, DeviceMemoryGB: 2}, true},
		"more than that of a slice":            {core.Mig, &core.JobSpec{Share: &core.Share{Milli: 100}}, &core.JobSpec{ID: 1, Share: &core.Share{Milli: 100}, DeviceMemoryGB: 2.001}, false},
		"beside one that takes nothing":        {core.Exclusive, &core.JobSpec{Share: &core.Share{}}, whole, true},
		"nothing of it":                        {core.Exclusive, &core.JobSpec{}, none, true},
		"the other half":                       {core.Fractional, &core.JobSpec{Share: &core.Share{Milli: 500}, DeviceMemoryGB: 8}, half, true},
		"more than half is gone":               {core.Fractional, &core.JobSpec{Share: &core.Share{Milli: 501}}, half, false},
		"more of its memory":                   {core.Fractional, &core.JobSpec{Share: &core.Share{Milli: 1}, DeviceMemoryGB: 8.001}, half, false},
		"all of one of which another has some": {core.Fractional, &core.JobSpec{Share: &core.Share{Milli: 1}}, whole, false},
		"a second turn":                        {core.TimeSlice, &core.JobSpec{}, whole, true},
		"a slice beside another":               {core.Mig, &core.JobSpec{Share: &core.Share{Milli: 400}}, &core.JobSpec{ID: 1, Share: &core.Share{Milli: 400}}, true},
		"a slice of a full one":                {core.Mig, &core.JobSpec{}, &core.JobSpec{ID: 1, Share: &core.Share{Milli: 100}}, false},
		"another slice for the same job":       {core.Mig, &core.JobSpec{ID: 1, Share: &core.Share{Milli: 100}}, &core.JobSpec{ID: 1, Share: &core.Share{Milli: 100}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &core.Cluster{Accelerators: []string{"t4"}, Sharing: tc.sharing, MaxOwners: 2, Nodes: []core.Node{{Devices: 2, Unusable: 2, DeviceMemoryGB: 16}}}
			var shares core.Shares
			shares.Reset(c)
			if tc.first != nil && !shares.Occupy(tc.first, []core.Seat{{Devices: 1}}) {
				t.Fatal("the first one has no seat")
			}
			if got := shares.FitsOn(tc.spec, 0, 0); got != tc.want {
				t.Errorf("fits: %t, want %t", got, tc.want)
			}
			if shares.FitsOn(tc.spec, 0, 1) {
				t.Error("it fits on a broken device")
			}
			for _, node := range []core.NodeID{-1, 1, 9} {
				if shares.Occupy(tc.spec, []core.Seat{{Node: node, Devices: 1}}) {
					t.Errorf("it has a seat on node %d, which is not there", node)
				}
			}
		})
	}
}

// Two t4 with 16 GB and 12 GB, and a v100 of which it is not known.
func TestFitTogether(t *testing.T) {
	t.Parallel()
	needs := func(gigabytes ...float64) (jobs []*core.JobSpec) {
		for _, of := range gigabytes {
			jobs = append(jobs, &core.JobSpec{DeviceMemoryGB: of})
		}
		return jobs
	}
	turns := core.Cluster{Sharing: core.TimeSlice, MaxOwners: 2}
	over := turns
	over.OversubscribesMemory = true
	for name, tc := range map[string]struct {
		cluster core.Cluster
		gone    bool // the smaller node
		on      core.AcceleratorID
		jobs    []*core.JobSpec
		want    bool
	}{
		"one":                                 {turns, false, 0, needs(12), true},
		"one that is too large":               {turns, false, 0, needs(12.001), false},
		"too large for a node that is gone":   {turns, true, 0, needs(16), true},
		"nor for the other":                   {turns, true, 0, needs(16.001), false},
		"two":                                 {turns, false, 0, needs(8, 4), true},
		"two with too much together":          {turns, false, 0, needs(8, 5), false},
		"which is lent":                       {over, false, 0, needs(8, 5), true},
		"but not for one of them":             {over, false, 0, needs(1, 13), false},
		"whichever it is":                     {over, false, 0, needs(13, 1), false},
		"three where two may be":              {turns, false, 0, needs(0, 0, 0), false},
		"of a type that nobody knows":         {turns, false, 1, needs(99, 99), true},
		"that need none":                      {turns, false, 0, needs(0, 0), true},
		"two that do not share":               {core.Cluster{MaxOwners: 2}, false, 0, needs(0, 0), false},
		"one, where memory is not counted":    {core.Cluster{}, false, 0, needs(99), true},
		"two with parts, who need no consent": {core.Cluster{Sharing: core.Fractional, MaxOwners: 2}, false, 0, needs(0, 0), false},
		"one with a part":                     {core.Cluster{Sharing: core.Fractional}, false, 0, needs(13), false},
		"nobody":                              {turns, false, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tc.cluster
			c.Accelerators = []string{"t4", "v100"}
			c.Nodes = []core.Node{{Devices: 1, DeviceMemoryGB: 16}, {ID: 1, Devices: 1, DeviceMemoryGB: 12}, {ID: 2, Accelerator: 1, Devices: 1}}
			if tc.gone {
				c.Nodes[1].Health = core.Gone
			}
			if got := c.FitTogether(tc.on, tc.jobs...); got != tc.want {
				t.Errorf("fit together: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	if got := amounts(2, 5).Times(3); got != amounts(6, 15) {
		t.Errorf("three times 2 CPUs and 5 GB are %v", got)
	}
	for name, tc := range map[string]struct {
		of, than core.Resources
		want     bool
	}{
		"the same":     {amounts(2, 5), amounts(2, 5), false},
		"less":         {amounts(1, 4), amounts(2, 5), false},
		"more CPUs":    {amounts(3, 4), amounts(2, 5), true},
		"more memory":  {amounts(1, 6), amounts(2, 5), true},
		"more of both": {amounts(3, 6), amounts(2, 5), true},
	} {
		if got := tc.of.Over(tc.than); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestWaysOfSharing(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]core.Sharing{"none": core.Exclusive, "fractional": core.Fractional, "timeslice": core.TimeSlice, "mig": core.Mig} {
		got, err := core.SharingOf(name)
		if err != nil || got != of || of.String() != name || !of.Known() {
			t.Errorf("%q is %v, %v; want %v, which is known: %t", name, got, err, of, of.Known())
		}
	}
	if _, err := core.SharingOf("all"); err == nil {
		t.Error("there is a way of sharing called all")
	}
	if core.Sharing(4).Known() {
		t.Error("a fifth way of sharing is known")
	}
	for name, tc := range map[string]struct {
		share *core.Share
		want  float64
	}{
		"a device":                {nil, 1},
		"a quarter":               {&core.Share{Milli: 250}, 0.25},
		"a slice":                 {&core.Share{Milli: 250, Profile: "3g"}, 3.0 / 7},
		"nothing":                 {&core.Share{}, 0},
		"nothing, with a profile": {&core.Share{Profile: "3g"}, 0},
	} {
		if got := (&core.JobSpec{Share: tc.share}).Part(); got != tc.want {
			t.Errorf("%s is %v of a device, want %v", name, got, tc.want)
		}
	}
}

// Where the slice of a job is on a device, of which it has two on one node and one on another.
func TestSliceAt(t *testing.T) {
	t.Parallel()
	j := core.Job{JobSpec: &core.JobSpec{}, Seats: []core.Seat{{Node: 1, Devices: 0b1010}, {Node: 3, Devices: 0b1}}, Sliced: &core.Sliced{Starts: []uint8{4, 2, 6}}}
	short := j
	short.Sliced = &core.Sliced{Starts: []uint8{4}}
	for name, tc := range map[string]struct {
		job    *core.Job
		node   core.NodeID
		device int
		want   uint8
	}{
		"the first":                 {&j, 1, 1, 4},
		"the second of the node":    {&j, 1, 3, 2},
		"on the other node":         {&j, 3, 0, 6},
		"a device that it has not":  {&j, 1, 2, core.NoSlice},
		"nor there":                 {&j, 3, 1, core.NoSlice},
		"a node that it has not":    {&j, 2, 1, core.NoSlice},
		"of which nothing is known": {&short, 1, 3, core.NoSlice},
		"nor on the other node":     {&short, 3, 0, core.NoSlice},
	} {
		if got := tc.job.SliceAt(tc.node, tc.device); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
