package placement

import (
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func TestAntMan(t *testing.T) {
	type jobs = []*coretest.JobBuilder
	two := map[string]any{"opportunistic_per_device": 2}
	cases := map[string]struct {
		config map[string]any
		owners int
		jobs   jobs
		want   string
	}{
		"guaranteed ones have devices of their own":        {nil, 2, jobs{waits(2), waits(3), waits(1)}, lines("0: 0[0,1]", "1: 1[0,1,2]", "2: 0[2]")},
		"as if the others were not there":                  {nil, 2, jobs{holds(seat(0, 0, 1, 2, 3)).BestEffort(), waits(4)}, lines("1: 0[0,1,2,3]", "0: 0[0,1,2,3]")},
		"opportunistic ones on idle devices first":         {nil, 2, jobs{holds(seat(0, 0, 1)), waits(3).BestEffort()}, lines("0: 0[0,1]", "1: 0[2,3] 1[0]")},
		"then on those of guaranteed ones":                 {nil, 2, jobs{holds(seat(0, 0, 1, 2, 3)), holds(seat(1, 0, 1, 2)), waits(3).BestEffort()}, lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: 0[0,1] 1[3]")},
		"one on a device":                                  {nil, 4, jobs{holds(seat(0, 0, 1, 2, 3)).BestEffort(), holds(seat(1, 0, 1, 2)).BestEffort(), waits(2).BestEffort()}, lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: fragmented 2/8")},
		"or two":                                           {two, 3, jobs{holds(seat(0, 0, 1, 2, 3)).BestEffort(), holds(seat(1, 0, 1, 2)).BestEffort(), waits(2).BestEffort()}, lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: 0[0] 1[3]")},
		"of whose owners one is left for a guaranteed one": {two, 2, jobs{holds(seat(0, 0, 1, 2, 3)).BestEffort(), holds(seat(1, 0, 1, 2)).BestEffort(), waits(2).BestEffort()}, lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: fragmented 2/8")},
		"where nobody shares they yield":                   {nil, 1, jobs{holds(seat(0, 0, 1, 2, 3)).BestEffort(), holds(seat(1, 0)).BestEffort(), waits(4)}, lines("2: 0[0,1,2,3]", "1: 1[0]", "0: fragmented 4/4")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(tc.owners, 16).Obj()
			v := coretest.MakeView(cluster).Jobs(tc.jobs...).Obj()
			if got := place(t, newPlacer(t, NewAntMan(), tc.config), v, inOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Guaranteed jobs that fit on no node keep one each to themselves, that with most of them the earlier one, though a later job would fit there. Opportunistic ones use it.
func TestAntManKeepsNodes(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(2, 16).Obj()
	placer := newPlacer(t, NewAntMan(), nil)
	seated := func(jobs ...*coretest.JobBuilder) (seated []core.JobID) {
		v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		seating, err := placer.Place(t.Context(), v, inOrder(v))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range seating.Placed {
			seated = append(seated, p.Job)
		}
		slices.Sort(seated)
		return seated
	}
	got := seated(holds(seat(0, 0, 1)), holds(seat(1, 0, 1, 2)), waits(3), waits(2), waits(1), waits(2).BestEffort())
	if want := []core.JobID{0, 1, 5}; !slices.Equal(got, want) {
		t.Errorf("jobs %v are seated, want %v", got, want)
	}
	// Node 1 becomes idle. Job 3, which keeps it, has it, and what is left job 4; job 1 was not there when it was kept, and job 2 waits for the one that it keeps.
	got = seated(holds(seat(0, 0, 1)), waits(3), waits(3), waits(2), waits(1), holds(seat(0, 2, 3)).BestEffort())
	if want := []core.JobID{0, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("jobs %v are seated then, want %v", got, want)
	}
}
