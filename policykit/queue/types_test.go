package queue_test

import (
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/queue"
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
		"nobody is kept, parts":     {false, core.Fractional, false, 3, 500},
		"nobody is kept, turns":     {false, core.TimeSlice, false, 2, 60},
		"nobody is kept, slices":    {false, core.Mig, false, 3, 500},
		"nobody is kept":            {false, core.Exclusive, false, 2, 500},
		"one comes first, slices":   {false, core.Mig, true, 3, 500},
		"one comes first":           {false, core.TimeSlice, true, 2, 60},
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

// Where jobs have parts of devices the walk counts these: it ends with a grant that the parts left do not suffice for, and never for one that takes nothing of a device.
func TestWalkCountsFractions(t *testing.T) {
	for name, tc := range map[string]struct {
		how        core.Sharing
		discipline string
		milli      []int // of each job; whole devices for -1
		want       []core.JobID
	}{
		"quarters":                          {core.Fractional, queue.Backfill, []int{250, 250, 250, 250, 250}, []core.JobID{0, 1, 2, 3}},
		"quarters, none may pass":           {core.Fractional, queue.Blocking, []int{250, 250, 250, 250, 250, 1}, []core.JobID{0, 1, 2, 3, 4}},
		"one is passed":                     {core.Fractional, queue.Backfill, []int{600, 401, 400, 1}, []core.JobID{0, 2}},
		"none may pass":                     {core.Fractional, queue.Blocking, []int{600, 401, 400}, []core.JobID{0, 1}},
		"on CPUs alone":                     {core.Fractional, queue.Backfill, []int{-1, 1, 0, 0}, []core.JobID{0, 2, 3}},
		"whole devices":                     {core.Fractional, queue.Backfill, []int{-1, -1}, []core.JobID{0}},
		"slices of which seven fit":         {core.Mig, queue.Backfill, []int{142, 142, 142, 142, 142, 142, 142, 142}, []core.JobID{0, 1, 2, 3, 4, 5, 6}},
		"slices are larger than asked for":  {core.Mig, queue.Backfill, []int{500, 500, 400}, []core.JobID{0, 2}},
		"a slice that is a whole device":    {core.Mig, queue.Backfill, []int{-1, 100}, []core.JobID{0}},
		"turns are with whole devices":      {core.TimeSlice, queue.Backfill, []int{250, 250}, []core.JobID{0}},
		"devices that nobody shares":        {core.Exclusive, queue.Backfill, []int{250, 250}, []core.JobID{0}},
		"devices that nobody shares, CPUs":  {core.Exclusive, queue.Backfill, []int{-1, 0}, []core.JobID{0}},
		"all are granted for the placement": {core.Fractional, queue.All, []int{600, 600}, []core.JobID{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := coretest.MakeCluster().Nodes(1, "a100", 1).Obj()
			c.Sharing = tc.how
			var jobs []*coretest.JobBuilder
			for _, milli := range tc.milli {
				b := coretest.MakeJob("a").Waiting()
				if milli >= 0 {
					b = b.Share(milli)
				}
				jobs = append(jobs, b)
			}
			v := coretest.MakeView(c).Jobs(jobs...).Obj()
			w := queue.Walk{Discipline: tc.discipline}
			candidates := coretest.Candidates(v, coretest.Rigid)
			w.Begin(v)
			for i := range candidates {
				if !w.Offer(v, &candidates[i]) {
					break
				}
			}
			var got []core.JobID
			for _, g := range w.Grants() {
				got = append(got, g.Job)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("grants jobs %v, want %v", got, tc.want)
			}
		})
	}
}
