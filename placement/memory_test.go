package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// What a job is told that there are devices for, and no memory of them.
const (
	shortOfMemory = "there are devices for it, and device memory is short"
	shortOf       = " (" + shortOfMemory + ")"
)

// shared is nodes of a type whose devices have so many gigabytes.
func shared(sharing core.Sharing, memoryGB float64, devices ...int) *core.Cluster {
	b := coretest.MakeCluster()
	for _, n := range devices {
		b = b.Nodes(1, "t4", n)
	}
	c := b.Obj()
	c.Sharing, c.MaxOwners = sharing, 2
	for i := range c.Nodes {
		c.Nodes[i].DeviceMemoryGB = memoryGB
	}
	return c
}

// Who waits for memory of devices is told so, with what each device is to have and the most that enough of them have.
func TestReasonsNameDeviceMemory(t *testing.T) {
	type jobs = []*coretest.JobBuilder
	half := func(gb float64) *coretest.JobBuilder { return waits(1).Share(500).DeviceMemory(gb) }
	on := func(gb float64, seats ...core.Seat) *coretest.JobBuilder {
		return holds(seats...).Share(500).DeviceMemory(gb)
	}
	owner := func(gb float64, seats ...core.Seat) *coretest.JobBuilder { return holds(seats...).DeviceMemory(gb) }
	guest := func(n int, gb float64) *coretest.JobBuilder { return waits(n).DeviceMemory(gb).BestEffort() }
	best, antman := NewBestFit(), NewAntMan()
	cases := map[string]struct {
		placer  core.Factory[core.Placer]
		cluster *core.Cluster
		jobs    jobs
		want    string
	}{
		"a part of a device is left, and too little memory": {best, shared(core.Fractional, 16, 1), jobs{on(12, seat(0, 0)), half(8)}, lines("0: 0[0]", "1: fragmented 8/4"+shortOf)},
		"just enough memory":                    {best, shared(core.Fractional, 16, 1), jobs{on(8, seat(0, 0)), half(8)}, lines("0: 0[0]", "1: 0[0]")},
		"a part of the device is short as well": {best, shared(core.Fractional, 16, 1), jobs{on(12, seat(0, 0)), waits(1).Share(501).DeviceMemory(8)}, lines("0: 0[0]", "1: waiting_for_devices 0.501/0.5")},
		"the most memory that two have": {
			best, shared(core.Fractional, 16, 3),
			jobs{on(12, seat(0, 0)), on(11, seat(0, 1)), on(2, seat(0, 2)), waits(2).Share(500).DeviceMemory(8)},
			lines("0: 0[0]", "1: 0[1]", "2: 0[2]", "3: fragmented 8/5"+shortOf),
		},
		"devices are short on each node, whatever the memory": {
			best, shared(core.Fractional, 16, 2, 2), jobs{holds(seat(0, 0)), holds(seat(1, 0)), waits(2).DeviceMemory(8)}, lines("0: 0[0]", "1: 1[0]", "2: fragmented 2/2"),
		},
		"memory is unknown":                   {best, shared(core.Fractional, 0, 1), jobs{on(12, seat(0, 0)), half(80)}, lines("0: 0[0]", "1: 0[0]")},
		"an owner beside a guest, both large": {antman, shared(core.TimeSlice, 16, 1), jobs{owner(12, seat(0, 0)), guest(1, 8)}, lines("0: 0[0]", "1: fragmented 8/4"+shortOf)},
		"a guest that just fits":              {antman, shared(core.TimeSlice, 16, 1), jobs{owner(8, seat(0, 0)), guest(1, 8)}, lines("0: 0[0]", "1: 0[0]")},
		"no room for a guest at all":          {antman, shared(core.TimeSlice, 16, 1), jobs{holds(seat(0, 0)).DeviceMemory(12).BestEffort(), guest(1, 8)}, lines("0: 0[0]", "1: waiting_for_devices 1/0")},
		"guests want two devices, one has the memory": {
			antman, shared(core.TimeSlice, 16, 1, 1), jobs{owner(12, seat(0, 0)), owner(4, seat(1, 0)), guest(2, 8)}, lines("0: 0[0]", "1: 1[0]", "2: fragmented 8/4"+shortOf),
		},
		"a guaranteed job beside a pinned guest": {
			antman, shared(core.TimeSlice, 16, 1), jobs{holds(seat(0, 0)).DeviceMemory(12).BestEffort().Pinned(), waits(1).DeviceMemory(8)}, lines("0: 0[0]", "1: fragmented 8/4"+shortOf),
		},
		"a guaranteed job larger than a node beside pinned guests": {
			antman, shared(core.TimeSlice, 16, 1, 1), jobs{holds(seat(0, 0)).DeviceMemory(12).BestEffort().Pinned(), waits(2).DeviceMemory(8)}, lines("0: 0[0]", "1: fragmented 8/4"+shortOf),
		},
		"a guaranteed job waits for another": {antman, shared(core.TimeSlice, 16, 1), jobs{owner(12, seat(0, 0)), waits(1).DeviceMemory(8)}, lines("0: 0[0]", "1: waiting_for_devices 1/0")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
			if got := place(t, newPlacer(t, tc.placer, nil), v, inOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Whatever jobs there are beside each other, who is told that device memory is short finds devices enough that have all else, and not with so much memory.
func TestAntManBlamesMemoryThatIsShort(t *testing.T) {
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		cluster := shared(core.TimeSlice, 16, rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "nodes")...)
		cluster.MaxOwners = rapid.IntRange(2, 3).Draw(t, "owners")
		most := rapid.IntRange(1, 2).Draw(t, "opportunistic")
		policy := newPlacer(t, NewAntMan(), map[string]any{"opportunistic_per_device": most})
		var jobs []*coretest.JobBuilder
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			j := waits(rapid.IntRange(1, 3).Draw(t, "replicas")).DeviceMemory(float64(rapid.IntRange(0, 12).Draw(t, "memory")))
			if rapid.Bool().Draw(t, "best effort") {
				j = j.BestEffort()
			}
			jobs = append(jobs, j)
		}
		v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		seating, err := policy.Place(t.Context(), v, inOrder(v))
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

// A job that computes on CPUs alone wants no devices: figures of devices are none of its affair.
func TestReasonsOfJobsWithoutDevices(t *testing.T) {
	counted := shared(core.Fractional, 0, 2)
	counted.CountsResources, counted.Nodes[0].CPUs, counted.Nodes[0].MemoryGB = true, 4, 100
	down := shared(core.Fractional, 0, 2)
	down.Nodes[0].Health = core.Down
	cases := map[string]struct {
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"CPUs are short":           {counted, []*coretest.JobBuilder{waits(1).Share(0).Asks(3, 1), waits(1).Share(0).Asks(2, 1)}, lines("0: 0[0]", "1: fragmented 2/1 (devices are free, and CPUs are short)")},
		"more replicas than seats": {shared(core.Fractional, 0, 2), []*coretest.JobBuilder{waits(3).Share(0)}, "0: waiting_for_devices 3/2 (it takes nothing of devices, and each of its replicas is seated at one)"},
		"no node is up":            {down, []*coretest.JobBuilder{waits(1).Share(0)}, "0: waiting_for_devices 1/0 (it takes nothing of devices, and each of its replicas is seated at one)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
			if got := place(t, newPlacer(t, NewBestFit(), nil), v, inOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
