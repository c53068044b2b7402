package synergy

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// reachCluster is nodes of 4 devices, 12 CPUs and 40 GB: 3 CPUs and 10 GB for a device.
func reachCluster(nodes int) *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"v100"}, CountsResources: true}
	for i := range nodes {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Devices: 4, CPUs: 12, MemoryGB: 40})
	}
	return c
}

func reachJob(replicas int, t *core.Sensitivity) *core.JobSpec {
	return &core.JobSpec{Requested: replicas, MinReplicas: replicas, MaxReplicas: replicas, Sensitivity: t}
}

// Three of four jobs need 1 CPU, so that the fourth can have 9 of 12, which makes it 3 times as fast: tune reaches the bound. Two such jobs cannot both.
func TestReach(t *testing.T) {
	light := &core.Sensitivity{Base: amounts(3, 10), Ideal: amounts(1, 10), Speedup: 1}
	heavy := &core.Sensitivity{Base: amounts(3, 10), Ideal: amounts(9, 10), Speedup: 3}
	r, err := Reach(t.Context(), reachCluster(1), []*core.JobSpec{reachJob(1, light), reachJob(1, light), reachJob(1, light), reachJob(1, heavy), reachJob(1, heavy)})
	if err != nil || r.Running != 4 || r.Waiting != 1 || r.Devices != 4 || r.Fair != 4 || r.Tune != 6 || math.Abs(r.Best.Bound-6) > 1e-6 || math.Abs(r.Best.Value-6) > 1e-6 {
		t.Errorf("%+v, error %v; want 4 of 5 running at 4, 6 of 6", r, err)
	}
	r, err = Reach(t.Context(), reachCluster(1), []*core.JobSpec{reachJob(2, heavy), reachJob(2, heavy)})
	if err != nil || r.Tune != 2 || r.Best.Value < 2 || r.Best.Bound < 2 {
		t.Errorf("%+v, error %v; want nobody above the proportional share", r, err)
	}
	if r, err = Reach(t.Context(), reachCluster(1), nil); err != nil || r.Running != 0 || r.Best.Bound != 0 {
		t.Errorf("of nobody %+v, error %v", r, err)
	}
	uncounted, untold := reachCluster(1), reachCluster(2)
	uncounted.CountsResources, untold.Nodes[1].MemoryGB = false, 0
	for _, tc := range []struct {
		c    *core.Cluster
		want string
	}{{uncounted, "not counted"}, {untold, "does not report"}} {
		if _, err := Reach(t.Context(), tc.c, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
}

// Whatever the jobs, nobody is slower with tune than with the proportional share, and neither tune nor the best division found is above the bound.
func TestReachIsBelowTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var specs []*core.JobSpec
		for range rapid.IntRange(0, 12).Draw(t, "jobs") {
			of := &core.Sensitivity{
				Base:    amounts(float64(rapid.IntRange(1, 4).Draw(t, "base CPUs")), float64(rapid.IntRange(5, 15).Draw(t, "base memory"))),
				Ideal:   amounts(float64(rapid.IntRange(1, 9).Draw(t, "CPUs")), float64(rapid.IntRange(5, 30).Draw(t, "memory"))),
				Speedup: rapid.Float64Range(1, 4).Draw(t, "speed-up"),
			}
			if of.Ideal.CPUs <= of.Base.CPUs && of.Ideal.MemoryGB <= of.Base.MemoryGB {
				of.Speedup = 1
			}
			specs = append(specs, reachJob(rapid.IntRange(1, 6).Draw(t, "replicas"), of))
		}
		r, err := Reach(t.Context(), reachCluster(rapid.IntRange(1, 3).Draw(t, "nodes")), specs)
		if err != nil {
			t.Fatal(err)
		}
		if r.Running+r.Waiting != len(specs) || r.Tune < r.Fair-1e-9 || r.Best.Bound < r.Tune-1e-6 || r.Best.Bound < r.Best.Value-1e-6 {
			t.Fatalf("%+v of %d jobs", r, len(specs))
		}
	})
}

func amounts(cpus, memoryGB float64) core.Resources {
	return core.Resources{CPUs: cpus, MemoryGB: memoryGB}
}
