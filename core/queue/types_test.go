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

// Where jobs can be on a device together, those who are kept leave it to the placer who else fits; others end where the devices do.
func TestBlockingGrantsEveryoneWhoIsKeptBesideOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		keeps  bool
		how    core.Sharing
		pinned bool
		grants int
		until  float64
	}{
		"whole devices":             {true, core.Exclusive, true, 2, 500},
		"parts":                     {true, core.Fractional, true, 3, 500},
		"nobody is kept":            {false, core.Fractional, false, 2, 60},
		"nobody is kept, turns":     {false, core.TimeSlice, false, 2, 60},
		"one comes first":           {false, core.Mig, true, 2, 60},
		"one has devices as others": {false, core.Exclusive, true, 2, 500},
	} {
		t.Run(name, func(t *testing.T) {
			b := coretest.MakeJob("b").Replicas(3).Share(500).Waiting()
			if tc.pinned {
				b = b.Pinned()
			}
			c := coretest.MakeCluster().Nodes(1, "a100", 4).Obj()
			c.Sharing = tc.how
			v := coretest.MakeView(c).Now(60).Jobs(coretest.MakeJob("a").Replicas(2).Share(500).Waiting(), b, coretest.MakeJob("c").Share(500).Waiting()).Obj()
			w := queue.Walk{Discipline: queue.Blocking, Keeps: tc.keeps}
			candidates := coretest.Candidates(v, coretest.Rigid)
			for range 2 { // what was so in one round is forgotten in the next
				w.Begin(v)
				w.KeepPinned(v, candidates)
				for i := range candidates {
					if !w.Offer(v, &candidates[i]) {
						break
					}
				}
			}
			if got := len(w.Grants()); got != tc.grants {
				t.Errorf("%d grants, want %d", got, tc.grants)
			}
			if got := w.Standing(core.Standing{UntilSeconds: 500, IfSeated: 1}); got != (core.Standing{UntilSeconds: tc.until, IfSeated: 1}) {
				t.Errorf("stands %+v, want until %v s", got, tc.until)
			}
			w.Begin(v)
			if got := w.Standing(core.Standing{UntilSeconds: 500}); got.UntilSeconds != 500 {
				t.Errorf("a round that has just begun stands until %v s, want 500", got.UntilSeconds)
			}
		})
	}
}
