package queue_test

import (
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

func TestCapacityFollowsTheHealthOfAView(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "a100", 8).Nodes(2, "v100", 4).Obj()).Obj()
	var k queue.Capacity
	want := func(a100, v100 int) {
		t.Helper()
		if k.CountIn(v); k.ByType[0] != a100 || k.ByType[1] != v100 {
			t.Errorf("counts %v, want %d and %d", k.ByType, a100, v100)
		}
	}
	want(8, 8)
	v.Cluster.Nodes[1].Health = core.Down
	v.HealthChanges++
	want(8, 4)
	k.Count(coretest.MakeCluster().Nodes(1, "t4", 1).Nodes(1, "p4", 1).Obj())
	want(8, 4)
}

// A number of replicas is limited to the devices of the largest type that the job can run on, though not below its least.
func TestLimit(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "v100", 1).Nodes(1, "a100", 8).Nodes(1, "t4", 4).Obj()
	var k queue.Capacity
	k.Count(cluster)
	for name, tc := range map[string]struct {
		on       []string
		least, n int
		want     int
	}{
		"what any type has":              {nil, 1, 2, 2},
		"what some types have":           {nil, 1, 3, 3},
		"what the largest type has":      {nil, 1, 8, 8},
		"more than any has":              {nil, 1, 9, 8},
		"what its type has":              {[]string{"t4"}, 1, 4, 4},
		"more than its type has":         {[]string{"t4"}, 1, 5, 4},
		"more than the first has":        {[]string{"v100"}, 1, 3, 2},
		"more than either of its types":  {[]string{"v100", "t4"}, 1, 9, 4},
		"its least, which is not there":  {[]string{"v100"}, 3, 3, 3},
		"more than its least":            {[]string{"v100"}, 3, 6, 3},
		"less than its least":            {[]string{"v100"}, 5, 4, 4},
		"its least is what its type has": {[]string{"t4"}, 4, 6, 4},
	} {
		c := core.Candidate{Job: core.NewJob(&core.JobSpec{Accelerators: tc.on}), Response: &core.Response{MinReplicas: tc.least, MaxReplicas: 10}}
		if got := k.Limit(&c, cluster, tc.n); got != tc.want {
			t.Errorf("%s: %d of %d replicas, want %d", name, got, tc.n, tc.want)
		}
	}
}

// The largest nodes are those that are ready now, of each type.
func TestLargestNodes(t *testing.T) {
	c := coretest.MakeCluster().Nodes(1, "v100", 4).Nodes(1, "v100", 8).Nodes(1, "t4", 2).Nodes(1, "v100", 1).Obj()
	var k queue.Capacity
	for i, want := range [][]int{{8, 2}, {4, 2}, {4, 0}} {
		if i > 0 {
			c.Nodes[i].Health = core.Down
		}
		if k.Count(c); !slices.Equal(k.Largest, want) {
			t.Errorf("%d nodes are down: the largest have %v devices, want %v", i, k.Largest, want)
		}
	}
}
