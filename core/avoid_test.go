package core_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// seatedAs answers the questions of a run one after the other with these placements; a job without one is refused.
type seatedAs struct{ answers *[][]core.Placement }

func (p seatedAs) Place(_ context.Context, _ *core.View, grants []core.Grant) (s core.Seating, _ error) {
	s.Placed = (*p.answers)[0]
	*p.answers = (*p.answers)[1:]
	for _, g := range grants {
		if !slices.ContainsFunc(s.Placed, func(at core.Placement) bool { return at.Job == g.Job }) {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
		}
	}
	return s, nil
}

// job is a placement of a job.
func job(id core.JobID, seats ...core.Seat) core.Placement {
	return core.Placement{Job: id, Seats: seats}
}

// A job gets other devices than those on which it failed, of those that are free or that another one would start on, as the placer's answer in the second round leaves
// them. That answer itself stays as it was.
func TestWhatIsGivenForDevicesOnWhichAJobFailed(t *testing.T) {
	nodes := func(devices ...int) *core.Cluster { return one(nodesOf(devices...)) }
	twoTypes := func() *core.Cluster {
		c := nodesOf(1, 1)
		c.Nodes[2].Rack = "x"
		return c
	}
	sharing := func(how core.Sharing, c *core.Cluster) *core.Cluster {
		c.Sharing, c.MaxOwners = how, 2
		return c
	}
	cpus := func(c *core.Cluster) *core.Cluster {
		c.CountsResources = true
		for i := range c.Nodes {
			c.Nodes[i].CPUs = 8
		}
		return c
	}
	of := func(tenant string, e core.Event) core.Event {
		e.Spec.Tenant = tenant
		return e
	}
	mixed := func(e core.Event) core.Event {
		e.Spec.MixesTypes = true
		return e
	}
	wants := func(cpus float64, e core.Event) core.Event {
		e.Spec.CPUs = cpus
		return e
	}
	sole := []core.Placement{job(0, seat(0, 1))}
	for name, tc := range map[string]struct {
		cluster *core.Cluster
		before  []core.Event // of the first round
		first   []core.Placement
		then    []core.Event // of the second one
		second  []core.Placement
		grants  func([]core.Grant) []core.Grant // of the second one
		want    string
	}{
		"it failed on another device than it gets": {
			nodes(2, 1), []core.Event{submit(0, 0, 1)}, []core.Placement{job(0, seat(0, 2))}, []core.Event{fails(0, 50, seat(0, 2))}, sole, nil, "60: start 0 0[0]",
		},
		"its type in another rack before another type in its own": {
			twoTypes(), []core.Event{submit(0, 0, 1)}, sole, []core.Event{fails(0, 50, seat(0, 1))}, sole, nil, "60: start 0 1[0]",
		},
		"where fewest are left": {
			nodes(2, 1, 4, 1, 3),
			[]core.Event{submit(0, 0, 2)},
			[]core.Placement{job(0, seat(0, 3))},
			[]core.Event{fails(0, 50, seat(0, 1))},
			[]core.Placement{job(0, seat(0, 3))},
			nil, "60: start 0 4[0,1]",
		},
		"of another type, but it was granted this one": {
			nodesOf(1),
			[]core.Event{submit(0, 0, 1)},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1))},
			sole,
			func(g []core.Grant) []core.Grant { g[0].Accelerator = 0; return g }, "60: start 0 0[0]",
		},
		"of another type, but somebody waits for what is left": {
			nodesOf(1),
			[]core.Event{submit(0, 0, 1)},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1)), mixed(submit(1, 50, 2))},
			sole,
			func(g []core.Grant) []core.Grant { g[1].Blocking = true; return g }, "60: start 0 0[0] 1 waiting_for_devices (1 waits: waiting_for_devices)",
		},
		"of another type, but it has a second seat": {
			nodesOf(1, 1),
			[]core.Event{submit(0, 0, 2)},
			[]core.Placement{job(0, seat(0, 1), seat(1, 1))},
			[]core.Event{fails(0, 50, seat(0, 1))},
			[]core.Placement{job(0, seat(0, 1), seat(1, 1))},
			nil, "60: start 0 0[0] 1[0]",
		},
		"none is left, and nobody else gets what it has": {
			nodes(2),
			[]core.Event{submit(0, 0, 1), submit(1, 0, 1)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(0, 2))},
			[]core.Event{fails(0, 50, seat(0, 1), seat(0, 2)), fails(1, 50, seat(0, 2))},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(0, 2))},
			nil,
			"60: start 0 0[0] start 1 0[1]",
		},
		"those of one that stops are not free yet": {
			nodes(2),
			[]core.Event{submit(0, 0, 1), submit(1, 0, 1)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(0, 2))},
			[]core.Event{fails(0, 50, seat(0, 1))},
			sole, nil, "60: stop 1 start 0 0[0] (1 waits: preempted_by_priority)",
		},
		"as many of another as it needs": {
			nodes(3),
			[]core.Event{submit(0, 0, 1)},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1)), submit(1, 50, 2)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(0, 6))},
			nil,
			"60: start 0 0[1] start 1 0[0,2]",
		},
		"of the second one, where it failed on those of the first": {
			nodes(1, 1, 1),
			[]core.Event{submit(0, 0, 1)},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1), seat(1, 1)), submit(1, 50, 1), submit(2, 50, 1)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1)), job(2, seat(2, 1))},
			nil, "60: start 0 2[0] start 1 1[0] start 2 0[0]",
		},
		"of the first one, and the second one keeps its own": {
			nodes(1, 1, 1),
			[]core.Event{submit(0, 0, 1)},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1)), submit(1, 50, 1), submit(2, 50, 1)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1)), job(2, seat(2, 1))},
			nil, "60: start 0 1[0] start 1 0[0] start 2 2[0]",
		},
		"not those of another type": {
			nodesOf(1),
			[]core.Event{submit(0, 0, 1)},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1)), submit(1, 50, 1)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			nil,
			"60: start 0 0[0] start 1 1[0]",
		},
		"not those of another tenant": {
			nodes(1, 1),
			[]core.Event{of("p", submit(0, 0, 1))},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1)), of("q", submit(1, 50, 1))},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			nil, "60: start 0 0[0] start 1 1[0]",
		},
		"not more than it needs": {
			nodes(1, 2),
			[]core.Event{submit(0, 0, 1)},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1)), submit(1, 50, 2)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 3))},
			nil,
			"60: start 0 0[0] start 1 1[0,1]",
		},
		"not those on which the other failed where it is": {
			nodes(1, 1),
			[]core.Event{submit(0, 0, 1), submit(1, 0, 1)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			[]core.Event{fails(0, 50, seat(0, 1)), fails(1, 50, seat(0, 1))},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			nil, "60: start 0 0[0] start 1 1[0]",
		},
		"not on a node where it has some": {
			nodes(1, 2, 1),
			[]core.Event{submit(0, 0, 2)},
			[]core.Placement{job(0, seat(0, 1), seat(1, 1))},
			[]core.Event{fails(0, 50, seat(0, 1)), submit(1, 50, 2)},
			[]core.Placement{job(0, seat(0, 1), seat(1, 1)), job(1, seat(1, 2), seat(2, 1))},
			nil, "60: start 0 2[0] 1[0] start 1 1[1] 0[0]",
		},
		"not those of one that runs": {
			nodes(1, 1),
			[]core.Event{submit(0, 0, 1), submit(1, 0, 1)},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			[]core.Event{fails(0, 50, seat(0, 1))},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			nil, "60: start 0 0[0]",
		},
		"both seats of one of two types": {
			nodesOf(2),
			[]core.Event{mixed(submit(0, 0, 2))},
			[]core.Placement{job(0, seat(0, 1), seat(1, 1))},
			[]core.Event{fails(0, 50, seat(0, 1), seat(1, 1))},
			[]core.Placement{job(0, seat(0, 1), seat(1, 1))},
			nil, "60: start 0 0[1] 1[0]",
		},
		"jobs that take turns stay": {
			sharing(core.TimeSlice, nodes(2)), []core.Event{submit(0, 0, 1)}, sole, []core.Event{fails(0, 50, seat(0, 1))}, sole, nil, "60: start 0 0[0]",
		},
		"where CPUs are left": {
			cpus(nodes(2, 1)), []core.Event{wants(1, submit(0, 0, 1))}, sole, []core.Event{fails(0, 50, seat(0, 1))}, sole, nil, "60: start 0 0[1]",
		},
		"not where CPUs lack": {
			cpus(nodes(1, 2)),
			[]core.Event{wants(2, submit(0, 0, 1)), wants(7, submit(1, 0, 1))},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			[]core.Event{fails(0, 50, seat(0, 1))},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			nil, "60: start 0 0[0]",
		},
		"nobody changes places where CPUs are counted": {
			cpus(nodes(1, 1)),
			[]core.Event{wants(1, submit(0, 0, 1))},
			sole,
			[]core.Event{fails(0, 50, seat(0, 1)), wants(1, submit(1, 50, 1))},
			[]core.Placement{job(0, seat(0, 1)), job(1, seat(1, 1))},
			nil, "60: start 0 0[0] start 1 1[0]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got changed
			second := slices.Clone(tc.second)
			for i := range second {
				second[i].Seats = slices.Clone(second[i].Seats)
			}
			stages, round := fakes{}.stages(), 0
			stages.Allocation.Policy = grantAll{change: func(g []core.Grant) []core.Grant {
				if round++; round == 2 && tc.grants != nil {
					return tc.grants(g)
				}
				return g
			}}
			stages.Placement.Policy = seatedAs{&[][]core.Placement{tc.first, second}}
			p := core.NewPipeline(tc.cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&got}})
			if err := p.Run(t.Context(), &script{observations: []core.Observation{at(0, tc.before...), at(60, tc.then...)}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.rounds[1]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(tc.second, second); diff != "" {
				t.Errorf("the placer's answer (-before +after):\n%s", diff)
			}
		})
	}
}
