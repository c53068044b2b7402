package coretest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// whim is every stage at once, and ends and holds back whom it likes among the jobs that it is shown.
type whim struct {
	*chaos
	world   *world
	asked   map[core.JobID]float64 // those that were shown in this round, with the work that they have done
	ends    map[core.JobID]bool
	defers  map[core.JobID]bool
	waiting map[core.JobID]float64 // those that are held back, with the work that they have done
}

func (w *whim) Review(_ context.Context, v *core.View, jobs []*core.Job) (verdicts []core.Verdict, err error) {
	last := core.JobID(-1)
	for _, j := range jobs {
		_, held := w.waiting[j.ID]
		if j.ID <= last || j != v.Job(j.ID) || held != (j.State == core.Pending) || !held && len(j.Reported) == 0 {
			w.t.Fatalf("shown job %d after %d: %v, held back %v, with %d metrics", j.ID, last, j.State, held, len(j.Reported))
		}
		last, w.asked[j.ID] = j.ID, j.WorkDone(v.NowSeconds)
		switch intRange(0, 3).Draw(w.t, "review") {
		case 0:
			verdicts, w.ends[j.ID] = append(verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Pruned}), true
		case 1:
			if !j.Pinned || j.State != core.Running {
				verdicts, w.defers[j.ID] = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults}), !held
			}
		}
	}
	for id := range w.waiting {
		if _, shown := w.asked[id]; !shown && v.Job(id) != nil {
			w.t.Fatalf("job %d is held back, and was not shown", id)
		}
	}
	return verdicts, nil
}

func (w *whim) Admit(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	for _, j := range waiting {
		if w.defers[j.ID] {
			w.t.Fatalf("asked about job %d in the round in which it was held back", j.ID)
		}
	}
	verdicts, err := w.chaos.Admit(ctx, v, waiting)
	for i := range verdicts {
		if verdicts[i].Code == core.Defer && anyBool().Draw(w.t, "awaits") {
			verdicts[i].Reason = core.AwaitingResults
		}
	}
	return verdicts, err
}

func (w *whim) ObserveRound(r *core.Report) error {
	finished, used := 0, 0
	for _, c := range r.Changes {
		j := r.View.Job(c.Job)
		switch c.Action {
		case core.Pause:
			if !w.defers[c.Job] || j.State != core.Pending || j.Held != 0 || j.Seats != nil || j.ProgressRate != 0 || j.Progress != w.asked[c.Job] || slices.Contains(r.View.Active, c.Job) {
				w.t.Fatalf("job %d was paused with %v done: %+v", c.Job, w.asked[c.Job], j)
			}
		case core.Finish:
			finished++
			at := slices.IndexFunc(r.Ended, func(j *core.Job) bool { return j.ID == c.Job })
			if !w.ends[c.Job] || j != nil || at < 0 {
				w.t.Fatalf("job %d was ended, and is %+v", c.Job, j)
			}
			if e := r.Ended[at]; e.State != core.Completed || e.Held != 0 || e.WorkDone(math.Inf(1)) != w.asked[c.Job] || e.WaitingReason != core.Pruned {
				w.t.Fatalf("job %d was ended with %v done: %+v", c.Job, w.asked[c.Job], e)
			}
		}
	}
	if finished != len(w.ends) {
		w.t.Fatalf("%d jobs were ended, of %d", finished, len(w.ends))
	}
	for id := range w.defers {
		if j := r.View.Job(id); w.defers[id] && (j == nil || j.State != core.Pending && j.State != core.Rejected) {
			w.t.Fatalf("job %d was held back, and is %+v", id, j)
		}
	}
	was := w.waiting
	w.waiting = map[core.JobID]float64{}
	for _, j := range r.View.Jobs {
		if j == nil {
			continue
		}
		used += j.Held
		if work, held := was[j.ID]; held && j.State == core.Pending {
			w.waiting[j.ID] = work
			if j.Held != 0 || j.WorkDone(r.View.NowSeconds) != work {
				w.t.Fatalf("job %d is held back, and has done %v instead of %v", j.ID, j.WorkDone(r.View.NowSeconds), work)
			}
		} else if j.State == core.Pending && (w.defers[j.ID] || j.WaitingReason == core.AwaitingResults) {
			w.waiting[j.ID] = j.Progress
		}
	}
	if used != r.DevicesUsed {
		w.t.Fatalf("%d devices are used, jobs hold %d", r.DevicesUsed, used)
	}
	clear(w.asked)
	clear(w.ends)
	clear(w.defers)
	return w.world.ObserveRound(r)
}

// In random worlds a job that is held back holds nothing and keeps its progress, and one that is ended is completed with what it did.
func TestReviewsInRandomWorlds(t *testing.T) {
	var ends, pauses int
	inWorlds(t, func(t *T) {
		w := drawWorld(t)
		w.reports, w.pins = true, true
		rest := &whim{
			chaos: &chaos{t: t}, world: w,
			asked: map[core.JobID]float64{}, ends: map[core.JobID]bool{}, defers: map[core.JobID]bool{}, waiting: map[core.JobID]float64{},
		}
		interval := sampledFrom([]float64{0, 60}).Draw(t, "interval")
		p := core.NewPipeline(cloneCluster(w.cluster), compose(rest), core.PipelineOptions{
			Rounds: core.RoundOptions{IntervalSeconds: interval, OnEvents: interval == 0},
			Observers: []core.Observer{rest, counted(func(r *core.Report) {
				for _, c := range r.Changes {
					ends += map[core.Action]int{core.Finish: 1}[c.Action]
					pauses += map[core.Action]int{core.Pause: 1}[c.Action]
				}
			})},
		})
		for range intRange(1, 16).Draw(t, "rounds") {
			hold(t, p, w.step(), w)
		}
	})
	if ends == 0 || pauses == 0 {
		t.Errorf("%d ends and %d pauses: nothing was looked at", ends, pauses)
	}
}

type counted func(r *core.Report)

func (c counted) ObserveRound(r *core.Report) error {
	c(r)
	return nil
}

// review is plain and reviews.
type review struct {
	plain
	of func(j *core.Job) (core.Verdict, bool)
}

func (r review) Review(_ context.Context, _ *core.View, jobs []*core.Job) (verdicts []core.Verdict, err error) {
	for _, j := range jobs {
		if v, some := r.of(j); some {
			verdicts = append(verdicts, v)
		}
	}
	return verdicts, nil
}

func TestRunAdmitterCatchesReviewers(t *testing.T) {
	always := func(v core.Verdict) func() core.Admitter {
		return func() core.Admitter {
			return review{of: func(j *core.Job) (core.Verdict, bool) {
				v := v
				v.Job += j.ID
				return v, true
			}}
		}
	}
	moods := 0
	for name, tc := range map[string]fault[core.Admitter]{
		"a job that it was not shown": {"rounds", "was not asked about", always(core.Verdict{Job: 1000, Code: core.End, Reason: core.Pruned})},
		"a rejection":                 {"rounds", "code reject", always(core.Verdict{Code: core.Reject, Reason: core.Pruned})},
		"an end without a reason":     {"rounds", "without a reason", always(core.Verdict{Code: core.End})},
		"a reason outside the list":   {"rounds", "reason unknown", always(core.Verdict{Code: core.End, Reason: 200})},
		"a pinned job held back":      {"rounds", "holds back a pinned job", always(core.Verdict{Code: core.Defer, Reason: core.AwaitingResults})},
		"a changed series": {"rounds", "changed what it was given", func() core.Admitter {
			return review{of: func(j *core.Job) (core.Verdict, bool) {
				for i := range j.Reported {
					j.Reported[i].Points[0].Value++
				}
				return core.Verdict{}, false
			}}
		}},
		"another mood each time": {"rounds", "not deterministic", func() core.Admitter {
			return review{of: func(j *core.Job) (core.Verdict, bool) {
				moods++
				return core.Verdict{Job: j.ID, Code: core.End, Reason: core.Pruned}, moods%2 == 0
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			wantCaught(t, checks(admitterSlot("fake"), factoryOf(tc.create), []Option{Reporting(), Pinning()}), tc.check, tc.want)
		})
	}
	t.Run("and lets those through that keep to it", func(t *testing.T) {
		runChecks(t, checks(admitterSlot("fake"), factoryOf(func() core.Admitter {
			return review{of: func(j *core.Job) (core.Verdict, bool) {
				return core.Verdict{Job: j.ID, Code: core.End, Reason: core.Pruned}, len(j.Reported) > 1
			}}
		}), []Option{Reporting(), Pinning()}))
	})
}
