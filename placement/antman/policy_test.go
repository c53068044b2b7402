package antman

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
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
		"guaranteed ones have devices of their own":        {nil, 2, jobs{policytest.Waits(2), policytest.Waits(3), policytest.Waits(1)}, policytest.Lines("0: 0[0,1]", "1: 1[0,1,2]", "2: 0[2]")},
		"as if the others were not there":                  {nil, 2, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)).BestEffort(), policytest.Waits(4)}, policytest.Lines("1: 0[0,1,2,3]", "0: 0[0,1,2,3]")},
		"opportunistic ones on idle devices first":         {nil, 2, jobs{policytest.Holds(coretest.Seat(0, 0, 1)), policytest.Waits(3).BestEffort()}, policytest.Lines("0: 0[0,1]", "1: 0[2,3] 1[0]")},
		"then on those of guaranteed ones":                 {nil, 2, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)), policytest.Holds(coretest.Seat(1, 0, 1, 2)), policytest.Waits(3).BestEffort()}, policytest.Lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: 0[0,1] 1[3]")},
		"one on a device":                                  {nil, 4, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)).BestEffort(), policytest.Holds(coretest.Seat(1, 0, 1, 2)).BestEffort(), policytest.Waits(2).BestEffort()}, policytest.Lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: waiting_for_devices 2/1")},
		"or two":                                           {two, 3, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)).BestEffort(), policytest.Holds(coretest.Seat(1, 0, 1, 2)).BestEffort(), policytest.Waits(2).BestEffort()}, policytest.Lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: 0[0] 1[3]")},
		"of whose owners one is left for a guaranteed one": {two, 2, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)).BestEffort(), policytest.Holds(coretest.Seat(1, 0, 1, 2)).BestEffort(), policytest.Waits(2).BestEffort()}, policytest.Lines("0: 0[0,1,2,3]", "1: 1[0,1,2]", "2: waiting_for_devices 2/1")},
		"many may be on what is left":                      {nil, 2, jobs{policytest.Holds(coretest.Seat(0, 0, 1)).BestEffort(), policytest.Waits(6).BestEffort()}, policytest.Lines("0: 0[0,1]", "1: 0[2,3] 1[0,1,2,3]")},
		"where nobody shares they yield last":              {nil, 1, jobs{policytest.Holds(coretest.Seat(0, 0)).BestEffort(), policytest.Waits(2)}, policytest.Lines("1: 0[1,2]", "0: 0[0]")},
		"where nobody shares they yield":                   {nil, 1, jobs{policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)).BestEffort(), policytest.Holds(coretest.Seat(1, 0)).BestEffort(), policytest.Waits(4)}, policytest.Lines("2: 0[0,1,2,3]", "1: 1[0]", "0: fragmented 4/4")},
		"beside a guaranteed one before an opportunistic one": {
			two, 3, jobs{
				policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)).BestEffort(), policytest.Holds(coretest.Seat(1, 0, 1, 2, 3)), policytest.Waits(1).BestEffort(),
			}, policytest.Lines("1: 1[0,1,2,3]", "0: 0[0,1,2,3]", "2: 1[0]"),
		},
		"of two beside an opportunistic one where no guaranteed one is": {
			two, 3, jobs{
				policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)), policytest.Holds(coretest.Seat(0, 0, 1, 2, 3)).BestEffort(),
				policytest.Holds(coretest.Seat(1, 0, 1, 2, 3)).BestEffort(), policytest.Waits(1).BestEffort(),
			}, policytest.Lines("0: 0[0,1,2,3]", "1: 0[0,1,2,3]", "2: 1[0,1,2,3]", "3: 1[0]"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(tc.owners, 16).Obj()
			v := coretest.MakeView(cluster).Jobs(tc.jobs...).Obj()
			if got := policytest.Place(t, policytest.New(t, New(), tc.config), v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Guaranteed jobs that fit on no node keep one each to themselves, that with most of them the earlier one, though a later job would fit there. Opportunistic ones use it.
func TestAntManKeepsNodes(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(2, 16).Obj()
	placer := policytest.New(t, New(), map[string]any{"keeps": keepsFirst})
	seated := func(jobs ...*coretest.JobBuilder) (seated []core.JobID) {
		v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		seating, err := placer.Place(t.Context(), v, policytest.InOrder(v))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range seating.Placed {
			seated = append(seated, p.Job)
		}
		slices.Sort(seated)
		return seated
	}
	got := seated(policytest.Holds(coretest.Seat(0, 0, 1)), policytest.Holds(coretest.Seat(1, 0, 1, 2)), policytest.Waits(3), policytest.Waits(2), policytest.Waits(1), policytest.Waits(2).BestEffort())
	if want := []core.JobID{0, 1, 5}; !slices.Equal(got, want) {
		t.Errorf("jobs %v are seated, want %v", got, want)
	}
	// Node 1 becomes idle. Job 3, which keeps it, has it, and what is left job 4; job 1 was not there when it was kept, and job 2 waits for the one that it keeps.
	got = seated(policytest.Holds(coretest.Seat(0, 0, 1)), policytest.Waits(3), policytest.Waits(3), policytest.Waits(2), policytest.Waits(1), policytest.Holds(coretest.Seat(0, 2, 3)).BestEffort())
	if want := []core.JobID{0, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("jobs %v are seated then, want %v", got, want)
	}
}

// rounds is a placer's last answer to one view after another, of the same cluster. Jobs that are neither waiting nor running are granted nothing.
func rounds(t *testing.T, config map[string]any, cluster *core.Cluster, views ...[]*coretest.JobBuilder) (last string) {
	t.Helper()
	placer := policytest.New(t, New(), config)
	for _, jobs := range views {
		v := coretest.MakeView(cluster).Jobs(jobs...).Obj()
		last = policytest.Place(t, placer, v, slices.DeleteFunc(policytest.InOrder(v), func(g core.Grant) bool { return v.Jobs[g.Job].Name == "gone" }))
	}
	return last
}

// What is kept is kept for who waits for it, and no longer than he does; jobs are those of the last of several rounds on two nodes of four devices.
func TestAntManLetsGoOfNodes(t *testing.T) {
	type jobs = []*coretest.JobBuilder
	long, short, gone := policytest.Holds(coretest.Seat(0, 0, 1, 2)), policytest.Holds(coretest.Seat(1, 0, 1, 2)), coretest.MakeJob("gone")
	first := map[string]any{"keeps": keepsFirst}
	cases := map[string]struct {
		config map[string]any
		nodes  int
		rounds []jobs
		want   string
	}{
		"who waits starts on another node, before who came later": {
			nil, 2, []jobs{{long, short, policytest.Waits(4)}, {long, short, policytest.Waits(4), policytest.Waits(4)}, {long, gone, policytest.Waits(4), policytest.Waits(4), policytest.Waits(1)}}, policytest.Lines("0: 0[0,1,2]", "2: 1[0,1,2,3]", "3: waiting_for_devices 4/1", "4: fragmented 1/1"),
		},
		"with keeps first he does not": {
			first, 2, []jobs{{long, short, policytest.Waits(4)}, {long, short, policytest.Waits(4), policytest.Waits(4)}, {long, gone, policytest.Waits(4), policytest.Waits(4)}}, policytest.Lines("0: 0[0,1,2]", "3: 1[0,1,2,3]", "2: fragmented 4/5"),
		},
		"nor does anybody else, on a node that he keeps": {
			nil, 2, []jobs{{long, short, policytest.Waits(4)}, {long, short, policytest.Waits(4), policytest.Waits(1)}}, policytest.Lines("0: 0[0,1,2]", "1: 1[0,1,2]", "3: 1[3]", "2: waiting_for_devices 4/2"),
		},
		"who is gone keeps nothing": {
			first, 1, []jobs{{long, policytest.Waits(4)}, {long, gone, policytest.Waits(1)}}, policytest.Lines("0: 0[0,1,2]", "2: 0[3]"),
		},
		"who keeps a node of which enough is free keeps it no more": {
			first, 1, []jobs{{long, policytest.Waits(2)}, {gone, policytest.Waits(2), policytest.Waits(2)}}, policytest.Lines("1: 0[0,1]", "2: 0[2,3]"),
		},
		"the node with the most free is kept": {
			nil, 2, []jobs{{policytest.Holds(coretest.Seat(0, 0, 1, 2)), policytest.Holds(coretest.Seat(1, 0, 1)), policytest.Waits(4), policytest.Waits(1)}}, policytest.Lines("0: 0[0,1,2]", "1: 1[0,1]", "3: 0[3]", "2: waiting_for_devices 4/3"),
		},
		"the node that was kept is kept on": {
			first, 2, []jobs{{long, short, policytest.Waits(4)}, {long, policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(4)}, {gone, policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(4), policytest.Waits(3)}}, policytest.Lines("1: 1[0]", "2: 0[0,1,2,3]", "3: 1[1,2,3]"),
		},
		"a larger one takes the idle nodes that a later one keeps": {
			nil, 3, []jobs{
				{long, short, gone, gone, policytest.Waits(8)}, {long, gone, gone, policytest.Waits(8), policytest.Waits(8)},
			}, policytest.Lines("0: 0[0,1,2]", "3: 1[0,1,2,3] 2[0,1,2,3]", "4: waiting_for_devices 8/1"),
		},
		"who lost a node to an earlier one keeps it no more": {
			first, 3,
			[]jobs{{long, short, gone, gone, policytest.Waits(8)}, {long, gone, gone, policytest.Waits(6), policytest.Waits(8), policytest.Waits(2)}},
			policytest.Lines("0: 0[0,1,2]", "3: 1[0,1,2,3] 2[0,1]", "5: 2[2,3]", "4: waiting_for_devices 8/3"),
		},
		"none takes what a larger one before it keeps": {
			nil, 3, []jobs{{long, gone, gone, policytest.Waits(12), policytest.Waits(8)}}, policytest.Lines("0: 0[0,1,2]", "3: waiting_for_devices 12/9", "4: fragmented 8/9"),
		},
		"and it waits where one is idle": {
			nil, 3, []jobs{{long, short, gone, policytest.Waits(8), policytest.Waits(4), policytest.Waits(1)}}, policytest.Lines("0: 0[0,1,2]", "1: 1[0,1,2]", "5: 1[3]", "3: waiting_for_devices 8/6", "4: fragmented 4/6"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(tc.nodes, "t4", 4).TakesTurns(2, 16).Obj()
			if got := rounds(t, tc.config, cluster, tc.rounds...); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Of two types a guaranteed job has one, and both if it mixes them and is too large for each.
func TestAntManMixesTypes(t *testing.T) {
	type jobs = []*coretest.JobBuilder
	for name, tc := range map[string]struct {
		jobs jobs
		t4   int // nodes
		want string
	}{
		"one type for who fits there":              {jobs{policytest.Holds(coretest.Seat(0, 0, 1)), policytest.Waits(3).MixesTypes()}, 1, policytest.Lines("0: 0[0,1]", "1: 1[0,1,2]")},
		"both for who is too large":                {jobs{policytest.Waits(8).MixesTypes()}, 1, "0: 0[0,1,2,3] 1[0,1,2,3]"},
		"not for who does not mix":                 {jobs{policytest.Waits(8)}, 1, "0: waiting_for_devices 8/4"},
		"nor for who would fit later":              {jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(4).MixesTypes().BestEffort(), policytest.Waits(4).MixesTypes()}, 1, policytest.Lines("0: 0[0]", "1: 1[0]", "2: 0[0,1,2,3]", "3: waiting_for_devices 4/3")},
		"nor for a larger one":                     {jobs{policytest.Holds(coretest.Seat(0, 0)), policytest.Waits(6).MixesTypes()}, 2, policytest.Lines("0: 0[0]", "1: fragmented 6/7")},
		"opportunistic ones take of both likewise": {jobs{policytest.Waits(8).MixesTypes().BestEffort()}, 1, "0: 0[0,1,2,3] 1[0,1,2,3]"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(tc.t4, "t4", 4).Nodes(1, "v100", 4).TakesTurns(2, 16).Obj()
			if got := rounds(t, nil, cluster, tc.jobs); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A round of 10,000 jobs that find no room on 4,096 devices, half of them opportunistic.
func BenchmarkAntMan(b *testing.B) {
	jobs := make([]*coretest.JobBuilder, 0, 11_024)
	for n := range 512 {
		jobs = append(jobs, policytest.Holds(coretest.Seat(core.NodeID(n), 0, 1, 2, 3, 4, 5, 6, 7)), policytest.Holds(coretest.Seat(core.NodeID(n), 0, 1, 2, 3, 4, 5, 6, 7)).BestEffort())
	}
	for range 5_000 {
		jobs = append(jobs, policytest.Waits(4), policytest.Waits(4).BestEffort())
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(512, "v100", 8).TakesTurns(2, 16).Obj()).Jobs(jobs...).Obj()
	grants, policy := policytest.InOrder(v), policytest.New(b, New(), nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policy.Place(context.Background(), v, grants); err != nil {
			b.Fatal(err)
		}
	}
}

// What is remembered of jobs that asked for the same changes nothing.
func TestAntManRemembersWhatIsSo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(most int, what string) int { return rapid.IntRange(0, most).Draw(t, what) }
		cluster := coretest.MakeCluster().Nodes(1+draw(3, "nodes"), "t4", 4).Nodes(1+draw(1, "others"), "v100", 2).TakesTurns(1+draw(2, "owners"), 16.5).Obj()
		config := map[string]any{"keeps": rapid.SampledFrom([]string{keepsAny, keepsFirst}).Draw(t, "keeps")}
		type job struct {
			replicas, memory int
			besteffort, mix  bool
			seats            []core.Seat
			gone             bool
		}
		jobs := make([]job, 3+draw(12, "jobs"))
		for i := range jobs {
			jobs[i] = job{replicas: 1 + draw(6, "replicas"), memory: 4 * draw(3, "memory"), besteffort: draw(2, "class") == 0, mix: draw(4, "mixes") == 0}
		}
		remembering, forgetful := policytest.New(t, New(), config), policytest.New(t, New(), config)
		forgetful.(*antMan).forgetful = true
		for range 1 + draw(5, "rounds") {
			var all []*coretest.JobBuilder
			for _, j := range jobs {
				b := coretest.MakeJob("a").Replicas(j.replicas).DeviceMemory(float64(j.memory)).Waiting()
				if j.besteffort {
					b.BestEffort()
				}
				if j.mix {
					b.MixesTypes()
				}
				if j.seats != nil {
					b.Running(0, j.seats...)
				}
				all = append(all, b)
			}
			v := coretest.MakeView(cluster).Jobs(all...).Obj()
			grants := slices.DeleteFunc(policytest.InOrder(v), func(g core.Grant) bool { return jobs[g.Job].gone })
			for i := range grants {
				grants[i].Blocking = draw(9, "blocks") == 0
			}
			if got, want := policytest.Place(t, remembering, v, grants), policytest.Place(t, forgetful, v, grants); got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
			seating, err := remembering.Place(context.Background(), v, grants) // again: it keeps nodes from round to round
			if _, err2 := forgetful.Place(context.Background(), v, grants); err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			for i := range jobs {
				jobs[i].seats = nil
			}
			for _, p := range seating.Placed {
				if jobs[p.Job].gone = draw(3, "goes") == 0; !jobs[p.Job].gone {
					jobs[p.Job].seats = slices.Clone(p.Seats)
				}
			}
		}
	})
}
