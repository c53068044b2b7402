package matching

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// The cluster of the tests: nodes 0 and 1 with 2 t4 each, node 2 with 2 v100.
func smallCluster() *core.Cluster {
	return coretest.MakeCluster().Nodes(2, "t4", 2).Nodes(1, "v100", 2).Obj()
}

// respond tells an unlike rate for every job: alone on each type, without communication, on up to most replicas.
func respond(most int, left map[string]float64, alone map[string][]float64) func(*core.Job) core.Response {
	return func(j *core.Job) core.Response {
		return core.Response{
			Job: j.ID, MinReplicas: 1, MaxReplicas: most, RemainingWork: left[j.Name],
			MixedTypes: &core.MixedTypeRates{SingleDeviceRates: alone[j.Name], SyncSeconds: make([]float64, most)},
		}
	}
}

func allocate(t *testing.T, change func(*Config), v *core.View, candidates []core.Candidate) []core.Grant {
	t.Helper()
	config := Default
	if change != nil {
		change(&config)
	}
	policy, err := New().New(&config, core.Settings{Rand: core.NewRand(1, "allocation/matching")})
	if err != nil {
		t.Fatal(err)
	}
	grants, err := policy.Allocate(context.Background(), v, candidates)
	if err != nil {
		t.Fatal(err)
	}
	return grants
}

// seatsOf is the devices of each type that every job was proposed.
func seatsOf(v *core.View, grants []core.Grant) map[string][]int {
	got := map[string][]int{}
	for _, g := range grants {
		counts := make([]int, len(v.Cluster.Accelerators))
		for _, s := range g.Proposed {
			counts[v.Cluster.Nodes[s.Node].Accelerator] += s.Devices.Count()
		}
		got[v.Jobs[g.Job].Name] = counts
	}
	return got
}

func TestTypesGoToWhomTheyHelpMost(t *testing.T) {
	mixes := func(name string) *coretest.JobBuilder {
		return coretest.MakeJob(name).Elastic(1, 2, 8).MixesTypes().Waiting()
	}
	left := map[string]float64{"long": 1000, "short": 10}
	alone := map[string][]float64{"long": {1, 4}, "short": {1, 5}}
	cases := map[string]struct {
		change func(*Config)
		jobs   []*coretest.JobBuilder
		most   int
		want   map[string][]int
	}{
		// Σ left/rate: 1000/9 + 10/1 with one t4 for the short job; any other share is worse.
		"the short job spares a t4":         {func(c *Config) { c.Urgency = 0 }, []*coretest.JobBuilder{mixes("long"), mixes("short")}, 8, map[string][]int{"long": {3, 2}, "short": {1, 0}}},
		"exactly":                           {func(c *Config) { c.Search, c.Urgency = "exact", 0 }, []*coretest.JobBuilder{mixes("long"), mixes("short")}, 8, map[string][]int{"long": {3, 2}, "short": {1, 0}}},
		"raw rates give a v100 to speed":    {func(c *Config) { c.Values = "raw_rate" }, []*coretest.JobBuilder{mixes("long"), mixes("short")}, 2, map[string][]int{"long": {1, 1}, "short": {0, 1}}},
		"and gains to whom it saves more":   {nil, []*coretest.JobBuilder{mixes("long"), mixes("short")}, 2, map[string][]int{"long": {0, 2}, "short": {2, 0}}},
		"blind takes the fewest nodes":      {func(c *Config) { c.Values = "blind" }, []*coretest.JobBuilder{mixes("long")}, 2, map[string][]int{"long": {2, 0}}},
		"a job that does not mix takes one": {nil, []*coretest.JobBuilder{coretest.MakeJob("long").Elastic(1, 2, 8).Waiting()}, 8, map[string][]int{"long": {0, 2}}},
		"alone it takes all":                {nil, []*coretest.JobBuilder{mixes("long")}, 8, map[string][]int{"long": {4, 2}}},
		"one that is urgent gets more": {
			func(c *Config) { c.Urgency = 2 },
			[]*coretest.JobBuilder{mixes("long"), mixes("short")},
			8,
			map[string][]int{"long": {1, 0}, "short": {3, 2}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(smallCluster()).Jobs(tc.jobs...).Obj()
			grants := allocate(t, tc.change, v, coretest.Candidates(v, respond(tc.most, left, alone)))
			if diff := cmp.Diff(tc.want, seatsOf(v, grants)); diff != "" {
				t.Errorf("devices by type (-want +got):\n%s", diff)
			}
		})
	}
}

// A job with 100 units left holds one v100, of rate 4, and 10 s of restart: a
// second brings its end from 25 s to 22.5 s.
func TestMovingIsWeighedAgainstTheRestart(t *testing.T) {
	held := coretest.Seat(2, 0)
	for name, tc := range map[string]struct {
		restart time.Duration
		want    []core.Seat
	}{
		"it stays for less than it loses": {13 * time.Second, []core.Seat{held}},
		"it moves for more":               {12 * time.Second, []core.Seat{coretest.Seat(2, 0, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(smallCluster()).Jobs(coretest.MakeJob("a").Elastic(1, 2, 2).MixesTypes().Running(0, held)).Obj()
			candidates := coretest.Candidates(v, respond(2, map[string]float64{"a": 100}, map[string][]float64{"a": {1, 4}}))
			grants := allocate(t, func(c *Config) { c.RestartOverhead = tc.restart }, v, candidates)
			if len(grants) != 1 {
				t.Fatalf("grants %+v", grants)
			}
			if diff := cmp.Diff(tc.want, grants[0].Proposed); diff != "" {
				t.Errorf("seats (-want +got):\n%s", diff)
			}
		})
	}
}

// Pinned jobs keep their devices, whatever the market would pay for them.
func TestPinnedJobsStay(t *testing.T) {
	b := coretest.MakeJob("pinned").Elastic(1, 2, 8).MixesTypes().Running(0, coretest.Seat(2, 0, 1))
	v := coretest.MakeView(smallCluster()).Jobs(b, coretest.MakeJob("a").Elastic(1, 1, 8).MixesTypes().Waiting()).Obj()
	pinned := *v.Jobs[0].JobSpec
	pinned.Pinned = true
	v.Jobs[0].JobSpec = &pinned
	grants := allocate(t, nil, v, coretest.Candidates(v, respond(8, map[string]float64{"pinned": 1, "a": 1000}, map[string][]float64{"pinned": {1, 1}, "a": {1, 9}})))
	if diff := cmp.Diff(map[string][]int{"pinned": {0, 2}, "a": {4, 0}}, seatsOf(v, grants)); diff != "" {
		t.Errorf("devices by type (-want +got):\n%s", diff)
	}
}

// Without rates, or a length, a job takes part all the same.
func TestJobsOfWhichNothingIsKnown(t *testing.T) {
	v := coretest.MakeView(smallCluster()).Jobs(coretest.MakeJob("a").Replicas(2).Waiting(), coretest.MakeJob("b").Replicas(3).Waiting()).Obj()
	got := allocate(t, nil, v, coretest.Candidates(v, coretest.Rigid))
	if len(got) != 2 || got[0].Replicas+got[1].Replicas != 5 {
		t.Errorf("grants %+v, want 2 and 3 replicas", got)
	}
}

func TestTooLargeForTheExactSearch(t *testing.T) {
	cluster := coretest.MakeCluster()
	for _, name := range []string{"a", "b", "c"} {
		cluster.Nodes(1, name, 60)
	}
	v := coretest.MakeView(cluster.Obj()).Jobs(coretest.MakeJob("a").MixesTypes().Waiting()).Obj()
	config := Default
	config.Search = "exact"
	policy, err := New().New(&config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Allocate(context.Background(), v, coretest.Candidates(v, coretest.Rigid)); err == nil {
		t.Error("226,981 ways to use the devices were tried")
	}
}
