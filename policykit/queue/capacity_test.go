package queue_test

import (
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
