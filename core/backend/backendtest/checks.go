package backendtest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

var checks = []check{
	{"jobs are submitted once and in order", submissions},
	{"wakes when asked to", wakesByItself},
	{"wakes on the grid", wakesOnTheGrid},
	{"the end is the end", ends},
	{"a context that ends loses nothing", cancels},
	{"a job runs to its end", runsToItsEnd},
	{"a job fails", fails},
	{"a job is stopped and started again", stopsAndStarts},
	{"a job moves, and another takes its place", moves},
	{"a job ends while it is being stopped", stopsTooLate},
	{"a round is applied again after its jobs have ended", appliesAfterTheEnd},
	{"a round is applied again after a later one", appliesAfterALaterRound},
	{"a job is tuned", tunes},
	{"a discarded job is over", discards},
	{"a job that is ended early lets go and is over", finishes},
	{"a paused job lets go, and resumes when it is started again", pauses},
	{"an unknown job is an error", refusesTheUnknown},
	{"capabilities stay", keepsCapabilities},
	{"closes twice", closesTwice},
	{"another scheduler takes over", takesOver},
	{"a pipeline runs, on events", func(t testing.TB, h *Harness) { runsPipeline(t, h, core.RoundOptions{OnEvents: true}) }},
	{"a pipeline runs, on a grid", func(t testing.TB, h *Harness) {
		runsPipeline(t, h, core.RoundOptions{IntervalSeconds: 2 * h.UnitSeconds})
	}},
}

func submissions(t testing.TB, h *Harness) {
	w := []Job{{Name: "first"}, {Name: "second"}, {SubmitSeconds: 2}, {SubmitSeconds: 2}, {SubmitSeconds: 5}}
	for i := range w {
		w[i].Seconds = Endless
	}
	s := open(t, h, w...)
	s.submitted(len(w))
	for i, j := range h.scaled(w) {
		spec := s.jobs[i].spec
		if spec.Name != j.Name || spec.Requested != j.Replicas {
			t.Errorf("job %d is %q with %d replicas, want %q with %d", i, spec.Name, spec.Requested, j.Name, j.Replicas)
		}
		if at := s.jobs[i].at; at < j.SubmitSeconds || h.Exact && at > j.SubmitSeconds {
			t.Errorf("job %d is submitted at %v s, want %v s", i, at, j.SubmitSeconds)
		}
	}
}

// The session checks the moments.
func wakesByItself(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: Endless})
	s.submitted(1)
	s.apply(start(0, firstOfA))
	s.news = nil
	for range 3 {
		s.wantNews("while nothing happens")
	}
}

func wakesOnTheGrid(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 3}, Job{SubmitSeconds: 3, Seconds: 1})
	grid := core.Wake{BySeconds: math.Inf(1), IntervalSeconds: 2 * h.UnitSeconds}
	s.next(grid)
	s.apply(start(0, firstOfA))
	for len(s.jobs) < 2 {
		s.next(grid)
		s.apply()
	}
	s.apply(start(1, firstOfB))
	for s.jobs[0].ended == nil || s.jobs[1].ended == nil {
		s.next(grid)
		s.apply()
	}
	s.over()
}

func ends(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 1}, Job{Seconds: 2})
	s.submitted(2)
	s.apply(start(0, firstOfA), start(1, firstOfB))
	s.end(0)
	s.end(1)
	s.over()
	if err := s.backend.Apply(context.Background(), nil); err != nil {
		t.Errorf("no changes after the end: %v", err)
	}
}

// pause is how long a test lets a call wait before it ends its context.
const pause = 50 * time.Millisecond

func cancels(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: Endless}, Job{Seconds: 1})
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	inVain := func() {
		t.Helper()
		if _, err := s.tryNext(gone, onEvents); err == nil {
			s.apply()
		} else if !errors.Is(err, context.Canceled) {
			t.Fatalf("with a context that has ended: %v, want its error or a round", err)
		}
	}
	inVain()
	s.submitted(2)
	s.apply(start(0, firstOfA), start(1, firstOfB))
	inVain()
	if e := s.end(1); e.Kind != core.JobFinished {
		t.Errorf("the job %v, want it finished", e.Kind)
	}
	soon, cancel := context.WithCancel(context.Background())
	time.AfterFunc(pause, cancel)
	returned := make(chan error, 1)
	go func() {
		_, err := s.tryNext(soon, onEvents)
		returned <- err
	}()
	select {
	case err := <-returned:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("a context that ends: %v, want its error or a round", err)
		}
	case <-time.After(patience):
		t.Fatalf("Next did not return within %v of the end of its context", patience)
	}
	if s.jobs[0].ended == nil { // on a virtual clock it may
		s.pass(1)
	}
}

func runsToItsEnd(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 2}, Job{Seconds: 1, Replicas: 2})
	s.submitted(2)
	from := s.now
	s.apply(start(0, firstOfB), start(1, bothOfA))
	for id, seconds := range []float64{2 * h.UnitSeconds, h.UnitSeconds} {
		e := s.end(core.JobID(id))
		if e.Kind != core.JobFinished {
			t.Errorf("job %d: %v, want it finished", id, e.Kind)
		}
		h.checkSpan(t, e.AtSeconds-from, seconds)
	}
	s.over()
}

// slack is how much a job may seem too short where files tell when it ended.
const slack = 0.02

// checkSpan holds the time that a job ran for against what it was asked to run for.
func (h *Harness) checkSpan(t testing.TB, got, want float64) {
	t.Helper()
	if h.Exact && math.Abs(got-want) > 1e-9*want || got < want-slack {
		t.Errorf("the job ran for %v s, want %v s", got, want)
	}
}

func fails(t testing.TB, h *Harness) {
	if h.NeverFails {
		t.Skip("the jobs of this backend do not fail")
	}
	s := open(t, h, Job{Seconds: 1, Fails: true})
	s.submitted(1)
	s.apply(start(0, firstOfA))
	if e := s.end(0); e.Kind != core.JobFailed {
		t.Errorf("the job %v, want it failed", e.Kind)
	}
	s.over()
}

func stopsAndStarts(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 9}, Job{Seconds: 1})
	s.submitted(2)
	s.apply(start(0, firstOfA))
	s.pass(1)
	s.apply(stop(0), start(1, firstOfA)) // in its place
	s.end(1)
	s.pass(1)
	if s.jobs[0].ended != nil {
		t.Fatalf("the stopped job %v", s.jobs[0].ended.Kind)
	}
	from := s.now
	s.apply(start(0, firstOfB))
	if e := s.end(0); e.Kind != core.JobFinished || e.AtSeconds < from {
		t.Errorf("the job %v at %v s, want it finished after its start at %v s", e.Kind, e.AtSeconds, from)
	}
	s.over()
}

func moves(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 3}, Job{Seconds: 1, Replicas: 2})
	s.submitted(2)
	s.apply(start(0, firstOfA))
	s.pass(1)
	s.apply(move(0, firstOfB), start(1, bothOfA))
	for id := range core.JobID(2) {
		if e := s.end(id); e.Kind != core.JobFinished {
			t.Errorf("job %d %v, want it finished", id, e.Kind)
		}
	}
	s.over()
}

// On a real clock the job ends before it is stopped, and the backend has not told yet.
func stopsTooLate(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 1}, Job{Seconds: 1})
	s.submitted(2)
	s.apply(start(0, firstOfA), start(1, firstOfB))
	if !h.Exact {
		time.Sleep(time.Duration(2 * h.UnitSeconds * float64(time.Second)))
	}
	s.apply(stop(0), move(1, firstOfA))
	s.pass(1)
	if s.jobs[0].ended == nil {
		s.apply(start(0, firstOfB))
	}
	for id := range core.JobID(2) {
		if e := s.end(id); e.Kind != core.JobFinished {
			t.Errorf("job %d %v, want it finished", id, e.Kind)
		}
	}
	s.over()
}

func appliesAfterTheEnd(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 1}, Job{Seconds: Endless})
	s.submitted(2)
	s.apply(start(0, firstOfA))
	decided := []core.Change{start(0, firstOfA), move(0, firstOfB), stop(0), {Action: core.Tune}, {Action: core.Discard}, {Action: core.Finish}, {Action: core.Pause}}
	s.end(0)
	for _, c := range decided {
		for _, c.Round = range []int{s.round, s.round + 1} {
			s.again(c)
		}
	}
	s.round++
	s.pass(1) // an event of the job would be one too many
}

func appliesAfterALaterRound(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 1}, Job{Seconds: Endless})
	s.submitted(2)
	s.apply(start(0, firstOfA), start(1, firstOfB))
	first := s.round
	s.apply(stop(0), stop(1))
	s.pass(1)
	for id, seats := range [][]core.Seat{firstOfA, firstOfB} {
		c := start(core.JobID(id), seats)
		c.Round = first
		s.again(c)
	}
	s.news = nil
	s.pass(2)
	if len(s.news) > 0 {
		t.Errorf("a repetition of round %d after round %d starts jobs: reported %q", first, s.round, s.news)
	}
}

func tunes(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 2}, Job{Seconds: 1})
	s.submitted(2)
	from := s.now
	s.apply(start(0, firstOfA))
	tune := func(id core.JobID) core.Change {
		return core.Change{Action: core.Tune, Job: id, Tuning: core.Tuning{Job: id, BatchPerDevice: 8, AccumulationSteps: 1, LearningRateFactor: 1}}
	}
	s.apply(tune(0), tune(1))
	h.checkSpan(t, s.end(0).AtSeconds-from, 2*h.UnitSeconds)
	s.pass(2)
	if s.jobs[1].ended != nil {
		t.Errorf("the job that was tuned without devices %v", s.jobs[1].ended.Kind)
	}
	s.apply(start(1, firstOfA))
	s.end(1)
	s.over()
}

func discards(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 1}, Job{Seconds: 1})
	s.submitted(2)
	s.apply(core.Change{Action: core.Discard, Job: 0}, core.Change{Action: core.Discard, Job: 1})
	s.over()
	if s.jobs[0].ended != nil || s.jobs[1].ended != nil {
		t.Error("the end of a discarded job is reported")
	}
}

func finishes(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: Endless}, Job{Seconds: Endless}, Job{Seconds: 1})
	s.submitted(3)
	s.apply(start(0, firstOfA))
	s.pass(1)
	s.apply(core.Change{Action: core.Finish, Job: 0}, core.Change{Action: core.Finish, Job: 1}, start(2, firstOfA))
	if e := s.end(2); e.Kind != core.JobFinished {
		t.Errorf("the job that has the devices after it %v, want it finished", e.Kind)
	}
	s.over()
	if s.jobs[0].ended != nil || s.jobs[1].ended != nil {
		t.Error("the end of a job that was ended early is reported")
	}
}

func pauses(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 4}, Job{Seconds: 1}, Job{Seconds: 1})
	s.submitted(3)
	s.apply(start(0, firstOfA))
	s.pass(1)
	s.apply(core.Change{Action: core.Pause, Job: 0}, core.Change{Action: core.Pause, Job: 1}, start(2, firstOfA))
	s.end(2)
	if s.jobs[0].ended != nil {
		t.Errorf("the job that was paused %v", s.jobs[0].ended.Kind)
	}
	s.apply(start(0, firstOfA), start(1, firstOfB))
	s.end(0)
	s.end(1)
	s.over()
}

func refusesTheUnknown(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: Endless}, Job{SubmitSeconds: 1000, Seconds: 1})
	s.submitted(1)
	for _, id := range []core.JobID{-1, 1, 2, 1 << 30} {
		for _, c := range []core.Change{start(id, firstOfA), stop(id), move(id, firstOfA), {Action: core.Tune, Job: id}, {Action: core.Discard, Job: id}, {Action: core.Finish, Job: id}, {Action: core.Pause, Job: id}} {
			if err := s.backend.Apply(context.Background(), []core.Change{c}); err == nil {
				t.Errorf("%v of job %d, which was never submitted, is no error", c.Action, id)
			}
		}
	}
}

func keepsCapabilities(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: 1})
	before := slices.Clone(s.backend.Capabilities())
	s.submitted(1)
	s.apply(start(0, firstOfA))
	s.end(0)
	if after := s.backend.Capabilities(); !slices.Equal(before, after) {
		t.Errorf("capabilities were %v and are %v", before, after)
	}
}

func closesTwice(t testing.TB, h *Harness) {
	s := open(t, h, Job{Seconds: Endless})
	c := backend.AbilitiesOf(s.backend).Closer
	if c == nil {
		t.Skip("this backend has no Close")
	}
	s.submitted(1)
	s.apply(start(0, firstOfA))
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
