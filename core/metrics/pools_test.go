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

	s.report(0, core.Report{Events: []core.Event{submission(all[0]), submission(all[1])}, Changes: []core.Change{
		{Action: core.Start, Job: 0, Seats: []core.Seat{seat(0, 0b1), seat(1, 0b11)}}, {Action: core.Start, Job: 1, Seats: []core.Seat{seat(1, 0b100)}},
	}})
	s.report(50, core.Report{Events: []core.Event{ready(40, 2), held, submission(all[3])}})
	s.cluster.Nodes = append(nodes, core.Node{ID: 3, Name: "d", Devices: 4, Pool: "spot"})
	s.report(80, core.Report{
		Events: []core.Event{
			{Kind: core.NodeAdded, AtSeconds: 60, Node: 3, Added: &core.AddedNode{Name: "d", Accelerator: "t4", Devices: 4, Pool: "spot", Health: core.Provisioning}},
			ready(70, 3),
			{Kind: core.NodeChanged, AtSeconds: 75, Node: 1, Health: core.Draining},
			ready(78, 1), // it is paid for all the time
		},
		Changes: []core.Change{{Action: core.Move, Job: 1, Seats: []core.Seat{seat(2, 0b11)}}},
	})
	gone := core.Event{Kind: core.NodeRemoved, AtSeconds: 120, Node: 2}
	s.report(130, core.Report{Events: []core.Event{gone, gone, {Kind: core.JobInterrupted, AtSeconds: 125, Job: 1}}})
	s.report(150, core.Report{
		Events:  []core.Event{{Kind: core.JobShrunk, AtSeconds: 140, Job: 0, Seats: []core.Seat{seat(0, 0b1), seat(1, 0b1)}}},
		Changes: []core.Change{{Action: core.Start, Job: 1, Seats: []core.Seat{seat(3, 0b1111)}}},
	})
	now := &Bill{NodeHours: 310. / 3600, IdleNodeHours: (31.25 + 120) / 3600, Cost: 335, IdleCost: 31.25 + 135}
	if diff := cmp.Diff(now, s.c.SoFar(all, 150).Bill, near); diff != "" {
		t.Errorf("bill at 150 s (-want +got):\n%s", diff)
	}
	all[0].State, all[0].FinishSeconds = core.Completed, 190
	s.report(200, core.Report{
		Events: []core.Event{{Kind: core.JobFinished, AtSeconds: 190, Job: 0}}, Ended: []*core.Job{all[0]},
		Changes: []core.Change{{Action: core.Stop, Job: 2}},
	})
	s.cluster.Nodes = append(s.cluster.Nodes, core.Node{ID: 4, Name: "e", Devices: 2, Pool: "spot"})
	s.report(258, core.Report{Events: []core.Event{
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

// A run that holds no round has a bill, too: of the nodes that were there, as long as it went on.
func TestBillWithoutRounds(t *testing.T) {
	pools := []core.Pool{{Name: "od", Devices: 4, PricePerHour: 3600}, {Name: "spot", Devices: 2}}
	for name, tc := range map[string]struct {
		nodes []core.Node
		end   float64
		want  Bill
	}{
		"it ended at once": {nodes: []core.Node{{Devices: 4, Pool: "od"}}},
		"it went on": {
			nodes: []core.Node{{Devices: 4, Pool: "od"}, {ID: 1, Devices: 4}, {ID: 2, Devices: 4, Pool: "od", Health: core.Provisioning}}, end: 10,
			want: Bill{NodeHours: 10. / 3600, IdleNodeHours: 10. / 3600, Cost: 10, IdleCost: 10},
		},
		"the pools are empty": {end: 10},
	} {
		t.Run(name, func(t *testing.T) {
			var jobs bytes.Buffer
			c := NewCollector(Components{}, Outputs{Jobs: &jobs})
			c.Bill(&core.Cluster{Accelerators: []string{"t4"}, Nodes: tc.nodes, Pools: pools})
			soFar := c.SoFar(nil, tc.end)
			s, err := c.Finish(nil, tc.end)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, s.Bill, near); diff != "" {
				t.Errorf("bill (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(s.Bill, soFar.Bill, near); diff != "" {
				t.Errorf("bill so far (-at the end +so far):\n%s", diff)
			}
			if len(s.Pools) != 2 || s.Pools[0].Cost != tc.want.Cost || s.Pools[1].Cost != 0 {
				t.Errorf("pools: %+v", s.Pools)
			}
			if header := strings.TrimSpace(jobs.String()); header != strings.TrimSpace(jobsHeader)+",cost" {
				t.Errorf("header %q", header)
			}
		})
	}
	c := NewCollector(Components{}, Outputs{})
	c.Bill(&core.Cluster{Nodes: []core.Node{{Devices: 4}}})
	if s := c.SoFar(nil, 10); s.Bill != nil || s.Pools != nil {
		t.Errorf("without pools: %+v, %+v", s.Bill, s.Pools)
	}
}

// Sizes of pools are told after what was decided about jobs, and why if the scaler says so.
func TestSizesAreDecisions(t *testing.T) {
	var decisions bytes.Buffer
	s := newStory(t, Outputs{Decisions: &decisions})
	job := core.NewJob(&core.JobSpec{Name: "a", Requested: 1, TotalWork: 100})
	s.report(20, core.Report{
		Events: []core.Event{submission(job)}, Changes: []core.Change{{Action: core.Start, Seats: []core.Seat{{Devices: 1}}, By: "placement/p"}},
		Scaled: []core.PoolTarget{{Pool: "p", Nodes: 3, Message: "2 \"jobs\" wait"}, {Pool: "q", Remove: []core.NodeID{1}}}, ScaledBy: "scaler/s",
	})
	if _, err := s.c.Finish([]*core.Job{job}, 20); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(decisions.String(), "placement/p\"}\n")
	const want = `{"round":1,"t_s":20,"pool":"p","action":"scale","nodes":3,"message":"2 \"jobs\" wait","by":"scaler/s"}
{"round":1,"t_s":20,"pool":"q","action":"scale","nodes":0,"by":"scaler/s"}
`
	if got != want {
		t.Errorf("got\n%s, want\n%s", decisions.String(), want)
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

// Nodes that go before the first round were there since the run began, but for one that was being provisioned, or gone, then.
func TestBillOfNodesGoneBeforeTheFirstRound(t *testing.T) {
	changed := func(at float64, h core.Health) core.Event {
		return core.Event{Kind: core.NodeChanged, AtSeconds: at, Node: 1, Health: h}
	}
	gone := core.Event{Kind: core.NodeRemoved, AtSeconds: 90, Node: 1}
	comes := submission(core.NewJob(&core.JobSpec{Name: "a", Requested: 1, TotalWork: 100}))
	comes.Node = 1 // of no meaning
	for name, tc := range map[string]struct {
		events []core.Event
		want   float64 // node seconds
	}{
		"taken away":         {[]core.Event{gone}, 90},
		"drained":            {[]core.Event{changed(30, core.Draining), gone}, 90},
		"ready, then gone":   {[]core.Event{changed(30, core.Ready), gone}, 60},
		"gone all the time":  {nil, 0},
		"a job comes before": {[]core.Event{comes, gone}, 90},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, Outputs{})
			s.cluster.Pools = []core.Pool{{Name: "od", Devices: 4, PricePerHour: 3600}}
			s.cluster.Nodes[1].Pool, s.cluster.Nodes[1].Health = "od", core.Gone
			s.report(100, core.Report{Events: tc.events})
			summary, err := s.c.Finish(nil, 200)
			if err != nil {
				t.Fatal(err)
			}
			want := &Bill{NodeHours: Number(tc.want / 3600), IdleNodeHours: Number(tc.want / 3600), Cost: Number(tc.want), IdleCost: Number(tc.want)}
			if diff := cmp.Diff(want, summary.Bill, near); diff != "" {
				t.Errorf("bill (-want +got):\n%s", diff)
			}
		})
	}
}

// A node that leaves before it was ready is not paid for.
func TestBillOfANodeThatWasNeverReady(t *testing.T) {
	s := newStory(t, Outputs{})
	s.cluster.Pools = []core.Pool{{Name: "od", Devices: 4, PricePerHour: 3600}}
	s.cluster.Nodes[1].Pool, s.cluster.Nodes[1].Health = "od", core.Provisioning
	s.report(0, core.Report{})
	s.report(100, core.Report{Events: []core.Event{{Kind: core.NodeChanged, AtSeconds: 50, Node: 1, Health: core.Draining}, {Kind: core.NodeRemoved, AtSeconds: 90, Node: 1}}})
	summary, err := s.c.Finish(nil, 200)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Bill{}, summary.Bill, near); diff != "" {
		t.Errorf("bill (-want +got):\n%s", diff)
	}
}

// What is held of nodes that nobody paid for is no idle nothing: the bill tells that it does not add up.
func TestABillThatDoesNotAddUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ paid, held, want float64 }{
		"nothing":                  {0, 0, 0},
		"nothing is idle":          {7, 7, 0},
		"a part":                   {7, 2, 5},
		"rounding":                 {7, 7 + 7e-10, 0},
		"a little more is a fault": {7, 7 + 7e-6, -7e-6},
		"more than was paid for":   {2, 7, -5},
		"nothing was paid for":     {0, 1e-300, -1e-300},
	} {
		b := &bill{pools: []poolBill{{pool: core.Pool{Name: "p"}, paid: amount{tc.paid * 3600, tc.paid}, held: amount{tc.held * 3600, tc.held}}}}
		list, all := b.use()
		for what, got := range map[string]Number{"cost": list[0].IdleCost, "hours": list[0].IdleNodeHours, "all cost": all.IdleCost, "all hours": all.IdleNodeHours} {
			if math.Abs(float64(got)-tc.want) > 1e-9*math.Abs(tc.want) {
				t.Errorf("%s: idle %s %v, want %v", name, what, got, tc.want)
			}
		}
	}
}

// Who shares the devices of a pool pays his part of them: jobs that take turns alike, and others by their part.
func TestBillOfSharedDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		sharing core.Sharing
		shares  [3]*core.Share
		want    [3]float64
		idle    float64
	}{
		// 0 alone on both devices 20 s, then with 1 on the first 30 s, with 1 and 2 there 10 s; 1 and 2 alone on it 40 s.
		"turns": {sharing: core.TimeSlice, want: [3]float64{20 + 30*0.75 + 10*(0.5+1./6), 30*0.25 + 10./6 + 40*0.25, 10./6 + 40*0.25}, idle: 20},
		"turns beside one that takes nothing": {
			sharing: core.TimeSlice, shares: [3]*core.Share{nil, nil, {}}, want: [3]float64{20 + 40*0.75, 40*0.25 + 40*0.5, 0}, idle: 20,
		},
		"parts": {
			sharing: core.Fractional, shares: [3]*core.Share{{Milli: 500}, {Milli: 250}, {Milli: 250}}, want: [3]float64{30, 10, 6.25}, idle: 53.75,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCollector(testComponents, Outputs{})
			cluster := &core.Cluster{
				Accelerators: []string{"t4"}, Sharing: tc.sharing, MaxOwners: 3,
				Nodes: []core.Node{{Name: "a", Devices: 2, Pool: "p"}}, Pools: []core.Pool{{Name: "p", Devices: 2, PricePerHour: 3600}},
			}
			view := &core.View{Cluster: cluster, Devices: 2}
			for id, share := range tc.shares {
				view.Jobs = append(view.Jobs, core.NewJob(&core.JobSpec{ID: core.JobID(id), Name: string(rune('a' + id)), Requested: 1, TotalWork: 100, Share: share}))
			}
			tell := func(now float64, r core.Report) {
				view.NowSeconds, view.Round = now, view.Round+1
				for i := range r.Changes {
					view.Jobs[r.Changes[i].Job].Seats = r.Changes[i].Seats
				}
				r.View = view
				if err := c.ObserveRound(&r); err != nil {
					t.Fatal(err)
				}
			}
			starts := func(id core.JobID, devices core.DeviceSet) core.Change {
				return core.Change{Action: core.Start, Job: id, Seats: []core.Seat{{Devices: devices}}}
			}
			tell(0, core.Report{Events: []core.Event{submission(view.Jobs[0]), submission(view.Jobs[1]), submission(view.Jobs[2])}, Changes: []core.Change{starts(0, 0b11)}})
			tell(20, core.Report{Changes: []core.Change{starts(1, 0b01)}})
			tell(50, core.Report{Changes: []core.Change{starts(2, 0b01)}})
			if bill := c.SoFar(view.Jobs, 70).Bill; bill.Cost != 70 {
				t.Errorf("a cost of %v at 70 s, want 70", bill.Cost)
			}
			view.Jobs[0].State, view.Jobs[0].FinishSeconds = core.Completed, 60
			tell(60, core.Report{Events: []core.Event{{Kind: core.JobFinished, AtSeconds: 60, Job: 0}}, Ended: view.Jobs[:1]})
			s, err := c.Finish(view.Jobs[1:], 100)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tc.want {
				if got := float64(c.Jobs()[i].Cost); math.Abs(got-want) > 1e-9 {
					t.Errorf("job %d costs %v, want %v", i, got, want)
				}
			}
			if math.Abs(float64(s.Bill.IdleCost)-tc.idle) > 1e-9 || math.Abs(float64(s.Bill.IdleNodeHours)*3600-tc.idle) > 1e-9 {
				t.Errorf("%+v is idle, want %v", s.Bill, tc.idle)
			}
		})
	}
}
