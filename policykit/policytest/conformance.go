package policytest

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/coretest/drawn"
)

// Form is an allocator in a form that decides differently from its others.
type Form struct {
	// Factory makes the policy.
	Factory core.Factory[core.Allocator]
	Config  map[string]any // as it stands in a file; nil for the defaults
	Groups  bool           // it groups jobs where they take turns
}

// CheckAllocators holds each form to what every allocator must do: the conformance suite, also where jobs share devices, and the rules
// for pinned jobs.
func CheckAllocators(t *testing.T, forms map[string]Form) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			options := []coretest.Option{coretest.WithConfig(form.Config), coretest.Pinning()}
			alike := slices.Concat(options, []coretest.Option{coretest.Deadlines(), coretest.Tiers()})
			sharing := []coretest.Option{coretest.Sharing()}
			t.Run("conformance", func(t *testing.T) { coretest.RunAllocator(t, form.Factory, alike...) })
			if len(form.Factory.Sharing) == 0 {
				t.Run("where jobs share", func(t *testing.T) { coretest.RunAllocator(t, form.Factory, slices.Concat(alike, sharing)...) })
			}
			if form.Groups {
				t.Run("groups", func(t *testing.T) { coretest.RunAllocator(t, form.Factory, slices.Concat(options, sharing)...) })
			}
			t.Run("pinned jobs keep what they hold", func(t *testing.T) { checkPinned(t, form) })
			t.Run("pinned jobs are not resized", func(t *testing.T) { checkNotResized(t, form) })
		})
	}
}

// checkPinned: whatever a policy was asked before, it grants each job that is pinned to its seats just what it holds. One whose node is
// down or drained, or that can no longer run on so many devices, is as free as the others.
func checkPinned(t *testing.T, form Form) {
	rapid.Check(t, func(t *rapid.T) {
		v, candidates := drawn.View(t)
		grants, err := New(t, form.Factory, form.Config).Allocate(context.Background(), v, candidates)
		if err != nil {
			t.Fatal(err)
		}
		granted := make(map[core.JobID]core.Grant)
		for _, g := range grants {
			granted[g.Job] = g
		}
		for i := range candidates {
			c := &candidates[i]
			if g, ok := granted[c.ID]; c.MustStay(v.Cluster, c.Response) && (!ok || g.Replicas != c.Held) {
				t.Fatalf("job %d is pinned to %d devices, and granted %d", c.ID, c.Held, g.Replicas)
			}
		}
	})
}

// checkNotResized: a pinned job keeps what it holds also where it asked for another number, or sits on devices of two types.
func checkNotResized(t *testing.T, form Form) {
	pinned := func() *coretest.JobBuilder { return coretest.MakeJob("p").Elastic(1, 2, 8).Work(1e6).Pinned() }
	elastic := func(j *core.Job) core.Response {
		r := coretest.Rigid(j)
		r.MinReplicas, r.MaxReplicas = j.MinReplicas, j.MaxReplicas
		return r
	}
	mixed := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()).Now(1000)
	for where, v := range map[string]*core.View{
		"on one type":  EightDevices(pinned().Running(900, coretest.Seat(0, 0, 1, 2)), Waits(1)),
		"on two types": mixed.Jobs(pinned().MixesTypes().Running(900, coretest.Seat(0, 0, 1), coretest.Seat(1, 3)), Waits(1)).Obj(),
	} {
		t.Run(where, func(t *testing.T) {
			var got core.Grant
			for _, g := range Ask(t, New(t, form.Factory, form.Config), v, elastic) {
				if g.Job == 0 {
					got = g
				}
			}
			if got.Replicas != 3 || where == "on two types" && got.Accelerator != core.AnyAccelerator {
				t.Errorf("granted %d devices of type %d, holds 3", got.Replicas, got.Accelerator)
			}
		})
	}
}
