package gavel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// hold holds rounds of 360 s in which each job runs where it was granted, and renders who ran on which type: "a:0,1 b:2".
func hold(t *testing.T, m *mechanism, c *core.Cluster, jobs []*coretest.JobBuilder, arrivals []int, rounds int) []string {
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
		// Two thirds and one third of the type. A credit of half a round at first: 2/3 : 180 s and 1/3 : 180 s, then 2/3 : 540 s = 1/3 : 270 s
		// before 1/3 : 180 s, and so on.
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
		// The second comes two rounds after a computation, and takes part in the next, 1920 s and so 6 rounds later. Until then b is set aside
		// for it and idles. (A computation at 0 s does not count.)
		"a new job waits as published": {
			Rounds{RecomputeInterval: 1920e9, NewJobs: wait, Types: inOrder},
			map[core.JobID][]float64{0: {1, 0}, 1: {0, 1}},
			false, two,
			[]*coretest.JobBuilder{one(), one()},
			[]int{1, 3},
			[]string{"a: b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:", "a:0 b:1"},
		},
		"a new job shares at once": {
			Rounds{RecomputeInterval: 1920e9, NewJobs: share, Types: inOrder},
			map[core.JobID][]float64{0: {1, 0}, 1: {0, 1}},
			false, two,
			[]*coretest.JobBuilder{one(), one()},
			[]int{1, 3},
			[]string{"a: b:", "a:0 b:", "a:0 b:", "a:1 b:0"},
		},
		// The most urgent of both types first: 1 on b, 6/5 of its credit, and then 0 on b, 2 : 1, before 1 on a.
		"one queue": {
			Rounds{NewJobs: share, Types: inOrder, GlobalQueue: true},
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
			got := hold(t, m, tc.cluster, tc.jobs, tc.arrivals, len(tc.want))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("who ran (-want +got):\n%s", diff)
			}
		})
	}
}
