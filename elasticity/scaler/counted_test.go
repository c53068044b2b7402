package scaler

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// Where jobs ask for nothing that is short, counting CPUs, memory and parts makes no difference to any scaler.
func TestCountingNothingScalesTheSame(t *testing.T) {
	for name, factory := range map[string]func() core.Factory[core.ClusterScaler]{
		"queue": NewQueue, "goodput": NewGoodput, "throughput": NewThroughput, "marginal": NewMarginal,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				pools := []core.Pool{
					{Name: "a", Devices: rapid.IntRange(1, 4).Draw(t, "a"), Max: rapid.IntRange(1, 6).Draw(t, "most a"), PricePerHour: 1},
					{Name: "b", Devices: rapid.IntRange(1, 8).Draw(t, "b"), Max: rapid.IntRange(1, 6).Draw(t, "most b"), PricePerHour: 2, Accelerator: core.AcceleratorID(rapid.IntRange(0, 1).Draw(t, "type"))},
				}
				sizes := []int{rapid.IntRange(0, pools[0].Max).Draw(t, "nodes a"), rapid.IntRange(0, pools[1].Max).Draw(t, "nodes b")}
				most, types := pools[0].Devices*pools[0].Max, [][]string{nil, nil, {"t4"}}
				if b := &pools[1]; b.Accelerator == 1 {
					most, types = min(most, b.Devices*b.Max), append(types, []string{"v100"})
				}
				var jobs []core.Candidate
				for range rapid.IntRange(0, 6).Draw(t, "jobs") {
					r := slowing(rapid.IntRange(1, 16).Draw(t, "job"))
					r.MinReplicas = rapid.IntRange(1, min(r.MaxReplicas, most)).Draw(t, "least")
					r.RemainingWork = rapid.Float64Range(1, 1e6).Draw(t, "left")
					jobs = append(jobs, jobFor(r, rapid.SampledFrom(types).Draw(t, "types")...))
					jobs[len(jobs)-1].ID = core.JobID(len(jobs))
				}
				besides := core.Node{Devices: rapid.IntRange(1, 4).Draw(t, "besides")}
				var plain core.ClusterTarget
				for _, how := range []struct {
					sharing core.Sharing
					counts  bool
				}{{}, {counts: true}, {sharing: core.Fractional}, {sharing: core.TimeSlice, counts: true}, {sharing: core.Mig}} {
					v := poolsView(0, pools, sizes, besides)
					v.Cluster.Accelerators = v.Cluster.Accelerators[:1+max(pools[0].Accelerator, pools[1].Accelerator)]
					v.Cluster.Sharing, v.Cluster.CountsResources = how.sharing, how.counts
					target, err := scalerOf(t, factory(), nil).Scale(t.Context(), v, &core.Plan{Candidates: jobs})
					if err != nil {
						t.Fatal(err)
					}
					for i := range target.Pools {
						target.Pools[i].Message = ""
					}
					if how.sharing == core.Exclusive && !how.counts {
						plain = target
					} else if diff := cmp.Diff(plain, target); diff != "" {
						t.Fatalf("%v, CPUs counted %v (-whole devices +):\n%s", how.sharing, how.counts, diff)
					}
				}
			})
		})
	}
}

// Parts of devices are rounded so that jobs one after the other take as many as all of them together.
func TestPartsAreRoundedSoThatTheyAddUp(t *testing.T) {
	share := func(devices int, value float64) optim.Share { return optim.Share{Devices: devices, Value: value} }
	for name, tc := range map[string]struct {
		list         []optim.Share
		used, weight float64
		want         []optim.Share
	}{
		"whole":                       {[]optim.Share{share(2, 1), share(3, 2)}, 5, 1, []optim.Share{share(3, 1), share(4, 2)}},
		"the first half of a device":  {[]optim.Share{share(1, 1)}, 0, 0.5, []optim.Share{share(2, 1)}},
		"the second half":             {[]optim.Share{share(1, 1)}, 0.5, 0.5, []optim.Share{share(1, 1)}},
		"of alike ones the best":      {[]optim.Share{share(1, 1), share(2, 3), share(3, 2), share(4, 4)}, 0, 0.25, []optim.Share{share(2, 4)}},
		"as many as it takes":         {[]optim.Share{share(1, 1), share(2, 3), share(3, 2), share(4, 4)}, 0.5, 0.25, []optim.Share{share(1, 3), share(2, 4)}},
		"more than a device":          {[]optim.Share{share(1, 1), share(2, 2)}, 0, 1.5, []optim.Share{share(3, 1), share(4, 2)}},
		"three thirds, with roundoff": {[]optim.Share{share(1, 1)}, 1.0/3 + 1.0/3, 1.0/3 + 1e-12, []optim.Share{share(1, 1)}},
		"nothing":                     {[]optim.Share{share(1, 1), share(2, 2)}, 1, 0, []optim.Share{share(1, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rounded(tc.list, tc.used, tc.weight)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Nodes are of the cheapest pool of those of a type that hold jobs.
func TestPoolsThatHoldGrowFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		cpus  float64 // of each of four jobs
		nodes []int   // that there are
		want  string
	}{
		"all hold":                      {1, []int{0, 0, 0}, "poor 1, rich 0, dear 0"},
		"the cheapest holds none":       {8, []int{0, 0, 0}, "poor 0, rich 1, dear 0"},
		"one of the cheapest is there":  {8, []int{1, 0, 0}, "poor 1, rich 1, dear 0"},
		"the one that holds is at most": {16, []int{0, 0, 0}, "poor 0, rich 1, dear 1"},
		"none holds":                    {99, []int{0, 0, 0}, "poor 0, rich 0, dear 0"},
	} {
		t.Run(name, func(t *testing.T) {
			v := poolsView(0, []core.Pool{
				{Name: "poor", Devices: 4, CPUs: 4, Max: 5, PricePerHour: 1}, {Name: "rich", Devices: 4, CPUs: 32, Max: 1, PricePerHour: 2}, {Name: "dear", Devices: 4, CPUs: 64, Max: 5, PricePerHour: 3},
			}, tc.nodes)
			v.Cluster.CountsResources = true
			var jobs []core.Candidate
			for i := range core.JobID(4) {
				j := jobFor(unknowns(1), "t4")
				j.ID, j.CPUs = i, tc.cpus
				jobs = append(jobs, j)
			}
			target, err := scalerOf(t, NewQueue(), nil).Scale(t.Context(), v, &core.Plan{Candidates: jobs})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, p := range target.Pools {
				got[p.Pool] = p.Nodes
			}
			if sizes := fmt.Sprintf("poor %d, rich %d, dear %d", got["poor"], got["rich"], got["dear"]); sizes != tc.want {
				t.Errorf("wants %s, want %s", sizes, tc.want)
			}
		})
	}
}
