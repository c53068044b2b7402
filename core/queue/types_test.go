package queue_test

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/queue"
)

// A job that does not fit blocks those behind it on the types that it can use only: the placer must see the others.
func TestBlockingGrantsEveryoneWhereTypesDiffer(t *testing.T) {
	c := coretest.MakeCluster().Nodes(1, "a100", 4).Nodes(1, "v100", 4).Obj()
	v := coretest.MakeView(c).Jobs(
		coretest.MakeJob("a").Replicas(9).Waiting(), coretest.MakeJob("b").Replicas(1).Waiting(), coretest.MakeJob("c").Replicas(2).Waiting(),
	).Obj()
	w := queue.Walk{Discipline: queue.Blocking}
	candidates := coretest.Candidates(v, coretest.Rigid)
	w.Begin(v)
	w.KeepPinned(v, candidates)
	for i := range candidates {
		if !w.Offer(v, &candidates[i]) {
			t.Fatalf("the walk ends at job %d", i)
		}
	}
	for i, g := range w.Grants() {
		if g.Job != core.JobID(i) || !g.Blocking {
			t.Errorf("grant %d is %+v, want a blocking one of job %d", i, g, i)
		}
	}
	if got := len(w.Grants()); got != 3 {
		t.Errorf("%d grants, want 3", got)
	}
}
