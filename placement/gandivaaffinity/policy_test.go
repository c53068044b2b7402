package gandivaaffinity

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

func TestGandivaAffinity(t *testing.T) {
	type jobs = []*coretest.JobBuilder
	still := map[string]any{"migrate": false, "defragment": false}
	strict := map[string]any{"migrate": false, "defragment": false, "spread": false}
	cases := map[string]struct {
		config map[string]any
		jobs   jobs
		want   string
	}{
		"on a node of its own affinity before an idle one":     {nil, jobs{policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(1)}, policytest.Lines("0: 1[0]", "1: 1[1]")},
		"on an idle node before one of another affinity":       {nil, jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Waits(2)}, policytest.Lines("0: 0[0]", "1: 1[0,1]")},
		"on one of another affinity, with the least demand":    {nil, jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 1)), policytest.Holds(coretest.Seat(1, 0)), policytest.Holds(coretest.Seat(2, 0, 1, 2, 3)), policytest.Waits(2)}, policytest.Lines("0: 0[0]", "1: 0[1]", "2: 1[0]", "3: 2[0,1,2,3]", "4: 1[1,2]")},
		"of its own affinity the one with the least demand":    {nil, jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 1)), policytest.Holds(coretest.Seat(2, 0)), policytest.Waits(1)}, policytest.Lines("0: 0[0]", "1: 0[1]", "2: 2[0]", "3: 2[1]")},
		"the lowest of several":                                {nil, jobs{policytest.Waits(3)}, "0: 0[0,1,2]"},
		"jobs of two sizes are no affinity":                    {nil, jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 1, 2)), policytest.Waits(1)}, policytest.Lines("0: 0[0]", "1: 0[1,2]", "2: 1[0]")},
		"more than a node has":                                 {nil, jobs{policytest.Waits(6)}, "0: 0[0,1,2,3] 1[0,1]"},
		"from two nodes to one as soon as one has room":        {nil, jobs{policytest.Holds(coretest.Seat(0, 3), coretest.Seat(1, 3)), policytest.Holds(coretest.Seat(0, 0, 1))}, policytest.Lines("0: 0[2,3]", "1: 0[0,1]")},
		"not if it is told not to":                             {still, jobs{policytest.Holds(coretest.Seat(0, 3), coretest.Seat(1, 3)), policytest.Holds(coretest.Seat(0, 0, 1))}, policytest.Lines("0: 0[3] 1[3]", "1: 0[0,1]")},
		"not a pinned one":                                     {nil, jobs{policytest.Holds(coretest.Seat(0, 3), coretest.Seat(1, 3)).Pinned(), policytest.Holds(coretest.Seat(0, 0, 1))}, policytest.Lines("0: 0[3] 1[3]", "1: 0[0,1]")},
		"not while no node has room":                           {nil, jobs{policytest.Holds(coretest.Seat(0, 2, 3), coretest.Seat(1, 2, 3)), policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Holds(coretest.Seat(2, 0))}, policytest.Lines("0: 0[2,3] 1[2,3]", "1: 0[0]", "2: 1[0]", "3: 2[0]")},
		"the smallest make room on the node with most free":    {nil, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2)), policytest.Holds(coretest.Seat(1, 0)), policytest.Holds(coretest.Seat(1, 1)), policytest.Holds(coretest.Seat(2, 0, 1, 2)), policytest.Waits(4)}, policytest.Lines("0: 0[0,1,2]", "1: 0[3]", "2: 2[3]", "3: 2[0,1,2]", "4: 1[0,1,2,3]")},
		"not a pinned one, and it is spread":                   {nil, jobs{policytest.Holds(coretest.Seat(0, 0)).Pinned(), policytest.Holds(coretest.Seat(1, 0)).Pinned(), policytest.Holds(coretest.Seat(2, 0)).Pinned(), policytest.Waits(4)}, policytest.Lines("0: 0[0]", "1: 1[0]", "2: 2[0]", "3: 0[1,2,3] 1[1]")},
		"nobody makes room when told not to, and it is spread": {still, jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Holds(coretest.Seat(2, 0)), policytest.Waits(4)}, policytest.Lines("0: 0[0]", "1: 1[0]", "2: 2[0]", "3: 0[1,2,3] 1[1]")},
		"or it waits for a node":                               {strict, jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Holds(coretest.Seat(2, 0)), policytest.Waits(4)}, policytest.Lines("0: 0[0]", "1: 1[0]", "2: 2[0]", "3: fragmented 4/9")},
		"unless no node could ever hold it":                    {strict, jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Waits(5)}, policytest.Lines("0: 0[0]", "1: 1[0,1,2,3] 0[1]")},
		"where too little is free nobody moves":                {nil, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2)), policytest.Holds(coretest.Seat(1, 0, 1, 2)), policytest.Holds(coretest.Seat(2, 0, 1, 2)), policytest.Waits(4)}, policytest.Lines("0: 0[0,1,2]", "1: 1[0,1,2]", "2: 2[0,1,2]", "3: waiting_for_devices 4/3")},
		"the first cannot be cleared, and all is as it was": {
			nil,
			jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 1, 2)), policytest.Holds(coretest.Seat(1, 0, 1, 2)), policytest.Holds(coretest.Seat(2, 0, 1, 2)), policytest.Waits(3)},
			policytest.Lines("0: 0[0]", "1: 0[1,2]", "2: 1[0,1,2]", "3: 2[0,1,2]", "4: 0[3] 1[3] 2[3]"),
		},
	}
	cluster := coretest.MakeCluster().Nodes(3, "t4", 4).TakesTurns(2, 16).Obj()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(cluster).Jobs(tc.jobs...).Obj()
			if got := policytest.Place(t, policytest.New(t, New(), tc.config), v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Pairs are moved and counted together: a node with two jobs on each device is in twice the demand.
func TestGandivaAffinityOfPairs(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(2, 16).Obj()
	v := coretest.MakeView(cluster).Jobs(policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 1)), policytest.Holds(coretest.Seat(1, 2)), policytest.Waits(1)).Obj()
	want := policytest.Lines("0: 0[0]", "1: 0[0]", "2: 1[1]", "3: 1[2]", "4: 0[1]")
	if got := policytest.Place(t, policytest.New(t, New(), nil), v, policytest.Grouped(v, 1, 1, 0, 0, 0)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	v = coretest.MakeView(cluster).Jobs(policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 1)), policytest.Waits(4)).Obj()
	want = policytest.Lines("0: 1[0]", "1: 1[0]", "2: 1[1]", "3: 0[0,1,2,3]")
	if got := policytest.Place(t, policytest.New(t, New(), nil), v, policytest.Grouped(v, 1, 1, 0, 0)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// One that was stopped comes back to the devices that it had, if they are free, and one that grows or shrinks stays on its node.
func TestGandivaAffinityKeepsPlaces(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
	policy := policytest.New(t, New(), nil)
	put := func(want string, jobs ...*coretest.JobBuilder) {
		t.Helper()
		v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		if got := policytest.Place(t, policy, v, policytest.InOrder(v)); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	put(policytest.Lines("0: 0[0]", "1: 0[1]"), policytest.Waits(1), policytest.Waits(1))
	put(policytest.Lines("1: 0[1]", "0: 0[0]", "2: 0[2]"), policytest.Waits(1), policytest.Holds(coretest.Seat(0, 1)), policytest.Waits(1))
	put(policytest.Lines("2: 0[2]", "0: 0[0]", "1: 0[1]"), policytest.Waits(1), policytest.Waits(1), policytest.Holds(coretest.Seat(0, 2)))
	put(policytest.Lines("1: 0[0,1]", "0: 1[0]", "2: 0[2]"), policytest.Waits(1), policytest.Holds(coretest.Seat(0, 0, 1)), policytest.Waits(1)) // what the first had is taken

	for name, tc := range map[string]struct {
		job      *coretest.JobBuilder
		replicas int
		want     string
	}{
		"grows":            {policytest.Holds(coretest.Seat(1, 2)), 3, policytest.Lines("0: 1[0]", "1: 1[1,2,3]")},
		"shrinks":          {policytest.Holds(coretest.Seat(1, 1, 2, 3)), 2, policytest.Lines("0: 1[0]", "1: 1[1,2]")},
		"grows out of it":  {policytest.Holds(coretest.Seat(1, 2)), 4, policytest.Lines("0: 1[0]", "1: 0[0,1,2,3]")},
		"is of many nodes": {policytest.Holds(coretest.Seat(0, 2), coretest.Seat(1, 2)), 1, policytest.Lines("0: 1[0]", "1: 1[1]")},
	} {
		v := coretest.MakeView(cluster).Jobs(policytest.Holds(coretest.Seat(1, 0)), tc.job).Obj()
		grants := policytest.InOrder(v)
		grants[1].Replicas = tc.replicas
		if got := policytest.Place(t, policytest.New(t, New(), nil), v, grants); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

// Who is seated counts for those after him, and the node with most free devices is cleared first.
func TestGandivaAffinityInOneRound(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"two of a size": {coretest.MakeCluster().Nodes(2, "t4", 4).Obj(), []*coretest.JobBuilder{policytest.Waits(2), policytest.Waits(1), policytest.Waits(1), policytest.Waits(2)}, policytest.Lines("0: 0[0,1]", "1: 1[0]", "2: 1[1]", "3: 0[2,3]")},
		"of nodes of two sizes that with less demand for each device": {
			coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "t4", 8).Obj(),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(1)},
			policytest.Lines("0: 0[0]", "1: 1[0]", "2: 1[1]"),
		},
		"the one with most free": {
			coretest.MakeCluster().Nodes(3, "t4", 4).Obj(),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 1)), policytest.Holds(coretest.Seat(1, 0)), policytest.Holds(coretest.Seat(2, 0, 1, 2)), policytest.Waits(4)},
			policytest.Lines("0: 0[0]", "1: 0[1]", "2: 0[2]", "3: 2[0,1,2]", "4: 1[0,1,2,3]"),
		},
	} {
		v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
		policy := policytest.New(t, New(), nil)
		if got := policytest.Place(t, policy, v, policytest.InOrder(v)); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

// One that moved somebody is asked again.
func TestGandivaAffinityStands(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
	for name, tc := range map[string]struct {
		jobs  []*coretest.JobBuilder
		moves bool
	}{
		"nobody moves":     {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Waits(8)}, false},
		"one began":        {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Waits(3)}, true},
		"one was migrated": {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0), coretest.Seat(1, 0))}, true},
		"one made room":    {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(4)}, true},
	} {
		policy := policytest.New(t, New(), nil)
		v := coretest.MakeView(cluster).Now(60).Jobs(tc.jobs...).Obj()
		policytest.Place(t, policy, v, policytest.InOrder(v))
		if until := policy.(core.Steady).Standing().UntilSeconds; (until <= 60) != tc.moves {
			t.Errorf("%s: stands until %v", name, until)
		}
	}
}

// Those that waited behind one that blocks a type have no devices of it, and a job that ended leaves no memory.
func TestGandivaAffinityBlocksAndForgets(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(1, "t4", 4).Obj()
	policy := policytest.New(t, New(), nil)
	v := coretest.MakeView(cluster).Jobs(policytest.Holds(coretest.Seat(0, 0)), policytest.Waits(4), policytest.Waits(1)).Obj()
	grants := policytest.InOrder(v)
	grants[1].Blocking = true
	if got, want := policytest.Place(t, policy, v, grants), policytest.Lines("0: 0[0]", "1: waiting_for_devices 4/3", "2: blocked_by_earlier 1/3"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	v = coretest.MakeView(cluster).Jobs(policytest.Waits(1), policytest.Waits(1)).Obj()
	policytest.Place(t, policy, v, policytest.InOrder(v))
	v.Jobs[0], v.Active = nil, v.Active[1:]
	policytest.Place(t, policy, v, policytest.InOrder(coretest.MakeView(cluster).Jobs(policytest.Waits(1), policytest.Waits(1)).Obj())[1:])
	last := policy.(*gandivaAffinity).last
	if _, kept := last[0]; kept || len(last[1]) != 1 {
		t.Errorf("remembers %v", last)
	}
}

// While jobs come and go, nobody moves without need: what moved somebody is asked again, and after a few rounds without a change nobody moves.
func TestGandivaAffinitySettles(t *testing.T) {
	some := 0
	rapid.Check(t, func(t *rapid.T) {
		cluster := coretest.MakeCluster().Nodes(4, "t4", 4).Obj()
		policy := policytest.New(t, New(), nil)
		sizes := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 16).Draw(t, "sizes")
		jobs := make([]*coretest.JobBuilder, len(sizes))
		for i, n := range sizes {
			jobs[i] = policytest.Waits(n)
		}
		for round := range 12 {
			v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
			grants := policytest.InOrder(v)
			if round < 6 { // some have no turn
				grants = slices.DeleteFunc(grants, func(core.Grant) bool { return rapid.IntRange(0, 2).Draw(t, "no turn") == 0 })
			}
			seating, err := policy.Place(t.Context(), v, grants)
			if err != nil {
				t.Fatal(err)
			}
			moved := 0
			next := make([]*coretest.JobBuilder, len(sizes))
			for i, n := range sizes {
				next[i] = policytest.Waits(n)
			}
			for _, p := range seating.Placed {
				if j := v.Jobs[p.Job]; j.State == core.Running && !core.SameSeats(j.Seats, p.Seats) {
					moved++
				}
				next[p.Job] = policytest.Holds(append([]core.Seat(nil), p.Seats...)...)
			}
			some += moved
			if until := policy.(core.Steady).Standing().UntilSeconds; moved > 0 && until > 0 {
				t.Fatalf("round %d: %d jobs were moved, and it stands until %v", round, moved, until)
			}
			if jobs = next; round == 11 && moved > 0 {
				t.Fatal("jobs are still moved after five rounds without a change")
			}
		}
	})
	if some == 0 {
		t.Error("nobody was moved")
	}
}
