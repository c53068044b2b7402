package queue_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/coretest/drawn"
	"github.com/quartet-sched/quartet/policykit/queue"
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
		w.Begin(v)
		w.KeepPinned(v, candidates)
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

// Those who stay are granted what they hold before anybody else, once, however the walk goes on; the others share what is left.
func TestWalkGrantsThePinnedFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, candidates := drawn.View(t)
		w := queue.Walk{Discipline: rapid.SampledFrom([]string{queue.Backfill, queue.Blocking, queue.All}).Draw(t, "queue")}
		w.Begin(v)
		w.KeepPinned(v, candidates)
		pinned := len(w.Grants())
		if pinned != w.Kept() || pinned != w.Fitted() {
			t.Fatalf("%d grants, %d kept, %d that fit", pinned, w.Kept(), w.Fitted())
		}
		order := rapid.Permutation(candidates).Draw(t, "order")
		keeps := rapid.IntRange(0, len(order)).Draw(t, "kept")
		for i := range order {
			if i < keeps {
				w.Keep(v, &order[i])
			} else if !w.Offer(v, &order[i]) {
				break
			}
		}
		held, granted, at := 0, 0, map[core.JobID]int{}
		for i, g := range w.Grants() {
			if _, again := at[g.Job]; again {
				t.Fatalf("job %d is granted twice: %v", g.Job, w.Grants())
			}
			at[g.Job] = i
			if i < w.Fitted() {
				granted += g.Replicas
			}
		}
		for i := range candidates {
			c := &candidates[i]
			if !c.MustStay(v.Cluster, c.Response) {
				continue
			}
			held += c.Held
			if n, ok := at[c.ID]; !ok || n >= pinned || w.Grants()[n].Replicas != c.Held {
				t.Fatalf("job %d, pinned to %d devices, is not among the first %d grants: %v", c.ID, c.Held, pinned, w.Grants())
			}
		}
		if held != queue.Pinned(v, candidates) {
			t.Fatalf("%d devices are pinned, counted %d", held, queue.Pinned(v, candidates))
		}
		if all := w.Discipline == queue.All || w.Discipline == queue.Blocking && len(v.Cluster.Accelerators) > 1; keeps == 0 && !all && granted > v.Devices {
			t.Fatalf("granted %d of %d devices", granted, v.Devices)
		}
	})
}
