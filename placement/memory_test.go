package placement

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/placement/antman"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// What a job is told that there are devices for, and no memory of them.
const (
	shortOfMemory = "there are devices for it, and device memory is short"
	shortOf       = " (" + shortOfMemory + ")"
)

// Who waits for memory of devices is told so, with what each device is to have and the most that enough of them have.
func TestReasonsNameDeviceMemory(t *testing.T) {
	type jobs = []*coretest.JobBuilder
	half := func(gb float64) *coretest.JobBuilder { return policytest.Waits(1).Share(500).DeviceMemory(gb) }
	on := func(gb float64, seats ...core.Seat) *coretest.JobBuilder {
		return policytest.Holds(seats...).Share(500).DeviceMemory(gb)
	}
	owner := func(gb float64, seats ...core.Seat) *coretest.JobBuilder {
		return policytest.Holds(seats...).DeviceMemory(gb)
	}
	guest := func(n int, gb float64) *coretest.JobBuilder { return policytest.Waits(n).DeviceMemory(gb).BestEffort() }
	best, antman := NewBestFit(), antman.New()
	cases := map[string]struct {
		placer  core.Factory[core.Placer]
		cluster *core.Cluster
		jobs    jobs
		want    string
	}{
		"a part of a device is left, and too little memory": {best, policytest.DevicesWithMemory(core.Fractional, 16, 1), jobs{on(12, coretest.Seat(0, 0)), half(8)}, policytest.Lines("0: 0[0]", "1: fragmented 8/4"+shortOf)},
		"just enough memory":                    {best, policytest.DevicesWithMemory(core.Fractional, 16, 1), jobs{on(8, coretest.Seat(0, 0)), half(8)}, policytest.Lines("0: 0[0]", "1: 0[0]")},
		"a part of the device is short as well": {best, policytest.DevicesWithMemory(core.Fractional, 16, 1), jobs{on(12, coretest.Seat(0, 0)), policytest.Waits(1).Share(501).DeviceMemory(8)}, policytest.Lines("0: 0[0]", "1: waiting_for_devices 0.501/0.5")},
		"the most memory that two have": {
			best, policytest.DevicesWithMemory(core.Fractional, 16, 3),
			jobs{on(12, coretest.Seat(0, 0)), on(11, coretest.Seat(0, 1)), on(2, coretest.Seat(0, 2)), policytest.Waits(2).Share(500).DeviceMemory(8)},
			policytest.Lines("0: 0[0]", "1: 0[1]", "2: 0[2]", "3: fragmented 8/5"+shortOf),
		},
		"devices are short on each node, whatever the memory": {
			best, policytest.DevicesWithMemory(core.Fractional, 16, 2, 2), jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(2).DeviceMemory(8)}, policytest.Lines("0: 0[0]", "1: 1[0]", "2: fragmented 2/2"),
		},
		"memory is unknown":                   {best, policytest.DevicesWithMemory(core.Fractional, 0, 1), jobs{on(12, coretest.Seat(0, 0)), half(80)}, policytest.Lines("0: 0[0]", "1: 0[0]")},
		"an owner beside a guest, both large": {antman, policytest.DevicesWithMemory(core.TimeSlice, 16, 1), jobs{owner(12, coretest.Seat(0, 0)), guest(1, 8)}, policytest.Lines("0: 0[0]", "1: fragmented 8/4"+shortOf)},
		"a guest that just fits":              {antman, policytest.DevicesWithMemory(core.TimeSlice, 16, 1), jobs{owner(8, coretest.Seat(0, 0)), guest(1, 8)}, policytest.Lines("0: 0[0]", "1: 0[0]")},
		"no room for a guest at all":          {antman, policytest.DevicesWithMemory(core.TimeSlice, 16, 1), jobs{policytest.Holds(coretest.Seat(0, 0)).DeviceMemory(12).BestEffort(), guest(1, 8)}, policytest.Lines("0: 0[0]", "1: waiting_for_devices 1/0")},
		"guests want two devices, one has the memory": {
			antman, policytest.DevicesWithMemory(core.TimeSlice, 16, 1, 1), jobs{owner(12, coretest.Seat(0, 0)), owner(4, coretest.Seat(1, 0)), guest(2, 8)}, policytest.Lines("0: 0[0]", "1: 1[0]", "2: fragmented 8/4"+shortOf),
		},
		"a guaranteed job beside a pinned guest": {
			antman, policytest.DevicesWithMemory(core.TimeSlice, 16, 1), jobs{policytest.Holds(coretest.Seat(0, 0)).DeviceMemory(12).BestEffort().Pinned(), policytest.Waits(1).DeviceMemory(8)}, policytest.Lines("0: 0[0]", "1: fragmented 8/4"+shortOf),
		},
		"a guaranteed job larger than a node beside pinned guests": {
			antman, policytest.DevicesWithMemory(core.TimeSlice, 16, 1, 1), jobs{policytest.Holds(coretest.Seat(0, 0)).DeviceMemory(12).BestEffort().Pinned(), policytest.Waits(2).DeviceMemory(8)}, policytest.Lines("0: 0[0]", "1: fragmented 8/4"+shortOf),
		},
		"a guaranteed job waits for another": {antman, policytest.DevicesWithMemory(core.TimeSlice, 16, 1), jobs{owner(12, coretest.Seat(0, 0)), policytest.Waits(1).DeviceMemory(8)}, policytest.Lines("0: 0[0]", "1: waiting_for_devices 1/0")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
			if got := policytest.Place(t, policytest.New(t, tc.placer, nil), v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A job that computes on CPUs alone wants no devices: figures of devices are none of its affair.
func TestReasonsOfJobsWithoutDevices(t *testing.T) {
	counted := policytest.DevicesWithMemory(core.Fractional, 0, 2)
	counted.CountsResources, counted.Nodes[0].CPUs, counted.Nodes[0].MemoryGB = true, 4, 100
	down := policytest.DevicesWithMemory(core.Fractional, 0, 2)
	down.Nodes[0].Health = core.Down
	cases := map[string]struct {
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"CPUs are short":           {counted, []*coretest.JobBuilder{policytest.Waits(1).Share(0).Asks(3, 1), policytest.Waits(1).Share(0).Asks(2, 1)}, policytest.Lines("0: 0[0]", "1: fragmented 2/1 (devices are free, and CPUs are short)")},
		"more replicas than seats": {policytest.DevicesWithMemory(core.Fractional, 0, 2), []*coretest.JobBuilder{policytest.Waits(3).Share(0)}, "0: waiting_for_devices 3/2 (it takes nothing of devices, and each of its replicas is seated at one)"},
		"no node is up":            {down, []*coretest.JobBuilder{policytest.Waits(1).Share(0)}, "0: waiting_for_devices 1/0 (it takes nothing of devices, and each of its replicas is seated at one)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
			if got := policytest.Place(t, policytest.New(t, NewBestFit(), nil), v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
