package coretest

import (
	"context"
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// steadyPlain is plain, and says truthfully that its answers depend on events only.
type steadyPlain struct{ plain }

func (steadyPlain) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

func (steadyPlain) Scale(context.Context, *core.View, *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{}, nil
}

func TestSuitesPassPlainStages(t *testing.T) {
	t.Run("admitter", func(t *testing.T) {
		RunAdmitter(t, factoryOf(func() core.Admitter { return steadyPlain{} }))
	})
	t.Run("allocator", func(t *testing.T) {
		RunAllocator(t, factoryOf(func() core.Allocator { return steadyPlain{} }))
	})
	t.Run("placer", func(t *testing.T) {
		RunPlacer(t, factoryOf(func() core.Placer { return steadyPlain{} }))
	})
	t.Run("elasticity", func(t *testing.T) {
		RunElasticity(t, factoryOf(func() core.Elasticity { return steadyPlain{} }))
	})
	t.Run("scaler", func(t *testing.T) {
		RunScaler(t, factoryOf(func() core.ClusterScaler { return steadyPlain{} }))
	})
}

// fault is one way in which a fake policy is broken, and what the suite must say of it.
type fault[S any] struct {
	check  string
	want   string
	create func() S
}

func wantFaultsCaught[S any](t *testing.T, s slot[S], extra func(core.Factory[S]) []check, faults map[string]fault[S]) {
	t.Helper()
	for name, tc := range faults {
		t.Run(name, func(t *testing.T) {
			f := factoryOf(tc.create)
			all := checks(s, f, nil)
			if extra != nil {
				all = append(all, extra(f)...)
			}
			wantCaught(t, all, tc.check, tc.want)
		})
	}
}

// What chaos seats is what a placer may seat. Where it seated more, policies were held to rounds that no placer can bring about.
func TestChaosKeepsTheContractOfAPlacer(t *testing.T) {
	roomy := func(*T) (*core.View, []core.Candidate) { // all fit, and an eighth is refused
		v := MakeView(MakeCluster().Nodes(1, "t4", 8).Obj()).Jobs(
			MakeJob("a").Waiting(), MakeJob("b").Waiting(), MakeJob("c").Waiting(), MakeJob("d").Waiting(),
		).Obj()
		return v, Candidates(v, Rigid)
	}
	for name, draw := range map[string]func(*T) (*core.View, []core.Candidate){"in a world with room": roomy, "in any world": DrawView} {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(t *T) {
				v, candidates := draw(t)
				c := chaos{t: t}
				grants, err := c.Allocate(context.Background(), v, candidates)
				if err != nil {
					t.Fatalf("%v", err)
				}
				for i := range grants {
					grants[i].Blocking = anyBool().Draw(t, "blocking")
				}
				judge := judgedPlacer{&trial[core.Placer]{t: t, options: options{evicts: true}}}
				for _, c.quiet = range []bool{false, true} {
					seating, err := c.Place(context.Background(), v, grants)
					if err != nil {
						t.Fatalf("%v", err)
					}
					judge.judgeSeats(v, grants, seating)
				}
			})
		})
	}
}

func TestDrawViewIsConsistent(t *testing.T) {
	inWorlds(t, func(t *T) {
		v, candidates := DrawView(t)
		var held core.Ledger
		held.Reset(v.Cluster)
		waiting, shown := 0, 0
		for _, id := range v.Active {
			j := v.Job(id)
			if shown < len(candidates) && candidates[shown].Job == j && candidates[shown].Response.Job == id {
				shown++
			} else if j.State != core.Waiting { // or it waits to be tried again
				t.Fatalf("job %d is no candidate", id)
			}
			if j.State == core.Waiting {
				waiting++
			}
			if j.Held != core.Replicas(j.Seats) || (j.Held > 0) != (j.State == core.Running) {
				t.Fatalf("%v job %d holds %d devices on seats %v", j.State, id, j.Held, j.Seats)
			}
			held.Release(j.Seats) // a node may have begun to drain
			if !held.Occupy(j.Seats) {
				t.Fatalf("job %d is seated on devices that are not there", id)
			}
		}
		if waiting != v.Waiting || len(candidates) != shown {
			t.Fatalf("view counts %d waiting and %d active jobs, holds %d and %d", v.Waiting, len(v.Active), waiting, len(candidates))
		}
	})
}
