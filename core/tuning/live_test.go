package tuning_test

import (
	"math"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// follower looks at a live run in each round.
type follower struct {
	live   *metrics.Live
	trials []int // submitted, by round
	best   bool  // was known before the end
}

func (f *follower) ObserveRound(*core.Report) error {
	t := f.live.Snapshot().Summary.Tuning
	f.trials = append(f.trials, t.Trials)
	f.best = f.best || t.Best != nil && t.Unfinished > 0 && !math.IsNaN(float64(t.Best.Value))
	return nil
}

// What a search has come to is told during its run, whoever asks meanwhile.
func TestSearchesAreFollowed(t *testing.T) {
	c, err := load(t, quartet.Builtins())
	if err != nil {
		t.Fatal(err)
	}
	c.Keep = true
	f := &follower{}
	var others sync.WaitGroup
	done := make(chan struct{})
	c.Attach = func(s quartet.Session) (quartet.Attachment, error) {
		f.live = metrics.NewLive(s.Collector, metrics.Run{Tuning: s.Tuning})
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					s.Tuning()
				}
			}
		})
		return quartet.Attachment{
			Observers: []core.Observer{f.live, f}, Finish: f.live.Finish,
			Stop: func() {
				close(done)
				others.Wait()
			},
		}, nil
	}
	r, err := c.Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.trials); n == 0 || f.trials[0] != 2 || f.trials[n-1] != 4 || !f.best {
		t.Errorf("trials by round: %v, best known before the end: %t; want 2 at first, 4 at last, and the best", f.trials, f.best)
	}
	if got, want := f.live.Snapshot().Summary.Tuning, r.Summary.Tuning; got.Finished != want.Finished || got.Best.Trial != want.Best.Trial {
		t.Errorf("at the end %+v, want %+v", got, want)
	}
}

// Whoever has trials judged by what they never report is told before the run; a search that hears nothing, after it.
func TestMetricsThatNobodyReportsAreNoted(t *testing.T) {
	cases := map[string]struct {
		sets []string
		want []string
	}{
		"all agree":     {[]string{`pipeline.admission=[{type: median, config: {metrics: [loss, accuracy]}}]`}, nil},
		"the other way": {[]string{`pipeline.admission=[{type: median, config: {goal: minimize}}]`}, []string{`"admission/median" judges trials differently from the search: it should minimize "accuracy", and the search should maximize it; set the goal of both`}},
		"another":       {[]string{`pipeline.admission=[{type: median, config: {metrics: [loss, error]}}]`}, []string{`"admission/median" judges trials by loss, error, and not by the metric "accuracy" of the search`}},
		"no trials":     {[]string{`pipeline.admission=[{type: convergence, config: {metrics: [loss]}}]`}, nil},
		"no reports":    {[]string{"workload.config.simulated={}", "workload.config.job={seconds: 50}"}, []string{`no trial reported the metric "accuracy", nor any other`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, quartet.Builtins(), tc.sets...)
			if err != nil {
				t.Fatal(err)
			}
			c.Keep = true
			var notes []string
			c.Note = func(text string) { notes = append(notes, text) }
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
