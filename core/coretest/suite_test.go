package coretest

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

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

func TestDrawViewIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, candidates := DrawView(t)
		var held core.Ledger
		held.Reset(v.Cluster)
		waiting := 0
		for i, id := range v.Active {
			j := v.Job(id)
			if candidates[i].Job != j || candidates[i].Response.Job != id {
				t.Fatalf("candidate %d is not job %d", i, id)
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
		if waiting != v.Waiting || len(candidates) != len(v.Active) {
			t.Fatalf("view counts %d waiting and %d active jobs, holds %d and %d", v.Waiting, len(v.Active), waiting, len(candidates))
		}
	})
}
