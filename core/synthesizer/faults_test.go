package synthesizer

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

var errNotMade = errors.New("no such program")

func gains(candidate, _ int) (float64, error) { return 500 - 100*float64(candidate), nil }

func (w *world) breaks(i int) {
	w.s.candidates[i].Compose = func() (*core.Composition, error) { return nil, errNotMade }
}

// The best one cannot be made. The run goes on as it was, and the next best takes over.
func TestACandidateCannotBeMade(t *testing.T) {
	w := newWorld(t, settings(), gains)
	w.breaks(2)
	var got []string
	for _, at := range []float64{60, 120, 180, 240} {
		w.hold(at)
		got = append(got, w.choose())
	}
	if diff := cmp.Diff([]string{"", "", "", "b"}, got); diff != "" {
		t.Errorf("chose (-want +got):\n%s", diff)
	}
	if m := w.s.Summary(240); m.Switches != 1 || m.Log[0].From != "a" {
		t.Errorf("switched %+v", m.Log)
	}
}

// One that panics in a future fails in the look, and the next best takes over.
func TestACandidatePanicsInAFuture(t *testing.T) {
	w := newWorld(t, settings(), func(candidate, draw int) (float64, error) {
		if candidate == 2 && draw == 1 {
			panic("on its own")
		}
		return gains(candidate, draw)
	})
	var got []string
	for _, at := range []float64{60, 120, 180} {
		w.hold(at)
		got = append(got, w.choose())
	}
	if diff := cmp.Diff([]string{"", "b", ""}, got); diff != "" {
		t.Errorf("chose (-want +got):\n%s", diff)
	}
}

// A candidate whose switch is to be taken back stays where the one before it cannot be made.
func TestTheWayBackCannotBeMade(t *testing.T) {
	w := newWorld(t, settings(), func(candidate, draw int) (float64, error) { return 400 - 100*float64(candidate) + float64(draw), nil })
	w.choose()
	w.hold(1)
	if got := w.choose(); got != "c" {
		t.Fatalf("chose %q", got)
	}
	w.breaks(0)
	w.hold(510) // the job was to end by 209, and by 409 without the switch
	if got := w.choose(); got != "" {
		t.Errorf("chose %q", got)
	}
	if w.s.is.InForce != 2 || w.s.deciding != 2 || w.s.is.barred(2, 510) || !w.s.is.barred(0, 510) {
		t.Errorf("in force is %d, deciding %d", w.s.is.InForce, w.s.deciding)
	}
	w.hold(600) // the switch was measured, and is not measured again
	if got := w.choose(); got != "" || w.s.is.Failed[0] != 1 {
		t.Errorf("chose %q; the way back failed %d times, want once", got, w.s.is.Failed[0])
	}
}

// Under a bandit, one that cannot be made is passed over.
func TestABanditPassesOverOneThatCannotBeMade(t *testing.T) {
	s := settings()
	s.Method, s.HorizonSeconds = Bandit, 4000
	w := newWorld(t, s, nil)
	w.breaks(1)
	var got []string
	for i, at := range []float64{200, 400, 600} {
		ended := &core.Job{JobSpec: &core.JobSpec{ID: core.JobID(i + 1), SubmitSeconds: at - 200, Requested: 1}, State: core.Completed, Attained: 50, FinishSeconds: at}
		w.hold(at)
		if err := w.s.ObserveRound(&core.Report{View: w.View(), Ended: []*core.Job{ended}}); err != nil {
			t.Fatal(err)
		}
		if name := w.choose(); name != "" {
			got = append(got, name)
		}
	}
	if len(got) == 0 || got[0] != "c" {
		t.Errorf("chose %q, want c first", got)
	}
}

// A run that was left under a candidate that cannot be made any more goes on with its first one; one whose choice cannot be read begins anew.
func TestARunGoesOnWithTheFirst(t *testing.T) {
	w := newWorld(t, settings(), gains)
	w.choose()
	w.hold(60)
	w.choose()
	learned, err := w.s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := newWorld(t, settings(), gains)
	next.breaks(2)
	if err := next.s.Restore(learned); err != nil {
		t.Fatal(err)
	}
	if got := next.choose(); got != "" || next.s.is.InForce != 0 || !next.s.is.barred(2, 0) {
		t.Errorf("chose %q, in force is %d", got, next.s.is.InForce)
	}
	if m := next.s.Summary(0); m.Switches != 2 || m.Log[1].To != "a" {
		t.Errorf("switched %+v", m.Log)
	}
	other := newWorld(t, settings(), gains)
	if err := other.s.Restore([]byte(`{"in_force": "c"`)); err == nil || other.s.is.InForce != 0 {
		t.Errorf("error %v, in force is %d", err, other.s.is.InForce)
	}
}

// A job that ended while the look ran counts by its end, not as if it were there still.
func TestEndsWhileALookRuns(t *testing.T) {
	s := settings()
	s.Background, s.PauseSeconds = true, 60
	w := newWorld(t, s, gains)
	w.hold(60)
	w.choose()
	<-w.s.pending.done
	w.hold(120)
	w.choose() // takes the first, and begins another
	<-w.s.pending.done
	w.hold(130, core.Event{Kind: core.JobFinished, Job: 0, AtSeconds: 125})
	if err := w.s.ObserveRound(&core.Report{View: w.View(), Ended: []*core.Job{{JobSpec: &core.JobSpec{ID: 0}, State: core.Completed, FinishSeconds: 125}}}); err != nil {
		t.Fatal(err)
	}
	if got := w.choose(); got != "c" {
		t.Fatalf("chose %q", got)
	}
	if diff := cmp.Diff([]float64{125}, w.s.is.Promise.Ends); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
	w.hold(640)
	if got := w.choose(); got != "" {
		t.Errorf("took back to %q", got)
	}
	w.s.Close()
}

// A round waits for no look, even one that does not heed that it was given up; no other begins until that has ended.
func TestALookThatDoesNotEnd(t *testing.T) {
	s := settings()
	s.Background, s.PauseSeconds = true, 60
	open, looks := make(chan struct{}), make(chan struct{}, 100)
	w := newWorld(t, s, func(int, int) (float64, error) {
		looks <- struct{}{}
		<-open
		return 500, nil
	})
	w.hold(60)
	w.choose()
	first := w.s.pending
	<-looks // it simulates
	w.hold(120)
	w.choose() // would hang
	if w.s.pending != nil || w.s.leaving != first {
		t.Error("another look began beside it")
	}
	w.hold(180)
	w.choose()
	if w.s.pending != nil || w.s.leaving != first {
		t.Error("another look began beside it, at the next one due")
	}
	close(open)
	<-first.done
	w.hold(240)
	w.choose()
	if w.s.pending == nil || w.s.leaving != nil {
		t.Error("no look began when it had ended")
	}
	w.s.Close()
	if w.s.pending != nil || w.s.leaving != nil {
		t.Error("a look is left")
	}
}

// Without a pause a look has time until the next is due by rounds.
func TestWhenALookIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		pause, interval float64
		every           int
		want            float64
	}{
		"by rounds":            {0, 60, 10, 600},
		"by the pause":         {900, 60, 10, 900},
		"at once, a second":    {0, 0, 1, 1},
		"rounds after a pause": {30, 60, 1, 60},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings()
			s.PauseSeconds, s.EveryRounds = tc.pause, tc.every
			if got := newWorld(t, s, gains).s.dueSeconds(&core.View{IntervalSeconds: tc.interval}); got != tc.want {
				t.Errorf("%v s, want %v", got, tc.want)
			}
		})
	}
}

// Stays that no job can be credited for are forgotten, and what is credited stays the same.
func TestABanditForgetsStays(t *testing.T) {
	b := newBandit(2)
	all := newBandit(2)
	for i := range 200 {
		now := float64(i * 100)
		old := &core.Job{JobSpec: &core.JobSpec{ID: core.JobID(i), SubmitSeconds: max(0, now-250), Requested: 1}, State: core.Completed, Attained: 10, FinishSeconds: now}
		there := &core.Job{JobSpec: &core.JobSpec{ID: core.JobID(i + 1), SubmitSeconds: max(0, now-150), Requested: 1}, Attained: 10}
		newer := &core.Job{JobSpec: &core.JobSpec{ID: core.JobID(i + 2), SubmitSeconds: max(0, now-50), Requested: 1}, Attained: 10}
		r := &core.Report{View: &core.View{NowSeconds: now, Jobs: []*core.Job{nil, there, newer}}, Ended: []*core.Job{old}}
		b.observe(r, i%2, 1e4)
		r.View = &core.View{NowSeconds: now, Jobs: []*core.Job{{JobSpec: &core.JobSpec{}}}} // one was there from the beginning
		all.observe(r, i%2, 1e4)
	}
	if len(all.InForce) != 200 || len(b.InForce) > 5 {
		t.Errorf("%d stays are kept of %d", len(b.InForce), len(all.InForce))
	}
	if diff := cmp.Diff(all.Sum, b.Sum); diff != "" {
		t.Errorf("credited (-all +kept):\n%s", diff)
	}
}
