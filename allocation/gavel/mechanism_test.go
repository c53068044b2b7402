package gavel

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// given hands out shares that a test sets, by job and type.
type given struct {
	shares   map[core.JobID][]float64
	strictly bool
	asked    int
}

func (g *given) strict() bool { return g.strictly }

func (g *given) divide(_ context.Context, p *problem) error {
	g.asked++
	for _, m := range p.jobs {
		clear(m.x)
		copy(m.x, g.shares[m.id])
	}
	return nil
}

// hold holds rounds of 360 s in which each job runs where it was granted, and renders who ran on which type: "a:0,1
// b:2". In a busy cluster, shares are computed anew every round.
func hold(t *testing.T, m *mechanism, c *core.Cluster, jobs []*coretest.JobBuilder, arrivals []int, rounds int, busy bool) []string {
	t.Helper()
	var ran []string
	executed := make([]float64, len(jobs))
	for round := range rounds {
		now := float64(360 * round)
		var here []*coretest.JobBuilder
		for i, j := range jobs {
			if arrivals[i] <= round {
				here = append(here, j.Waiting().Executed(executed[i], executed[i]))
			}
		}
		v := coretest.MakeView(c).Now(now).Round(round + 1).Interval(360).Jobs(here...).Obj()
		m.due = m.due || busy
		grants, err := m.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
		if err != nil {
			t.Fatal(err)
		}
		on := make([][]string, len(c.Accelerators))
		for _, g := range grants {
			on[g.Accelerator] = append(on[g.Accelerator], fmt.Sprint(g.Job))
			executed[g.Job] += 360
		}
		var cells []string
		for k, ids := range on {
			cells = append(cells, c.Accelerators[k]+":"+strings.Join(ids, ","))
		}
		ran = append(ran, strings.Join(cells, " "))
	}
	return ran
}

func TestRoundsFollowTheShares(t *testing.T) {
	one := func() *coretest.JobBuilder { return coretest.MakeJob("j").Replicas(1) }
	two := coretest.MakeCluster().Nodes(1, "a", 1).Nodes(1, "b", 1).Obj()
	wide := coretest.MakeCluster().Nodes(3, "a", 1).Obj()
	cases := map[string]struct {
		config   Rounds
		shares   map[core.JobID][]float64
		strict   bool
		cluster  *core.Cluster
		jobs     []*coretest.JobBuilder
		arrivals []int
		want     []string
	}{
		// Two thirds and one third of the type. A credit of half a round at first: 2/3 : 180 s and 1/3 : 180 s, then
		// 2/3 : 540 s = 1/3 : 270 s before 1/3 : 180 s, and so on.
		"in proportion": {
			defaults,
			map[core.JobID][]float64{0: {2. / 3}, 1: {1. / 3}},
			false, coretest.MakeCluster().Nodes(1, "a", 1).Obj(),
			[]*coretest.JobBuilder{one(), one()},
			[]int{0, 0},
			[]string{"a:0", "a:1", "a:0", "a:0", "a:1", "a:0"},
		},
		// Nobody has a share of b, where whoever has no device goes; a job runs once.
		"what is left goes to others": {
			defaults, map[core.JobID][]float64{0: {1, 0}, 1: {0, 0}}, false, two, []*coretest.JobBuilder{one(), one()}, []int{0, 0}, []string{"a:0 b:1"},
		},
		"but not against a strict policy": {
			defaults, map[core.JobID][]float64{0: {1, 0}, 1: {0, 0}}, true, two, []*coretest.JobBuilder{one(), one()}, []int{0, 0}, []string{"a:0 b:"},
		},
		// Two devices for the first, which the second, of two as well, cannot follow; the third fits.
		"skipping what does not fit": {
			defaults,
			map[core.JobID][]float64{0: {1}, 1: {0.9}, 2: {0.1}},
			false, wide,
			[]*coretest.JobBuilder{coretest.MakeJob("j").Replicas(2), coretest.MakeJob("j").Replicas(2), one()},
			[]int{0, 0, 0},
			[]string{"a:0,2"},
		},
		// The second comes two rounds after a computation, and takes part in the next, 1920 s and so 6 rounds later.
		// Until then b is set aside for it and idles. (A computation at 0 s does not count.)
		"a new job waits as published": {
			Rounds{RecomputeInterval: 1920e9, NewJobs: wait, Types: inOrder, Accounts: reset},
			map[core.JobID][]float64{0: {1, 0}, 1: {0, 1}},
			false, two,
			[]*coretest.JobBuilder{one(), one()},
			[]int{1, 3},
			[]string{"a: b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:1"},
		},
		"a new job shares at once": {
			Rounds{RecomputeInterval: 1920e9, NewJobs: share, Types: inOrder, Accounts: reset},
			map[core.JobID][]float64{0: {1, 0}, 1: {0, 1}},
			false, two,
			[]*coretest.JobBuilder{one(), one()},
			[]int{1, 3},
			[]string{"a: b:", "a:0 b:", "a:0 b:", "a:1 b:0"},
		},
		// The most urgent of both types first: 1 on b, 6/5 of its credit, and then 0 on b, 2 : 1, before 1 on a.
		"one queue": {
			Rounds{NewJobs: share, Types: inOrder, Accounts: settled, GlobalQueue: true},
			map[core.JobID][]float64{0: {0.5, 0.5}, 1: {0.4, 0.6}},
			false, two,
			[]*coretest.JobBuilder{one(), one()},
			[]int{0, 0},
			[]string{"a:0 b:1", "a:1 b:0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMechanism(tc.config, &given{shares: tc.shares, strictly: tc.strict}, core.Settings{})
			got := hold(t, m, tc.cluster, tc.jobs, tc.arrivals, len(tc.want), false)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("who ran (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the shares: no type is granted beyond its devices, nobody twice or where it cannot run, and no job is left
// out that would have fitted.
func TestRoundsUseWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := coretest.MakeCluster()
		capacity := map[string]int{}
		for _, accelerator := range []string{"a", "b", "c"} {
			capacity[accelerator] = rapid.IntRange(1, 6).Draw(t, "nodes") * 2
			cluster.Nodes(capacity[accelerator]/2, accelerator, 2)
		}
		c := cluster.Obj()
		shares := map[core.JobID][]float64{}
		var jobs []*coretest.JobBuilder
		for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
			j := coretest.MakeJob("j").Replicas(rapid.IntRange(1, 8).Draw(t, "replicas")).Waiting()
			if only := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "only"); only != "" {
				j.Accelerators(only)
			}
			jobs = append(jobs, j)
			shares[core.JobID(i)] = rapid.SliceOfN(rapid.Float64Range(0, 1), 3, 3).Draw(t, "shares")
		}
		config := Rounds{NewJobs: share, Types: inOrder, Accounts: settled, GlobalQueue: rapid.Bool().Draw(t, "one queue")}
		m := newMechanism(config, &given{shares: shares}, core.Settings{})
		v := coretest.MakeView(c).Interval(360).Jobs(jobs...).Obj()
		grants, err := m.Allocate(context.Background(), v, coretest.Candidates(v, coretest.Rigid))
		if err != nil {
			t.Fatal(err)
		}
		granted := map[core.JobID]bool{}
		for _, g := range grants {
			if granted[g.Job] || !v.Jobs[g.Job].CanRunOn(c, g.Accelerator) {
				t.Fatalf("%+v is for a job that has a grant or cannot run there", g)
			}
			granted[g.Job] = true
			capacity[c.Accelerators[g.Accelerator]] -= g.Replicas
		}
		for accelerator, left := range capacity {
			if left < 0 {
				t.Fatalf("%d more devices granted of %s than there are", -left, accelerator)
			}
		}
		for _, j := range v.Jobs {
			for k, accelerator := range c.Accelerators {
				if !granted[j.ID] && j.CanRunOn(c, core.AcceleratorID(k)) && j.Requested <= capacity[accelerator] {
					t.Fatalf("job %d of %d devices is left out, and %d of %s idle", j.ID, j.Requested, capacity[accelerator], accelerator)
				}
			}
		}
	})
}

// Over many rounds each job runs for its share of the time, when the shares fill the cluster, however often they are
// computed.
func TestRoundsAddUpToTheShares(t *testing.T) {
	const rounds = 400
	even := map[core.JobID][]float64{0: {0.5, 0.25}, 1: {0.3, 0.1}, 2: {0.2, 0.65}}
	for name, tc := range map[string]struct {
		busy     bool
		accounts string
		want     map[core.JobID][]float64
	}{
		"computed once":            {false, settled, even},
		"computed once, and reset": {false, reset, even},
		"computed every round":     {true, settled, even},
		"and kept":                 {true, kept, even},
		// As published: the largest share of each type wins every round, and the last job gets nothing.
		"and reset": {true, reset, map[core.JobID][]float64{0: {1, 0}, 1: {0, 0}, 2: {0, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMechanism(Rounds{NewJobs: share, Types: inOrder, Accounts: tc.accounts}, &given{shares: even}, core.Settings{})
			one := func() *coretest.JobBuilder { return coretest.MakeJob("j").Replicas(1) }
			cluster := coretest.MakeCluster().Nodes(1, "a", 1).Nodes(1, "b", 1).Obj()
			got := map[core.JobID][]float64{0: {0, 0}, 1: {0, 0}, 2: {0, 0}}
			for _, round := range hold(t, m, cluster, []*coretest.JobBuilder{one(), one(), one()}, []int{0, 0, 0}, rounds, tc.busy) {
				for k, cell := range strings.Fields(round) {
					_, id, _ := strings.Cut(cell, ":")
					for i := range got {
						if fmt.Sprint(i) == id {
							got[i][k] += 1. / rounds
						}
					}
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 0.02)); diff != "" {
				t.Errorf("parts of the time (-want +got):\n%s", diff)
			}
		})
	}
}

// A job that was alone for long owes a round at most to one that comes.
func TestIdleDevicesCostNobodyHisShare(t *testing.T) {
	one := func() *coretest.JobBuilder { return coretest.MakeJob("j").Replicas(1) }
	cluster := coretest.MakeCluster().Nodes(1, "a", 1).Obj()
	m := newMechanism(defaults, &given{shares: map[core.JobID][]float64{0: {0.5}, 1: {0.5}}}, core.Settings{})
	got := hold(t, m, cluster, []*coretest.JobBuilder{one(), one()}, []int{0, 100}, 106, true)[98:]
	want := []string{"a:0", "a:0", "a:1", "a:1", "a:0", "a:1", "a:0", "a:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who ran (-want +got):\n%s", diff)
	}
}

// A job stays on its type for a lease, and until it has restarted, whatever the shares say, while its devices are
// there.
func TestALeaseIsKept(t *testing.T) {
	two := coretest.MakeCluster().Nodes(2, "a", 1).Nodes(1, "b", 1)
	stays := []core.Grant{{Job: 1, Accelerator: 0, Replicas: 1}, {Job: 0, Accelerator: 1, Replicas: 1}}
	follows := []core.Grant{{Job: 0, Accelerator: 0, Replicas: 1}, {Job: 1, Accelerator: 1, Replicas: 1}}
	for name, tc := range map[string]struct {
		until float64 // end of the pause
		lease time.Duration
		node  core.NodeID
		want  []core.Grant
	}{
		"restarting":                     {361, 0, 1, stays},
		"restarted":                      {360, 0, 1, follows},
		"restarting on a node that left": {361, 0, 0, follows},
		"leased":                         {60, 301 * time.Second, 1, stays},
		"no longer leased":               {60, 300 * time.Second, 1, follows},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(two.Health(0, core.Draining).Obj()).Now(360).Round(7).Interval(60).Jobs(
				coretest.MakeJob("j").Replicas(1).Waiting(), coretest.MakeJob("j").Replicas(1).Running(60, coretest.Seat(tc.node, 0)),
			).Obj()
			v.Jobs[1].ProgressAsOf = tc.until
			config := Rounds{Lease: tc.lease, NewJobs: share, Types: inOrder, Accounts: settled}
			m := newMechanism(config, &given{shares: map[core.JobID][]float64{0: {1, 0}, 1: {0, 1}}}, core.Settings{})
			got, err := m.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}
