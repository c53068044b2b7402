package metrics

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// Node a belongs to no pool. A node of pool od costs 1 a second, and one of spot 0.5, and 2 from 100 s on.
//
//	  0 s  job 0 starts on one device of a and two of b; job 1 on another of b; c is being provisioned
//	 40 s  c is ready
//	 45 s  job 2 is submitted, and has a device of b already
//	 70 s  d is ready, which was asked for at 60 s
//	 80 s  job 1 moves to c
//	120 s  c is taken away, told twice, and job 1 with it, told later
//	140 s  job 0 shrinks to one device of b
//	150 s  job 1 starts on d
//	190 s  job 0 ends
//	200 s  job 2 is stopped
//	250 s  e is ready: spot has two nodes again
//	256 s  b goes
//	260 s  the run is cut short
func TestBill(t *testing.T) {
	var jobs bytes.Buffer
	s := newStory(t, Outputs{Jobs: &jobs})
	s.cluster.Pools = []core.Pool{
		{Name: "od", Devices: 4, PricePerHour: 3600},
		{Name: "spot", Devices: 2, PricePerHour: 1800, Prices: []core.Price{{FromSeconds: 100, PerHour: 7200}}},
	}
	nodes := s.cluster.Nodes
	nodes[1].Pool, nodes[2].Pool, nodes[2].Health = "od", "spot", core.Provisioning
	var all []*core.Job
	for id := range core.JobID(4) {
		all = append(all, core.NewJob(&core.JobSpec{ID: id, Name: string(rune('a' + id)), Requested: 1, TotalWork: 100}))
	}
	seat := func(node core.NodeID, devices core.DeviceSet) core.Seat {
		return core.Seat{Node: node, Devices: devices}
	}
	ready := func(at float64, id core.NodeID) core.Event {
		return core.Event{Kind: core.NodeChanged, AtSeconds: at, Node: id, Health: core.Ready}
	}
	held := submission(all[2])
	held.AtSeconds, held.Held = 45, &core.Held{Seats: []core.Seat{seat(1, 0b1000)}}

	s.tell(0, core.Report{Events: []core.Event{submission(all[0]), submission(all[1])}, Changes: []core.Change{
		{Action: core.Start, Job: 0, Seats: []core.Seat{seat(0, 0b1), seat(1, 0b11)}}, {Action: core.Start, Job: 1, Seats: []core.Seat{seat(1, 0b100)}},
	}})
	s.tell(50, core.Report{Events: []core.Event{ready(40, 2), held, submission(all[3])}})
	s.cluster.Nodes = append(nodes, core.Node{ID: 3, Name: "d", Devices: 4, Pool: "spot"})
	s.tell(80, core.Report{
		Events: []core.Event{
			{Kind: core.NodeAdded, AtSeconds: 60, Node: 3, Added: &core.AddedNode{Name: "d", Accelerator: "t4", Devices: 4, Pool: "spot", Health: core.Provisioning}},
			ready(70, 3),
			{Kind: core.NodeChanged, AtSeconds: 75, Node: 1, Health: core.Draining},
			ready(78, 1), // it is paid for all the time
		},
		Changes: []core.Change{{Action: core.Move, Job: 1, Seats: []core.Seat{seat(2, 0b11)}}},
	})
	gone := core.Event{Kind: core.NodeRemoved, AtSeconds: 120, Node: 2}
	s.tell(130, core.Report{Events: []core.Event{gone, gone, {Kind: core.JobInterrupted, AtSeconds: 125, Job: 1}}})
	s.tell(150, core.Report{
		Events:  []core.Event{{Kind: core.JobShrunk, AtSeconds: 140, Job: 0, Seats: []core.Seat{seat(0, 0b1), seat(1, 0b1)}}},
		Changes: []core.Change{{Action: core.Start, Job: 1, Seats: []core.Seat{seat(3, 0b1111)}}},
	})
	now := &Bill{NodeHours: 310. / 3600, IdleNodeHours: (31.25 + 120) / 3600, Cost: 335, IdleCost: 31.25 + 135}
	if diff := cmp.Diff(now, s.c.SoFar(all, 150).Bill, near); diff != "" {
		t.Errorf("bill at 150 s (-want +got):\n%s", diff)
	}
	all[0].State, all[0].FinishSeconds = core.Completed, 190
	s.tell(200, core.Report{
		Events: []core.Event{{Kind: core.JobFinished, AtSeconds: 190, Job: 0}}, Ended: []*core.Job{all[0]},
		Changes: []core.Change{{Action: core.Stop, Job: 2}},
	})
	s.cluster.Nodes = append(s.cluster.Nodes, core.Node{ID: 4, Name: "e", Devices: 2, Pool: "spot"})
	s.tell(258, core.Report{Events: []core.Event{
		{Kind: core.NodeAdded, AtSeconds: 250, Node: 4, Added: &core.AddedNode{Name: "e", Accelerator: "t4", Devices: 2, Pool: "spot"}},
		{Kind: core.NodeRemoved, AtSeconds: 256, Node: 1},
	}})
	summary, err := s.c.Finish(all[1:], 260)
	if err != nil {
		t.Fatal(err)
	}

	wantPools := []PoolUse{
		{Pool: "od", MostNodes: 1, Changes: 1, NodeHours: 256. / 3600, IdleNodeHours: 114.75 / 3600, Cost: 256, IdleCost: 114.75},
		{Pool: "spot", MostNodes: 2, Changes: 4, NodeHours: 280. / 3600, IdleNodeHours: 130. / 3600, Cost: 425, IdleCost: 155},
	}
	if diff := cmp.Diff(wantPools, summary.Pools, near); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	wantBill := &Bill{NodeHours: 536. / 3600, IdleNodeHours: 244.75 / 3600, Cost: 681, IdleCost: 269.75}
	if diff := cmp.Diff(wantBill, summary.Bill, near); diff != "" {
		t.Errorf("bill (-want +got):\n%s", diff)
	}
	read, err := ReadJobs(strings.NewReader(jobs.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{82.5, 290, 38.75, 0} {
		if got := float64(read[i].Cost); math.Abs(got-want) > 1e-9 || s.c.Jobs()[i].Cost != read[i].Cost {
			t.Errorf("job %d costs %v, and %v in jobs.csv, want %v", i, s.c.Jobs()[i].Cost, got, want)
		}
	}
	if header, _, _ := strings.Cut(jobs.String(), "\n"); header != strings.TrimSpace(jobsHeader)+",cost" {
		t.Errorf("header %q", header)
	}
}

var near = cmp.Comparer(func(a, b Number) bool { return math.Abs(float64(a-b)) < 1e-12 })

// A job without a cost is one of a run without pools; what is no number is refused.
func TestReadCosts(t *testing.T) {
	const row = "0,a,b,2,,,,,,0,0,unfinished"
	for name, tc := range map[string]struct{ header, row, want string }{
		"none":      {jobsHeader, row, ""},
		"one":       {more{pools: &bill{}}.header(), row + ",1.5", ""},
		"no number": {more{pools: &bill{}}.header(), row + ",cheap", `row 2, cost: "cheap" is no number of at least 0`},
		"empty":     {more{pools: &bill{}}.header(), row + ",", `row 2, cost: "" is no number of at least 0`},
	} {
		jobs, err := ReadJobs(strings.NewReader(tc.header + tc.row + "\n"))
		switch {
		case tc.want != "" && (err == nil || err.Error() != tc.want):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		case tc.want == "" && (err != nil || jobs[0].Cost != map[string]Number{"none": 0, "one": 1.5}[name]):
			t.Errorf("%s: %+v, %v", name, jobs, err)
		}
	}
}
