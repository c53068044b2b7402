package placement

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// ragged is four nodes of four devices, of which 1, 3, 4 and 2 are free beside job 0.
func ragged(jobs ...*coretest.JobBuilder) *core.View {
	occupant := policytest.Holds(coretest.Seat(0, 0, 1, 2), coretest.Seat(1, 0), coretest.Seat(3, 0, 2))
	return coretest.MakeView(coretest.MakeCluster().Nodes(4, "t4", 4).Obj()).Jobs(append([]*coretest.JobBuilder{occupant}, jobs...)...).Obj()
}

func TestChoices(t *testing.T) {
	strict := map[string]any{"strict": true}
	cases := map[string]struct {
		factory core.Factory[core.Placer]
		config  map[string]any
		jobs    []*coretest.JobBuilder
		want    string // without the line of job 0, which stays
	}{
		"first_fit takes node by node":       {NewFirstFit(), nil, []*coretest.JobBuilder{policytest.Waits(5), policytest.Waits(2)}, policytest.Lines("1: 0[3] 1[1,2,3] 2[0]", "2: 2[1,2]")},
		"first_fit needs only the count":     {NewFirstFit(), nil, []*coretest.JobBuilder{policytest.Waits(10)}, "1: 0[3] 1[1,2,3] 2[0,1,2,3] 3[1,3]"},
		"consolidated fits tightest":         {NewConsolidated(), nil, []*coretest.JobBuilder{policytest.Waits(2), policytest.Waits(1), policytest.Waits(3)}, policytest.Lines("1: 3[1,3]", "2: 0[3]", "3: 1[1,2,3]")},
		"consolidated takes whole nodes":     {NewConsolidated(), nil, []*coretest.JobBuilder{policytest.Waits(5)}, "1: 2[0,1,2,3] 0[3]"},
		"consolidated takes the fewest":      {NewConsolidated(), nil, []*coretest.JobBuilder{policytest.Waits(6)}, "1: 2[0,1,2,3] 3[1,3]"},
		"consolidated spreads if it must":    {NewConsolidated(), nil, []*coretest.JobBuilder{policytest.Waits(8)}, "1: 2[0,1,2,3] 1[1,2,3] 0[3]"},
		"strict does not":                    {NewConsolidated(), strict, []*coretest.JobBuilder{policytest.Waits(8), policytest.Waits(4)}, policytest.Lines("2: 2[0,1,2,3]", "1: fragmented 8/10")},
		"strict refuses all that is left":    {NewConsolidated(), strict, []*coretest.JobBuilder{policytest.Waits(10)}, "1: fragmented 10/10"},
		"strict spreads over the fewest":     {NewConsolidated(), strict, []*coretest.JobBuilder{policytest.Waits(7)}, "1: 2[0,1,2,3] 1[1,2,3]"},
		"most_free empties the emptiest":     {NewMostFree(), nil, []*coretest.JobBuilder{policytest.Waits(1), policytest.Waits(6)}, policytest.Lines("1: 2[0]", "2: 1[1,2,3] 2[1,2,3]")},
		"most_free visits in order of free":  {NewMostFree(), nil, []*coretest.JobBuilder{policytest.Waits(9)}, "1: 2[0,1,2,3] 1[1,2,3] 3[1,3]"},
		"skewed applications consolidate":    {NewTiresiasSkew(), map[string]any{"skewed": []any{"vgg"}}, []*coretest.JobBuilder{policytest.Waits(8).Application("vgg"), policytest.Waits(4).Application("vgg"), policytest.Waits(4).Application("lstm")}, policytest.Lines("2: 2[0,1,2,3]", "3: 0[3] 1[1,2,3]", "1: fragmented 8/10")},
		"count lacking":                      {NewFirstFit(), nil, []*coretest.JobBuilder{policytest.Waits(11), policytest.Waits(9), policytest.Waits(2)}, policytest.Lines("2: 0[3] 1[1,2,3] 2[0,1,2,3] 3[1]", "1: waiting_for_devices 11/10", "3: waiting_for_devices 2/1")},
		"no node of the type":                {NewFirstFit(), nil, []*coretest.JobBuilder{policytest.Waits(1).Accelerators("h100")}, "1: accelerator_missing 1/0"},
		"tail_eviction takes what is free":   {NewTailEviction(), nil, []*coretest.JobBuilder{policytest.Waits(5)}, "1: 0[3] 1[1,2,3] 2[0]"},
		"prefix_sum needs the exact sum":     {NewTailEviction(), map[string]any{"fit": prefixSum}, []*coretest.JobBuilder{policytest.Waits(4)}, "1: 0[3] 1[1,2,3]"},
		"prefix_sum fails on an inexact one": {NewTailEviction(), map[string]any{"fit": prefixSum}, []*coretest.JobBuilder{policytest.Waits(3)}, "1: fragmented 3/10"},
		"prefix_sum takes at most the need":  {NewTailEviction(), map[string]any{"fit": prefixSum}, []*coretest.JobBuilder{policytest.Waits(1), policytest.Waits(3), policytest.Waits(2)}, policytest.Lines("1: 0[3]", "2: 1[1,2,3]", "3: 2[0,1]")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := ragged(tc.jobs...)
			want := policytest.Lines("0: 0[0,1,2] 1[0] 3[0,2]", tc.want)
			if got := policytest.Place(t, policytest.New(t, tc.factory, tc.config), v, policytest.InOrder(v)); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestRunningJobsStay(t *testing.T) {
	nodes := func(h core.Health) *core.Cluster {
		return coretest.MakeCluster().Nodes(2, "t4", 4).Health(0, h).Obj()
	}
	cases := map[string]struct {
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		grants  []core.Grant
		want    string
	}{
		"whoever comes first": {
			nodes(core.Ready),
			[]*coretest.JobBuilder{policytest.Waits(4), policytest.Holds(coretest.Seat(0, 1, 2))},
			[]core.Grant{{Job: 0, Accelerator: -1, Replicas: 4}, {Job: 1, Accelerator: -1, Replicas: 2}},
			policytest.Lines("1: 0[1,2]", "0: 0[0,3] 1[0,1]"),
		},
		"but not on a node that is draining": {
			nodes(core.Draining),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0, 1))},
			[]core.Grant{{Job: 0, Accelerator: -1, Replicas: 2}},
			"0: 1[0,1]",
		},
		"nor with another number": {
			nodes(core.Ready),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 0, 1))},
			[]core.Grant{{Job: 0, Accelerator: -1, Replicas: 3}},
			"0: 0[0,1,2]",
		},
		"what is not granted is free": {
			nodes(core.Ready),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)), policytest.Waits(8)},
			[]core.Grant{{Job: 1, Accelerator: -1, Replicas: 8}},
			"1: 0[0,1,2,3] 1[0,1,2,3]",
		},
		"a blocking grant stops those that wait": {
			nodes(core.Ready),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(0, 1)), policytest.Waits(8), policytest.Waits(7), policytest.Waits(1)},
			[]core.Grant{{Job: 2, Accelerator: -1, Replicas: 8, Blocking: true}, {Job: 0, Accelerator: -1, Replicas: 1}, {Job: 1, Accelerator: -1, Replicas: 2}, {Job: 3, Accelerator: -1, Replicas: 7}, {Job: 4, Accelerator: -1, Replicas: 1}},
			policytest.Lines("0: 0[0]", "1: 0[1,2]", "2: waiting_for_devices 8/7", "3: waiting_for_devices 7/5", "4: blocked_by_earlier 1/5"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
			if got := policytest.Place(t, policytest.New(t, NewFirstFit(), nil), v, tc.grants); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Four a100 of which one is free, and four t4 that are all free. Job 1 waits for a100 and keeps its turn there, not on t4.
func TestABlockingGrantBlocksTheTypesItCouldUse(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(1, "a100", 4).Nodes(1, "t4", 4).Obj()
	cases := map[string]struct {
		jobs []*coretest.JobBuilder
		want string
	}{
		"others on its type wait": {
			[]*coretest.JobBuilder{policytest.Waits(2).Accelerators("a100"), policytest.Waits(1).Accelerators("a100")},
			policytest.Lines("1: waiting_for_devices 2/1", "2: blocked_by_earlier 1/1"),
		},
		"on another type nobody waits": {
			[]*coretest.JobBuilder{policytest.Waits(2).Accelerators("a100"), policytest.Waits(3).Accelerators("t4"), policytest.Waits(1)},
			policytest.Lines("2: 1[0,1,2]", "3: 1[3]", "1: waiting_for_devices 2/1"),
		},
		"one that can use either takes the open type": {
			[]*coretest.JobBuilder{policytest.Waits(2).Accelerators("a100"), policytest.Waits(1)},
			policytest.Lines("2: 1[0]", "1: waiting_for_devices 2/1"),
		},
		"one that mixes types takes nothing of the closed one": {
			[]*coretest.JobBuilder{policytest.Waits(2).Accelerators("a100"), policytest.Waits(5).MixesTypes()},
			policytest.Lines("1: waiting_for_devices 2/1", "2: waiting_for_devices 5/4"),
		},
		"one that could use both blocks both": {
			[]*coretest.JobBuilder{policytest.Waits(5), policytest.Waits(1).Accelerators("t4")},
			policytest.Lines("1: waiting_for_devices 5/4", "2: blocked_by_earlier 1/4"),
		},
	}
	for name, tc := range cases {
		for _, f := range []core.Factory[core.Placer]{NewFirstFit(), NewConsolidated(), NewProposed()} {
			t.Run(name+", "+f.Type, func(t *testing.T) {
				v := coretest.MakeView(cluster).Jobs(append([]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0, 1, 2)).Accelerators("a100")}, tc.jobs...)...).Obj()
				grants := policytest.InOrder(v)
				for i := range grants {
					grants[i].Blocking = true
				}
				if got, want := policytest.Place(t, policytest.New(t, f, nil), v, grants), policytest.Lines("0: 0[0,1,2]", tc.want); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// A turn is kept for a round: when the job that waits is gone, so is its turn.
func TestATurnEndsWithItsRound(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(policytest.Waits(5), policytest.Waits(1)).Obj()
	policy := policytest.New(t, NewFirstFit(), nil)
	grants := policytest.InOrder(v)
	grants[0].Blocking = true
	if got, want := policytest.Place(t, policy, v, grants), policytest.Lines("0: waiting_for_devices 5/4", "1: blocked_by_earlier 1/4"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := policytest.Place(t, policy, v, grants[1:]), "1: 0[0]"; got != want {
		t.Errorf("in the next round got\n%s\nwant\n%s", got, want)
	}
}

// The fewest nodes are those of the type that are ready: a larger one that is down, or of another type, is none of them.
func TestStrictCountsTheNodesThatAreReady(t *testing.T) {
	cluster := func() *coretest.ClusterBuilder {
		return coretest.MakeCluster().Nodes(1, "t4", 8).Nodes(2, "t4", 4).Nodes(1, "a100", 8)
	}
	cases := map[string]struct {
		health   core.Health
		unusable core.DeviceSet
		want     string
	}{
		"ready":    {core.Ready, 0, policytest.Lines("1: 0[0,1,2,3,4,5,6,7]")},
		"draining": {core.Draining, 0, policytest.Lines("1: 1[0,1,2,3] 2[0,1,2,3]")},
		"down":     {core.Down, 0, policytest.Lines("1: 1[0,1,2,3] 2[0,1,2,3]")},
		"gone":     {core.Gone, 0, policytest.Lines("1: 1[0,1,2,3] 2[0,1,2,3]")},
		"broken":   {core.Ready, 0b0111_1000, policytest.Lines("1: 1[0,1,2,3] 0[0,1,2,7]")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			other := policytest.Holds(coretest.Seat(3, 0)).Accelerators("a100")
			c := cluster().Health(0, tc.health).Obj()
			c.Nodes[0].Unusable = tc.unusable
			v := coretest.MakeView(c).Jobs(other, policytest.Waits(8).Accelerators("t4")).Obj()
			policy := policytest.New(t, NewConsolidated(), map[string]any{"strict": true})
			if got, want := policytest.Place(t, policy, v, policytest.InOrder(v)), policytest.Lines("0: 3[0]", tc.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Node 0 and 1 are of type a100, 2 and 3 of type t4, each with two devices.
func TestTypesAreNotMixed(t *testing.T) {
	cases := map[string]struct {
		job   *coretest.JobBuilder
		grant core.Grant
		want  string
	}{
		"the lowest type that holds the job": {policytest.Waits(4), core.Grant{Accelerator: core.AnyAccelerator, Replicas: 4}, "0: 2[0,1] 3[0,1]"},
		"the granted type only":              {policytest.Waits(2), core.Grant{Accelerator: 1, Replicas: 2}, "0: 2[0,1]"},
		"a type that the job can run on":     {policytest.Waits(2).Accelerators("t4"), core.Grant{Accelerator: core.AnyAccelerator, Replicas: 2}, "0: 2[0,1]"},
		"never both":                         {policytest.Waits(5), core.Grant{Accelerator: core.AnyAccelerator, Replicas: 5}, "0: waiting_for_devices 5/4"},
		"the other type is no help":          {policytest.Waits(4), core.Grant{Accelerator: 0, Replicas: 4}, "0: waiting_for_devices 4/3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(1, "a100", 2).Nodes(1, "a100", 1).Nodes(2, "t4", 2).Obj()
			v := coretest.MakeView(cluster).Jobs(tc.job).Obj()
			for _, f := range []core.Factory[core.Placer]{NewFirstFit(), NewConsolidated(), NewMostFree(), NewTailEviction()} {
				if got := policytest.Place(t, policytest.New(t, f, nil), v, []core.Grant{tc.grant}); got != tc.want {
					t.Errorf("%s: got %q, want %q", f.Type, got, tc.want)
				}
			}
		})
	}
}

// Nodes 0 to 3 are of type a100 with one device each, 4 and 5 of type t4 with two, and 6 of type v100 with three.
func TestConsolidatingChoosesTheTypeOnTheFewestNodes(t *testing.T) {
	strict, skewed := map[string]any{"strict": true}, map[string]any{"skewed": []any{"vgg"}}
	cases := map[string]struct {
		factory core.Factory[core.Placer]
		config  map[string]any
		job     *coretest.JobBuilder
		grant   core.Grant
		want    string
	}{
		"one node rather than two":         {NewConsolidated(), nil, policytest.Waits(2), core.Grant{Replicas: 2}, "0: 4[0,1]"},
		"two rather than four":             {NewConsolidated(), nil, policytest.Waits(4), core.Grant{Replicas: 4}, "0: 4[0,1] 5[0,1]"},
		"of equal ones the lowest":         {NewConsolidated(), nil, policytest.Waits(1), core.Grant{Replicas: 1}, "0: 0[0]"},
		"not one it cannot run on":         {NewConsolidated(), nil, policytest.Waits(3).Accelerators("t4", "a100"), core.Grant{Replicas: 3}, "0: 4[0,1] 5[0]"},
		"strict":                           {NewConsolidated(), strict, policytest.Waits(3), core.Grant{Replicas: 3}, "0: 6[0,1,2]"},
		"proposed without a proposal":      {NewProposed(), nil, policytest.Waits(3), core.Grant{Replicas: 3}, "0: 6[0,1,2]"},
		"a skewed application":             {NewTiresiasSkew(), skewed, policytest.Waits(2).Application("vgg"), core.Grant{Replicas: 2}, "0: 4[0,1]"},
		"one that is not takes the lowest": {NewTiresiasSkew(), skewed, policytest.Waits(2), core.Grant{Replicas: 2}, "0: 0[0] 1[0]"},
		"first_fit takes the lowest":       {NewFirstFit(), nil, policytest.Waits(2), core.Grant{Replicas: 2}, "0: 0[0] 1[0]"},
		"most_free takes the lowest":       {NewMostFree(), nil, policytest.Waits(2), core.Grant{Replicas: 2}, "0: 0[0] 1[0]"},
		"tail_eviction takes the lowest":   {NewTailEviction(), nil, policytest.Waits(2), core.Grant{Replicas: 2}, "0: 0[0] 1[0]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(4, "a100", 1).Nodes(2, "t4", 2).Nodes(1, "v100", 3).Obj()
			v := coretest.MakeView(cluster).Jobs(tc.job).Obj()
			tc.grant.Accelerator = core.AnyAccelerator
			if got := policytest.Place(t, policytest.New(t, tc.factory, tc.config), v, []core.Grant{tc.grant}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Seats tried on one type are free again once another is chosen.
func TestWhatIsNotChosenStaysFree(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "a100", 1).Nodes(1, "t4", 2).Obj()
	v := coretest.MakeView(cluster).Jobs(policytest.Waits(2), policytest.Waits(1), policytest.Waits(1), policytest.Waits(1)).Obj()
	want := policytest.Lines("0: 2[0,1]", "1: 0[0]", "2: 1[0]", "3: waiting_for_devices 1/0")
	if got := policytest.Place(t, policytest.New(t, NewConsolidated(), nil), v, policytest.InOrder(v)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// No seating of a consolidated job uses more nodes than the best subset of the nodes of a type would.
func TestConsolidatedUsesTheFewestNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := coretest.MakeCluster()
		sizes, free := map[string][]int{}, map[string][]int{} // devices of each node, by type
		occupied := map[string][]core.Seat{}
		nodes := rapid.IntRange(1, 9).Draw(t, "nodes")
		for i := range nodes {
			accelerator := rapid.SampledFrom([]string{"t4", "v100"}).Draw(t, "type")
			size := rapid.IntRange(1, 8).Draw(t, "size")
			idle := rapid.IntRange(0, size).Draw(t, "free")
			cluster.Nodes(1, accelerator, size)
			sizes[accelerator], free[accelerator] = append(sizes[accelerator], size), append(free[accelerator], idle)
			if idle < size {
				occupied[accelerator] = append(occupied[accelerator], core.Seat{Node: core.NodeID(i), Devices: core.FirstDevices(size - idle)})
			}
		}
		n := rapid.IntRange(1, 24).Draw(t, "replicas")
		jobs := []*coretest.JobBuilder{policytest.Waits(n)}
		for _, accelerator := range []string{"t4", "v100"} {
			if seats := occupied[accelerator]; len(seats) > 0 {
				jobs = append(jobs, policytest.Holds(seats...))
			}
		}
		v := coretest.MakeView(cluster.Obj()).Jobs(jobs...).Obj()
		for _, strict := range []bool{false, true} {
			seating, err := policytest.New(t, NewConsolidated(), map[string]any{"strict": strict}).Place(context.Background(), v, policytest.InOrder(v))
			if err != nil {
				t.Fatal(err)
			}
			used, want := none, none
			for _, p := range seating.Placed {
				if p.Job == 0 {
					used = len(p.Seats)
				}
			}
			for accelerator := range sizes {
				if needed := fewest(free[accelerator], n); !strict || needed == fewest(sizes[accelerator], n) {
					want = min(want, needed)
				}
			}
			if used != want {
				t.Fatalf("strict %v: %d replicas on %d nodes, want %d, of free %v and sizes %v", strict, n, used, want, free, sizes)
			}
		}
	})
}

// none is more nodes than there are: the job is not seated.
const none = 100

// fewest is the least number of nodes, of which these devices can be had, that hold n replicas.
func fewest(devices []int, n int) int {
	best := none
	for subset := range 1 << len(devices) {
		sum, used := 0, 0
		for i, d := range devices {
			if subset>>i&1 == 1 {
				sum, used = sum+d, used+1
			}
		}
		if sum >= n {
			best = min(best, used)
		}
	}
	return best
}

// Two types of two devices each. A job that mixes types has several only where no one type would ever do.
func TestTypesAreMixedWhereOneIsTooSmall(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 1).Nodes(1, "v100", 2).Obj()
	cases := map[string]struct {
		jobs []*coretest.JobBuilder
		want string
	}{
		"a job larger than any type": {[]*coretest.JobBuilder{policytest.Waits(3).MixesTypes()}, "0: 0[0] 1[0] 2[0]"},
		"one that fits on a type":    {[]*coretest.JobBuilder{policytest.Waits(2).MixesTypes()}, "0: 2[0,1]"},
		"one that will":              {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(2, 0)), policytest.Waits(2).MixesTypes()}, policytest.Lines("0: 0[0]", "1: 2[0]", "2: waiting_for_devices 2/1")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(cluster).Jobs(tc.jobs...).Obj()
			if got := policytest.Place(t, policytest.New(t, NewConsolidated(), nil), v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
	v := coretest.MakeView(cluster).Jobs(policytest.Waits(4).MixesTypes()).Obj()
	if got, want := policytest.Place(t, policytest.New(t, NewFirstFit(), nil), v, policytest.InOrder(v)), "0: 0[0] 1[0] 2[0,1]"; got != want {
		t.Errorf("first_fit: got\n%s\nwant\n%s", got, want)
	}
}

// A node that is idle goes before a larger one with as many free devices, not before one with more.
func TestIdleNodesGoFirstAmongEqualOnes(t *testing.T) {
	all := func(n int) (devices []int) {
		for d := range n {
			devices = append(devices, d)
		}
		return devices
	}
	cases := map[string]struct {
		sizes, used []int // of each node
		want        string
	}{
		"the idle one is later":          {[]int{8, 4}, []int{4, 0}, "1: 1[0,1,2,3] 0[4]"},
		"the idle one is earlier":        {[]int{4, 8}, []int{0, 4}, "1: 0[0,1,2,3] 1[4]"},
		"neither is idle":                {[]int{8, 8}, []int{4, 4}, "1: 0[4,5,6,7] 1[4]"},
		"both are idle":                  {[]int{4, 4, 8}, []int{0, 0, 5}, "1: 0[0,1,2,3] 2[5]"},
		"an idle one with less is later": {[]int{8, 3}, []int{4, 0}, "1: 0[4,5,6,7] 1[0]"},
		"an idle one with less is first": {[]int{3, 8}, []int{0, 4}, "1: 1[4,5,6,7] 0[0]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, seats := coretest.MakeCluster(), []core.Seat(nil)
			for i, size := range tc.sizes {
				cluster.Nodes(1, "t4", size)
				if tc.used[i] > 0 {
					seats = append(seats, coretest.Seat(core.NodeID(i), all(tc.used[i])...))
				}
			}
			occupant := policytest.Waits(1).Accelerators("none")
			if seats != nil {
				occupant = policytest.Holds(seats...)
			}
			v := coretest.MakeView(cluster.Obj()).Jobs(occupant, policytest.Waits(5)).Obj()
			got := policytest.Place(t, policytest.New(t, NewConsolidated(), nil), v, policytest.InOrder(v))
			if _, got, _ = strings.Cut(got, "\n"); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Two types of two nodes with two devices each: a job on two nodes has the lowest type, whoever was seated before it.
func TestOfTypesOnAsManyNodesTheLowest(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(3, "a100", 2).Nodes(2, "t4", 2).Obj()
	v := coretest.MakeView(cluster).Jobs(policytest.Waits(2), policytest.Waits(3)).Obj()
	want := policytest.Lines("0: 0[0,1]", "1: 1[0,1] 2[0]")
	if got := policytest.Place(t, policytest.New(t, NewConsolidated(), nil), v, policytest.InOrder(v)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A type whose nodes all left is missing.
func TestATypeThatIsGoneIsMissing(t *testing.T) {
	c := coretest.MakeCluster().Nodes(1, "t4", 1).Nodes(1, "h100", 1).Health(1, core.Gone).Obj()
	v := coretest.MakeView(c).Jobs(policytest.Waits(1).Accelerators("h100")).Obj()
	if got, want := policytest.Place(t, policytest.New(t, NewFirstFit(), nil), v, policytest.InOrder(v)), "0: accelerator_missing 1/0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A type of which the cluster lists no node is missing, even if the cluster of the call before had one.
func TestATypeWithoutNodesIsMissing(t *testing.T) {
	with := coretest.MakeCluster().Nodes(1, "t4", 1).Nodes(1, "h100", 1).Obj()
	without := coretest.MakeCluster().Nodes(1, "t4", 1).Obj()
	without.Accelerators = append(without.Accelerators, "h100")
	policy := policytest.New(t, NewFirstFit(), nil)
	for _, tc := range []struct {
		cluster *core.Cluster
		want    string
	}{{with, "0: waiting_for_devices 2/1"}, {without, "0: accelerator_missing 2/0"}, {with, "0: waiting_for_devices 2/1"}} {
		v := coretest.MakeView(tc.cluster).Jobs(policytest.Waits(2).Accelerators("h100")).Obj()
		if got := policytest.Place(t, policy, v, policytest.InOrder(v)); got != tc.want {
			t.Errorf("%d nodes: got %q, want %q", len(tc.cluster.Nodes), got, tc.want)
		}
	}
}
