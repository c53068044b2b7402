package pollux

import (
	"fmt"
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// Devices of the rarer type must not idle while jobs that can run on them wait, and a job keeps to its type.
func TestEveryTypeIsUsed(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Nodes(1, "v100", 4).Obj()
	for name, tc := range map[string]struct {
		types string
		jobs  []*coretest.JobBuilder
		want  map[core.AcceleratorID]int // devices granted by type
	}{
		"jobs spill over": {"each", []*coretest.JobBuilder{
			coretest.MakeJob("a").ID(0).Elastic(4, 4, 4), coretest.MakeJob("b").ID(1).Elastic(4, 4, 4), coretest.MakeJob("c").ID(2).Elastic(4, 4, 4),
		}, map[core.AcceleratorID]int{0: 8, 1: 4}},
		"a job bound to the rarer type": {"each", []*coretest.JobBuilder{
			coretest.MakeJob("a").ID(0).Elastic(4, 4, 4).Accelerators("v100"),
		}, map[core.AcceleratorID]int{1: 4}},
		"blind to types, a job bound to one": {"blind", []*coretest.JobBuilder{
			coretest.MakeJob("a").ID(0).Elastic(4, 4, 4).Accelerators("v100"),
		}, map[core.AcceleratorID]int{core.AnyAccelerator: 4}},
		"blind to types, none is mixed": {"blind", []*coretest.JobBuilder{
			coretest.MakeJob("a").ID(0).Elastic(1, 2, 12),
		}, map[core.AcceleratorID]int{0: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(cluster).Jobs(tc.jobs...).Obj()
			v.NowSeconds, v.IntervalSeconds = 600, 60
			p := component(t, New(), map[string]any{"types": tc.types})
			rates := make([]float64, 12)
			for i := range rates {
				rates[i] = float64(i + 1)
			}
			var candidates []core.Candidate
			for _, j := range v.Jobs {
				candidates = append(candidates, core.Candidate{Job: j, Response: &core.Response{
					Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: math.NaN(),
					Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}},
				}})
			}
			grants, err := p.Allocate(t.Context(), v, candidates)
			if err != nil {
				t.Fatal(err)
			}
			got := map[core.AcceleratorID]int{}
			for _, g := range grants {
				of := core.AnyAccelerator
				if len(g.Proposed) > 0 {
					of = cluster.Nodes[g.Proposed[0].Node].Accelerator
				}
				for _, s := range g.Proposed {
					if cluster.Nodes[s.Node].Accelerator != of {
						t.Errorf("job %d is given two types", g.Job)
					}
				}
				got[of] += g.Replicas
			}
			for accelerator, want := range tc.want {
				if got[accelerator] != want {
					t.Errorf("devices by type = %v, want %v", got, tc.want)
				}
			}
		})
	}
}

// The devices of a job that must stay on two types are nobody else's, whichever type has its turn first.
func TestNobodyGetsDevicesOfAJobOfTwoTypes(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(1, "t4", 2).Nodes(1, "v100", 4).Obj()
	for name, seats := range map[string][]core.Seat{
		"first of the rarer type": {coretest.Seat(0, 0), coretest.Seat(1, 3)},
		"first of the other type": {coretest.Seat(1, 3), coretest.Seat(0, 0)},
	} {
		for _, config := range []map[string]any{nil, {"types": "blind"}, {"search": "genetic", "generations": 3, "population": 6}} {
			t.Run(fmt.Sprint(name, config), func(t *testing.T) {
				v := coretest.MakeView(cluster).Now(600).Interval(60).Jobs(
					coretest.MakeJob("pinned").ID(0).Replicas(2).Pinned().MixesTypes().Running(0, seats...),
					coretest.MakeJob("a").ID(1).Elastic(1, 4, 4).Waiting(), coretest.MakeJob("b").ID(2).Elastic(1, 4, 4).Waiting(),
				).Obj()
				grants, err := component(t, New(), config).Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
				if err != nil {
					t.Fatal(err)
				}
				var free core.Ledger
				free.ResetTo(v)
				for _, g := range grants {
					if !free.Occupy(g.Proposed) {
						t.Errorf("job %d is proposed %v, of which somebody has some", g.Job, g.Proposed)
					}
				}
			})
		}
	}
}
