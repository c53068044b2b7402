package sim

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

// stuck is a job that does no work wherever it runs.
type stuck struct{ phased }

func (stuck) Rate(int, workload.Running) float64 { return 0 }

// lastRound holds rounds every 60 s until the simulator tells the end, and returns the moment of the last one. In each
// round it applies what decide answers.
func lastRound(t *testing.T, s *Simulator, decide func(round int) []core.Change) float64 {
	t.Helper()
	now := 0.0
	for round := range 1000 {
		seen, err := s.Next(context.Background(), by(now+60, 60))
		if errors.Is(err, io.EOF) {
			return now
		}
		if err != nil {
			t.Fatal(err)
		}
		now = seen.NowSeconds
		if err := s.Apply(context.Background(), decide(round)); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the run does not end")
	return 0
}

func TestARunThatDoesNoWorkEnds(t *testing.T) {
	// The two jobs take turns on one device.
	turns := func(round int) []core.Change {
		next := core.JobID(round % 2)
		return []core.Change{stop(1 - next), start(next, seats(0, 1))}
	}
	once := func(round int) []core.Change {
		if round == 0 {
			return []core.Change{start(0, seats(0, 1))}
		}
		return nil
	}
	hour := func(round int) []core.Change {
		if round == 20 {
			return []core.Change{stop(0)}
		}
		return once(round)
	}
	for name, tc := range map[string]struct {
		overhead time.Duration
		models   []workload.Model
		decide   func(round int) []core.Change
		want     float64
	}{
		"restarts take all the time":            {60 * time.Second, []workload.Model{phased{100}, phased{100}}, turns, 600},
		"a second of work a turn is enough":     {59 * time.Second, []workload.Model{phased{12}, phased{12}}, turns, 24 * 60},
		"a long job is no stall":                {60 * time.Second, []workload.Model{phased{6000}}, once, 6060},
		"a job that holds devices in vain is":   {0, []workload.Model{stuck{phased{100}}}, once, 600},
		"it has its time from the last work on": {0, []workload.Model{phased{6000}}, hour, 1200 + 600},
		"a job that nobody starts is":           {0, []workload.Model{phased{100}}, func(int) []core.Change { return nil }, 600},
	} {
		for _, progress := range []string{exact, perRound, backToBack} {
			t.Run(name+", "+progress, func(t *testing.T) {
				var arrivals []arrival
				for _, m := range tc.models {
					arrivals = append(arrivals, arrival{0, m})
				}
				s := open(t, Config{
					Cost: restart.Cost{RestartOverhead: tc.overhead}, StallAfter: 10 * time.Minute,
					Publication: Publication{FirstRound: atStart, Progress: progress},
				}, 1, arrivals...)
				if got := lastRound(t, s, tc.decide); got != tc.want {
					t.Errorf("the last round is at %v s, want %v s", got, tc.want)
				}
			})
		}
	}
}

// The run has its time from the last submission on, too.
func TestASubmissionIsNoStall(t *testing.T) {
	for _, progress := range []string{exact, perRound} {
		s := open(t, Config{StallAfter: 10 * time.Minute, Publication: Publication{FirstRound: atStart, Progress: progress}}, 1,
			arrival{0, phased{100}}, arrival{1200, phased{100}})
		if got := lastRound(t, s, func(int) []core.Change { return nil }); got != 1800 {
			t.Errorf("%s: the last round is at %v s, want 1800 s", progress, got)
		}
	}
}

// At 4 a second the job has done 4000 when a failure undoes it all. It comes further than that before a stall would end the run,
// though exact time has no event that says so.
func TestDoingAgainWhatAFailureUndidIsWork(t *testing.T) {
	for _, progress := range []string{exact, perRound} {
		s := open(t, Config{
			StallAfter: 1050 * time.Second, CheckpointInterval: 1000 * time.Hour,
			NodeEvents:  []NodeEvent{{"n0", 1000 * time.Second, "down"}, {"n0", 1020 * time.Second, "ready"}},
			Publication: Publication{FirstRound: atStart, Progress: progress},
		}, 1, arrival{0, phased{8000}})
		got := lastRound(t, s, func(int) []core.Change {
			if s.devices.nodes.told[0] != core.Ready || len(s.jobs.running) > 0 {
				return nil
			}
			return []core.Change{start(0, seats(0, 0xf))}
		})
		if want := 1020.0 + 2000 + 40; got != want {
			t.Errorf("%s: the last round is at %v s, want %v s, when the job is done", progress, got, want)
		}
	}
}

// Without a moment to wake by, a job that holds devices in vain is the end at once: nothing will ever happen.
func TestNothingToWaitForEndsTheRun(t *testing.T) {
	for _, progress := range []string{exact, perRound} {
		s := open(t, Config{Publication: Publication{FirstRound: atStart, Progress: progress}}, 1, arrival{0, stuck{phased{100}}})
		if _, err := s.Next(context.Background(), every(60)); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(context.Background(), []core.Change{start(0, seats(0, 1))}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(context.Background(), every(60)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: error %v, want the end", progress, err)
		}
	}
}

// A node fails every five minutes on average and saves nothing: its job comes further than ever before from time to time,
// but ever more rarely.
func TestWorkThatFailuresUndoIsNoWork(t *testing.T) {
	for _, progress := range []string{exact, perRound} {
		t.Run(progress, func(t *testing.T) {
			s := open(t, Config{
				StallAfter: time.Hour, CheckpointInterval: 1000 * time.Hour,
				Failures:    Failures{MTBF: 5 * time.Minute, Repair: time.Second},
				Publication: Publication{FirstRound: atStart, Progress: progress},
			}, 1, arrival{0, phased{1e6}})
			last := lastRound(t, s, func(int) []core.Change {
				if s.devices.nodes.told[0] != core.Ready {
					return nil
				}
				return []core.Change{start(0, seats(0, 1))}
			})
			if since := last - s.stall.advanced; since > 3600 || since < 3600-120 {
				t.Errorf("the last round is %v s after the last work, want an hour", since)
			}
		})
	}
}

// No work is done for two hours, but somebody asked for the repair that ends them.
func TestAScheduledRepairIsWaitedFor(t *testing.T) {
	for _, progress := range []string{exact, perRound} {
		t.Run(progress, func(t *testing.T) {
			s := open(t, Config{
				StallAfter: 10 * time.Minute, NodeEvents: []NodeEvent{{"n0", time.Second, "down"}, {"n0", 2 * time.Hour, "ready"}},
				Publication: Publication{FirstRound: atStart, Progress: progress},
			}, 1, arrival{0, phased{100}})
			started := false
			last := lastRound(t, s, func(round int) []core.Change {
				if round == 0 || started || s.devices.nodes.told[0] != core.Ready {
					return nil
				}
				started = true
				return []core.Change{start(0, seats(0, 1))}
			})
			if want := 7200.0 + 120; last != want {
				t.Errorf("the last round is at %v s, want %v s, when the job is done", last, want)
			}
		})
	}
}

// Work that a failure undid counts once only: coming to the same point again is no progress of the run.
func TestWhenARunCameFurther(t *testing.T) {
	for name, tc := range map[string]struct{ progress, want float64 }{
		"further":            {6, 100},
		"as far as it was":   {5, 40},
		"not as far as that": {4, 40},
	} {
		t.Run(name, func(t *testing.T) {
			s, j := &Simulator{stall: stall{advanced: 40}}, &simJob{furthest: 5}
			s.reach(j, tc.progress, 100)
			if s.stall.advanced != tc.want || j.progress != tc.progress || j.furthest != max(tc.progress, 5) {
				t.Errorf("advanced at %v, want %v; progress %v, furthest %v", s.stall.advanced, tc.want, j.progress, j.furthest)
			}
		})
	}
}

func TestARunWorksWhileAJobComesFurther(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs   []*simJob
		before float64
		want   bool
	}{
		"no job":                      {nil, 100, false},
		"it goes on":                  {[]*simJob{{asOf: 10, progress: 5, furthest: 5, rate: 1}}, 11, true},
		"no time is left":             {[]*simJob{{asOf: 10, progress: 5, furthest: 5, rate: 1}}, 10, false},
		"a pause takes it":            {[]*simJob{{asOf: 10, progress: 5, furthest: 5, rate: 1, pausedUntil: 20}}, 20, false},
		"and a little more":           {[]*simJob{{asOf: 10, progress: 5, furthest: 5, rate: 1, pausedUntil: 20}}, 20.5, true},
		"the pause is longer":         {[]*simJob{{asOf: 10, progress: 5, furthest: 5, rate: 1, pausedUntil: 20}}, 15, false},
		"it is where it does nothing": {[]*simJob{{asOf: 10, progress: 5, furthest: 5}}, 100, false},
		"and will be for ever":        {[]*simJob{{asOf: 10, progress: 5, furthest: 5}}, math.Inf(1), false},
		"it works for ever":           {[]*simJob{{asOf: 10, progress: 5, furthest: 5, rate: 0.5}}, math.Inf(1), true},
		"it does the work again":      {[]*simJob{{asOf: 10, progress: 5, furthest: 9, rate: 2}}, 12, false},
		"and some beyond it":          {[]*simJob{{asOf: 10, progress: 5, furthest: 9, rate: 2}}, 12.5, true},
		"another one works":           {[]*simJob{{asOf: 10, progress: 5, furthest: 5}, {asOf: 10, progress: 5, furthest: 5, rate: 1}}, 11, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Simulator{jobs: jobs{running: tc.jobs}}
			if got := s.works(tc.before); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
