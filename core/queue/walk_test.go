package queue_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/queue"
)

// Backfill and blocking never grant more than there is, but for one last grant that says why the others wait.
func TestWalkStaysWithinCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []*coretest.JobBuilder
		for range rapid.IntRange(0, 20).Draw(t, "jobs") {
			jobs = append(jobs, coretest.MakeJob("a").Replicas(rapid.IntRange(1, 9).Draw(t, "replicas")).Waiting())
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Jobs(jobs...).Obj()
		w := queue.Walk{Discipline: rapid.SampledFrom([]string{queue.Backfill, queue.Blocking}).Draw(t, "queue")}
		candidates := coretest.Candidates(v, coretest.Rigid)
		w.Begin(v, candidates)
		for i := range candidates {
			if !w.Offer(v, &candidates[i]) {
				break
			}
		}
		granted := 0
		for _, g := range w.Grants()[:w.Fitted()] {
			granted += g.Replicas
		}
		if granted > v.Devices {
			t.Fatalf("granted %d of %d devices", granted, v.Devices)
		}
		switch rest := w.Grants()[w.Fitted():]; {
		case len(rest) == 1 && w.Discipline == queue.Blocking && rest[0].Replicas > v.Devices-granted:
		case len(rest) > 0:
			t.Fatalf("%d grants after those that fit: %v", len(rest), rest)
		}
	})
}
