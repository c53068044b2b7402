package queue_test

import (
	"slices"
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

// Each round, a candidate that asks for more than the ready nodes have is granted what they have.
func TestWalkFollowsTheHealthOfNodes(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(3, "t4", 2).Obj()).Jobs(coretest.MakeJob("a").Replicas(8).Waiting()).Obj()
	candidates := coretest.Candidates(v, func(j *core.Job) core.Response { return core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 8} })
	w := queue.Walk{Discipline: queue.Backfill}
	for down, want := range []int{6, 4, 2} {
		if down > 0 {
			v.Cluster.Nodes[down].Health = core.Down
			v.HealthChanges++
			v.Devices -= 2
		}
		w.Begin(v)
		w.Offer(v, &candidates[0])
		if g := w.Grants(); len(g) != 1 || g[0].Replicas != want || w.Fitted() != 1 {
			t.Errorf("%d nodes down: granted %v, %d of them fit; want %d replicas", down, g, w.Fitted(), want)
		}
	}
}

// Take and Keep grant whatever is left; what is kept is counted, and one that is pinned to its devices is granted them once.
func TestWalkTakesWhateverIsLeft(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(
		coretest.MakeJob("pinned").Replicas(1).Pinned().Running(0, coretest.Seat(0, 0)),
		coretest.MakeJob("runs").Replicas(2).Running(0, coretest.Seat(0, 1, 2)),
		coretest.MakeJob("fits").Replicas(1).Waiting(),
		coretest.MakeJob("larger").Replicas(2).Waiting(),
	).Obj()
	candidates := coretest.Candidates(v, coretest.Rigid)
	w := queue.Walk{Discipline: queue.Backfill}
	w.Begin(v)
	w.KeepPinned(v, candidates)
	w.Keep(v, &candidates[0])
	w.Keep(v, &candidates[1])
	if w.Kept() != 2 || len(w.Grants()) != 2 {
		t.Errorf("%d kept of the grants %v, want two of two", w.Kept(), w.Grants())
	}
	for i, want := range []bool{true, false, true, false} { // one device is left
		if got := w.Fits(v, &candidates[i]); got != want {
			t.Errorf("job %d fits: %v, want %v", i, got, want)
		}
	}
	w.Take(v, &candidates[0])
	w.Take(v, &candidates[3])
	var got []core.JobID
	for _, g := range w.Grants() {
		got = append(got, g.Job)
	}
	if !slices.Equal(got, []core.JobID{0, 1, 3}) || w.Kept() != 2 || w.Fitted() != 3 {
		t.Errorf("granted jobs %v, %d of them kept; want 0 and 1, kept, and 3", got, w.Kept())
	}
	if w.Fits(v, &candidates[2]) {
		t.Error("a job fits, though more than all devices are taken")
	}
}

// Those who are not pinned are offered what is left beside those who are. Without KeepPinned a pinned job is offered devices as any other.
func TestWalkOffersTheOthers(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(
		coretest.MakeJob("waits").Replicas(2).Waiting(),
		coretest.MakeJob("pinned").Replicas(1).Pinned().Running(0, coretest.Seat(0, 0)),
	).Obj()
	candidates := coretest.Candidates(v, coretest.Rigid)
	for name, tc := range map[string]struct {
		keep bool
		want []core.JobID
	}{
		"pinned first": {true, []core.JobID{1, 0}},
		"in order":     {false, []core.JobID{0, 1}},
	} {
		w := queue.Walk{Discipline: queue.Backfill}
		w.Begin(v)
		if tc.keep {
			w.KeepPinned(v, candidates)
		}
		for i := range candidates {
			w.Offer(v, &candidates[i])
		}
		var got []core.JobID
		for _, g := range w.Grants() {
			got = append(got, g.Job)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: granted jobs %v, want %v", name, got, tc.want)
		}
	}
}
