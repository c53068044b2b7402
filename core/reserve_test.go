package core_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// settled is what is seen of the rounds of a composition.
func settled(t *testing.T, c *core.Cluster, settle core.Settling, stages core.Stages, moments []core.Observation) []string {
	t.Helper()
	var got seen
	p := core.NewPipeline(c, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60, Settle: settle}, Observers: []core.Observer{&got}})
	if err := p.Run(t.Context(), &script{observations: moments}); err != nil {
		t.Fatal(err)
	}
	return got.rounds
}

// full is a cluster of two nodes of four devices on which jobs 0 and 1 have three each, and job 2 finds no node.
func full(wants int) core.Observation {
	return at(0, submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, wants))
}

// left is a job of so much work that runs at a rate from 30 s on.
func left(id core.JobID, replicas int, work, rate float64) (submitted, runs core.Event) {
	submitted = submit(id, 0, replicas)
	submitted.Spec.TotalWork = work
	return submitted, core.Event{Kind: core.JobProgressed, Job: id, AtSeconds: 30, Rate: rate, FromSeconds: 30}
}

// ending is two jobs of three devices with work left, and a third one that finds no node.
func ending(work0, rate0, work1, rate1 float64) []core.Observation {
	a, first := left(0, 3, work0, rate0)
	b, second := left(1, 3, work1, rate1)
	return []core.Observation{at(0, a, b, submit(2, 0, 2)), at(30, first, second), at(3720, submit(3, 3700, 1))}
}

// For whom devices are reserved, which, and for how long.
func TestReserving(t *testing.T) {
	passed := at(3720, submit(3, 3700, 1), submit(4, 3700, 1)) // one of them passes job 2
	freed := submit(1, 5000, 2)
	freed.Kind = core.JobChanged
	none := []core.Observation{ // before job 1 may be moved
		at(0, pinned(submit(0, 0, 3)), pinned(submit(1, 0, 2)), submit(2, 0, 3)),
		at(3720, submit(3, 3700, 1), submit(4, 3700, 1), submit(5, 3700, 1)), at(5000, freed),
	}
	known, _ := left(1, 3, 90000, 1) // it ends before any other, as far as anybody knows
	cpus := oneType()
	cpus.CountsResources = true
	for name, tc := range map[string]struct {
		cluster *core.Cluster // nil for two nodes of four devices
		policy  byCount
		moment  []core.Observation
		want    string // of the last round
	}{
		"as long as it waits":             {nil, byCount{}, []core.Observation{full(2), passed, at(3780, core.Event{Kind: core.JobCancelled, Job: 2, AtSeconds: 3770})}, "0@0×3 1@1×3 3@1×1 4@0×1"},
		"as long as some of it is in use": {nil, byCount{}, []core.Observation{full(2), passed, at(3780)}, "0@0×3 1@1×3 2? 3@1×1 4? 0×2 for 2"},
		"as long as it can be used": {nil, byCount{}, []core.Observation{
			full(2), passed, at(3780, core.Event{Kind: core.NodeChanged, Node: 0, AtSeconds: 3770, Health: core.Ready, Unusable: 8}),
		}, "0@0×3 1@1×3 2? 3@1×1 4?"},
		"not while it waits to be tried again": {nil, byCount{}, []core.Observation{full(2), passed, at(3780, until(9000, fails(2, 3770)))}, "0@0×3 1@1×3 2? 3@1×1 4@0×1"},
		"not to begin with while it waits to be tried again": {nil, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(2, 0, 2)), at(60, submit(1, 60, 3), until(9000, fails(2, 50))), at(3720, submit(3, 3700, 2), submit(4, 3700, 1)),
		}, "0@0×3 1@1×3 2? 3? 4@0×1"},
		"not once jobs wait for those before":    {nil, byCount{blocksFrom: 3780}, []core.Observation{full(2), passed, at(3780)}, "0@0×3 1@1×3 2? 3@1×1 4!"},
		"not where more than devices is counted": {cpus, byCount{}, []core.Observation{full(2), passed}, "0@0×3 1@1×3 2? 3@0×1 4@1×1"},
		"for one in a round": {nil, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), known, submit(2, 0, 2), submit(5, 0, 4)), at(3720, submit(3, 3700, 1)),
			at(3780, end(0, 3770), end(3, 3770), submit(6, 3770, 3), submit(7, 3770, 1)),
		}, "1@1×3 2@0×2 5? 6? 7@0×1"},
		"not where those that would start leave it idle": {nil, byCount{newestFirst: true}, []core.Observation{
			at(0, submit(0, 0, 2), submit(1, 0, 4), submit(2, 0, 4)), at(3720, end(1, 3700), end(2, 3700), submit(4, 3700, 2), submit(5, 3700, 3), submit(6, 3700, 3)),
		}, "0? 4? 5@1×3 6@0×3"},
		"the one that waits for longest": {nil, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), submit(3, 0, 4)), at(60, submit(2, 60, 2)), at(3720, submit(4, 3700, 1)),
		}, "0@0×3 1@1×3 2? 3? 4@1×1 0×4 for 3"},
		"not for one that runs": {nil, byCount{newestFirst: true}, []core.Observation{
			at(0, submit(0, 0, 4), submit(1, 0, 4)), at(3720, submit(2, 3700, 3), submit(3, 3700, 3), submit(4, 3700, 2)),
		}, "0? 1? 2? 3@1×3 4@0×2"},
		"after an hour to the second":                  {nil, byCount{}, []core.Observation{full(2), at(3599, submit(3, 3590, 1)), at(3600, submit(4, 3600, 1))}, "0@0×3 1@1×3 2? 3@0×1 4@1×1 0×2 for 2"},
		"not sooner than an hour after none was found": {nil, byCount{}, append(slices.Clip(none), at(7319)), "0@0×3 1@1×2 2? 3@0×1 4@1×1 5@1×1"},
		"an hour after none was found":                 {nil, byCount{}, append(slices.Clip(none), at(7319), at(7320)), "0@0×3 1@1×2 2? 3@0×1 4@1×1 5@1×1 1×3 for 2"},
		"by all of it for one that the allocation passes over": {nil, byCount{}, []core.Observation{
			at(0, submit(2, 0, 2), submit(3, 0, 3), submit(4, 0, 1), submit(5, 0, 2)), at(3720, submit(6, 3700, 1)), at(3780, end(4, 3770), submit(1, 3770, 2)),
		}, "1? 2@0×2 3@1×3 5@0×2 6@1×1"},
		"not from one that would grow there": {nil, byCount{}, []core.Observation{
			at(0, submit(0, 0, 1), submit(1, 0, 1), submit(3, 0, 3), submit(4, 0, 1), elastic(5, 0, 1, 2)), at(60, submit(2, 60, 2)), at(3720, end(4, 3700), submit(6, 3700, 1)),
		}, "0@0×1 1@0×1 2? 3@1×3 5@0×1 6@1×1 0×2 for 2"},
		"the first to end, by its work":         {nil, byCount{}, ending(90000, 1, 80000, 1), "0@0×3 1@1×3 2? 3@0×1 1×2 for 2"},
		"the first to end, by its rate":         {nil, byCount{}, ending(90000, 1, 95000, 3), "0@0×3 1@1×3 2? 3@0×1 1×2 for 2"},
		"the first to end, by what has no rate": {nil, byCount{}, ending(9000, 0, 95000, 1), "0@0×3 1@1×3 2? 3@0×1 0×2 for 2"},
		"the first to end, unless unknown":      {nil, byCount{}, ending(0, 1, 95000, 1), "0@0×3 1@1×3 2? 3@0×1 1×2 for 2"},
		"eight shapes at most": {nil, byCount{}, []core.Observation{at(0, submit(0, 0, 3), submit(1, 0, 3),
			elastic(2, 0, 5, 5), elastic(3, 0, 5, 6), elastic(4, 0, 5, 7), elastic(5, 0, 5, 8), elastic(6, 0, 6, 6), elastic(7, 0, 6, 7), elastic(8, 0, 6, 8),
			elastic(9, 0, 7, 7), submit(10, 10, 2)), at(3720, submit(11, 3700, 1))}, "0@0×3 1@1×3 2? 3? 4? 5? 6? 7? 8? 9? 10? 11@0×1"},
		"each shape once": {nil, byCount{}, []core.Observation{at(0, submit(0, 0, 3), submit(1, 0, 3),
			submit(2, 0, 5), submit(3, 0, 5), submit(4, 0, 5), submit(5, 0, 5), submit(6, 0, 5), submit(7, 0, 5), submit(8, 0, 5),
			submit(9, 0, 5), submit(10, 10, 2)), at(3720, submit(11, 3700, 1))}, "0@0×3 1@1×3 2? 3? 4? 5? 6? 7? 8? 9? 10? 11@0×1 0×2 for 10"},
		"nobody runs": {nil, byCount{}, []core.Observation{at(0, elastic(2, 0, 5, 6), elastic(3, 0, 5, 5)), at(3720)}, "2? 3?"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.cluster == nil {
				tc.cluster = oneType()
			}
			got := settled(t, tc.cluster, core.Settling{Passes: 3, ReserveAfterSeconds: 3600}, settling(tc.policy, oneNode{}), tc.moment)
			if diff := cmp.Diff(tc.want, got[len(got)-1]); diff != "" {
				t.Errorf("the last round (-want +got):\n%s", diff)
			}
		})
	}
}

// What is reserved is given up by settings that reserve nothing, before anybody else is refused.
func TestWhatIsReservedGoesWithItsSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		now  core.Settling
		want string
	}{
		"the same":         {core.Settling{Passes: 3, ReserveAfterSeconds: 3600}, "0@0×3 1@1×3 2? 3@1×1 4? 0×2 for 2"},
		"two passes":       {core.Settling{Passes: 2, ReserveAfterSeconds: 3600}, "0@0×3 1@1×3 2? 3@1×1 4? 0×2 for 2"},
		"after one second": {core.Settling{Passes: 3, ReserveAfterSeconds: 1}, "0@0×3 1@1×3 2? 3@1×1 4? 0×2 for 2"},
		"one pass":         {core.Settling{Passes: 1, ReserveAfterSeconds: 3600}, "0@0×3 1@1×3 2? 3? 4?"},
		"never":            {core.Settling{Passes: 3}, "0@0×3 1@1×3 2? 3@1×1 4@0×1"},
	} {
		t.Run(name, func(t *testing.T) {
			var got seen
			options := func(of core.Settling) core.PipelineOptions {
				return core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60, Settle: of}, Observers: []core.Observer{&got}}
			}
			p, stages, b := core.NewPipeline(oneType(), settling(byCount{}, oneNode{}), options(core.Settling{Passes: 3, ReserveAfterSeconds: 3600})), settling(byCount{}, oneNode{}), &script{}
			for _, moment := range []core.Observation{full(2), at(3720, submit(3, 3700, 1), submit(4, 3700, 1))} {
				if err := p.Round(t.Context(), moment, b); err != nil {
					t.Fatal(err)
				}
			}
			f := p.Fork()
			if err := f.Decide(t.Context(), stages, false, options(tc.now)); err != nil {
				t.Fatal(err)
			}
			if err := f.Round(t.Context(), at(3780), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.rounds[2]); diff != "" {
				t.Errorf("the last round (-want +got):\n%s", diff)
			}
		})
	}
}
