package placement

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest/drawn"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// Whoever else is granted devices, in whatever order, and wherever the allocator proposes to seat whom: a job that is pinned to its
// seats stays there and is not evicted.
func TestPinnedJobsKeepTheirSeats(t *testing.T) {
	for name, tc := range map[string]struct {
		factory core.Factory[core.Placer]
		config  map[string]any
	}{
		"first_fit":           {NewFirstFit(), nil},
		"consolidated":        {NewConsolidated(), nil},
		"consolidated strict": {NewConsolidated(), map[string]any{"strict": true}},
		"most_free":           {NewMostFree(), nil},
		"tiresias_skew":       {NewTiresiasSkew(), map[string]any{"skewed": []any{"bert", "ncf"}}},
		"proposed":            {NewProposed(), nil},
		"matching":            {NewMatching(), nil},
		"buddy":               {NewBuddy(), nil},
		"tail_eviction":       {NewTailEviction(), nil},
		"as released":         {NewTailEviction(), map[string]any{"fit": prefixSum}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawn.View(t)
				grants := drawGrants(t, v, candidates)
				seating, err := policytest.New(t, tc.factory, tc.config).Place(context.Background(), v, grants)
				if err != nil {
					t.Fatal(err)
				}
				placed := make(map[core.JobID]core.Placement)
				for _, p := range seating.Placed {
					placed[p.Job] = p
				}
				for i := range candidates {
					c := &candidates[i]
					if p := placed[c.ID]; c.MustStay(v.Cluster, c.Response) && (p.Evicted || !core.SameSeats(p.Seats, c.Seats)) {
						t.Fatalf("job %d is pinned to %v, and gets %v (evicted: %v)", c.ID, c.Seats, p.Seats, p.Evicted)
					}
				}
			})
		})
	}
}

// drawGrants draws a grant for each candidate, in any order: what it holds for a job that stays, any number that it can use for another.
// Some propose seats, of which several jobs may want the same.
func drawGrants(t *rapid.T, v *core.View, candidates []core.Candidate) []core.Grant {
	grants := make([]core.Grant, 0, len(candidates))
	for _, c := range rapid.Permutation(candidates).Draw(t, "order") {
		g := core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Held, Blocking: rapid.IntRange(0, 7).Draw(t, "blocking") == 0}
		if !c.MustStay(v.Cluster, c.Response) {
			g.Replicas = rapid.IntRange(c.Response.MinReplicas, c.Response.MaxReplicas).Draw(t, "replicas")
		}
		if node := rapid.SampledFrom(v.Cluster.Nodes).Draw(t, "proposed node"); node.Devices >= g.Replicas && rapid.Bool().Draw(t, "propose") {
			g.Proposed = []core.Seat{{Node: node.ID, Devices: core.FirstDevices(g.Replicas)}}
		}
		grants = append(grants, g)
	}
	return grants
}
