package core_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// For which refused job others stop, and which: what the last round makes of it, and how often the allocation is asked.
func TestMakingRoom(t *testing.T) {
	newest := byCount{newestFirst: true, precedes: true}
	grows := elastic(5, 60, 2, 4)
	grows.Kind, grows.Spec.SubmitSeconds = core.JobChanged, 0
	cpus := one(nodesOf(4, 1, 1))
	cpus.CountsResources = true
	for name, tc := range map[string]struct {
		cluster *core.Cluster // nil for two nodes of four devices
		policy  byCount
		moment  []core.Observation
		want    string // of the last round
		asks    int    // questions of all rounds
	}{
		"none for one that runs and would grow": {nil, newest, []core.Observation{
			at(0, submit(5, 0, 2), submit(2, 0, 1), submit(1, 0, 2), submit(0, 0, 2)), at(60, grows), at(600),
		}, "0@1×2 1@1×2 2@0×1 5@0×2", 5},
		"for the first refused one": {one(nodesOf(4, 4, 4, 4, 4)), byCount{precedes: true}, []core.Observation{
			at(0, submit(5, 0, 3), submit(6, 0, 3), submit(7, 0, 3), submit(8, 0, 3), submit(9, 0, 3)), at(60, submit(1, 60, 3), submit(2, 60, 2)), at(240),
		}, "1@3×3 2@4×2 5@0×3 6@1×3 7@2×3 8? 9?", 5},
		"none where nobody comes after it": {nil, byCount{precedes: true}, []core.Observation{
			at(0, submit(0, 0, 2), submit(1, 0, 3)), at(60, submit(2, 60, 3)), at(600),
		}, "0@0×2 1@1×3 2?", 3},
		"none by those that are pinned": {nil, newest, []core.Observation{
			at(0, pinned(submit(0, 0, 3)), pinned(submit(1, 0, 3))), at(60, submit(2, 60, 2)), at(600),
		}, "0@1×3 1@0×3 2?", 3},
		"by one": {nil, newest, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3)), at(60, submit(2, 60, 2)), at(240),
		}, "0? 1@0×3 2@1×2", 4},
		"none that suffices, and others pass": {nil, newest, []core.Observation{
			at(0, submit(0, 0, 3)), at(60, submit(2, 60, 5)), at(240, submit(1, 240, 4)),
		}, "0@0×3 1@1×4 2?", 4},
		"by four, of which three are too few": {one(nodesOf(4, 4, 4)), newest, []core.Observation{
			at(0, submit(9, 0, 3), submit(8, 0, 1), submit(7, 0, 3), submit(6, 0, 1), submit(3, 0, 1), submit(2, 0, 1), submit(1, 0, 1), submit(0, 0, 1)),
			at(60, end(9, 50), end(7, 50), submit(4, 60, 4)), at(600), at(780),
		}, "0? 1? 2? 3? 4@2×4 6@1×1 8@0×1", 6},
		"by as many as suffice where CPUs are counted": {cpus, newest, []core.Observation{
			at(0, submit(0, 0, 1), submit(1, 0, 1), submit(2, 0, 1)), at(60, submit(4, 60, 2)), at(240),
		}, "0? 1@0×1 2@0×1 4@0×2", 4},
		"by the last one, which has as many as it lacks": {nil, byCount{newestFirst: true, precedes: true, more: 4}, []core.Observation{
			at(0, submit(0, 0, 4), submit(1, 0, 4)), at(60, submit(2, 60, 4)), at(240),
		}, "0? 1@0×4 2@1×4", 4},
		"by those alone that are in its way": {one(nodesOf(4, 4, 1)), newest, []core.Observation{
			at(0, submit(5, 0, 2), submit(3, 0, 3), submit(1, 0, 1)), at(60, submit(6, 60, 3)), at(240),
		}, "1@0×1 3? 5@0×2 6@1×3", 4},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.cluster == nil {
				tc.cluster = oneType()
			}
			var asked []string
			tc.policy.asked = &asked
			got := settled(t, tc.cluster, core.Settling{Passes: 3, MakeRoom: true}, settling(tc.policy, oneNode{}), tc.moment)
			if diff := cmp.Diff(tc.want, got[len(got)-1]); diff != "" {
				t.Errorf("the last round (-want +got):\n%s", diff)
			}
			if len(asked) != tc.asks {
				t.Errorf("%d questions, want %d", len(asked), tc.asks)
			}
		})
	}
}

// late grants job 3 nothing as long as it is asked about job 0.
type late struct{ byCount }

func (a late) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if slices.ContainsFunc(candidates, func(c core.Candidate) bool { return c.ID == 0 }) {
		candidates = slices.DeleteFunc(slices.Clone(candidates), func(c core.Candidate) bool { return c.ID == 3 })
	}
	return a.byCount.Allocate(ctx, v, candidates)
}

// A job that loses the devices on which it was given room stops nobody else in that round.
func TestRoomIsMadeOnceARound(t *testing.T) {
	stages := settling(byCount{}, oneNode{})
	stages.Allocation.Policy = late{byCount{newestFirst: true, precedes: true, more: 8}}
	got := settled(t, oneType(), core.Settling{Passes: 3, MakeRoom: true}, stages, []core.Observation{
		at(0, submit(0, 0, 3), submit(1, 0, 3)), at(60, submit(2, 60, 2), submit(3, 60, 4)), at(240),
	})
	if want := "0? 1@0×3 2? 3@1×4"; got[2] != want {
		t.Errorf("%q, want %q", got[2], want)
	}
}
