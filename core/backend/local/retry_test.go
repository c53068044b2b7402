package local

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// openedToRetry is a backend of a failing job, on a clock that is where it is waited for.
func openedToRetry(t *testing.T, dir string, clock Clock, settings map[string]any, w *workload.Workload) *Backend {
	t.Helper()
	settings["grace"] = "200ms"
	o := coretest.Component(New(clock), settings, discard).(*Opener)
	o.For(Run{Dir: dir, Identity: "test"})
	b, err := o.Open(context.Background(), machine(), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.(*Backend).Close() })
	return b.(*Backend)
}

func failing(retries int) *workload.Workload {
	j := command("j", "false")
	j.Process.Retries = retries
	return commands(j)
}

// A job that fails is repeated after a while, each time after twice as long, up to a limit.
func TestRetriesWait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings map[string]any
		waits    []float64 // s
	}{
		"as is":              {map[string]any{}, []float64{10, 20, 40, 80, 160, 300, 300}},
		"as set":             {map[string]any{"retry_delay": "3s", "retry_delay_max": "10s"}, []float64{3, 6, 10, 10}},
		"above all":          {map[string]any{"retry_delay": "1m", "retry_delay_max": "10s"}, []float64{10, 10}},
		"in time of the run": {map[string]any{"speedup": 10}, []float64{100, 200}},
		"at once":            {map[string]any{"retry_delay": "0s"}, []float64{0, 0, 0}},
		// It waits longer than the run may stand still, and the run goes on all the same.
		"through a stall": {map[string]any{"stall_after": "2s"}, []float64{10, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openedToRetry(t, t.TempDir(), &jumpingClock{now: time.Unix(1e9, 0)}, tc.settings, failing(len(tc.waits)))
			seen(t, b)
			apply(t, b, on(0, 1))
			o, err := b.Next(t.Context(), onEvents)
			if err != nil {
				t.Fatal(err)
			}
			var fails []float64
			for _, e := range o.Events {
				if e.Kind == core.JobProgressed && e.Message != "" || e.Kind == core.JobFailed {
					fails = append(fails, e.AtSeconds)
				}
			}
			var waits []float64
			for i := range fails[1:] {
				waits = append(waits, math.Round(fails[i+1]-fails[i]))
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("waits in s (-want +got):\n%s", diff)
			}
			if got, want := b.jobs[0].run.Number, len(tc.waits)+1; got != want {
				t.Errorf("%d runs, want %d", got, want)
			}
			if _, err := b.Next(t.Context(), onEvents); !errors.Is(err, io.EOF) {
				t.Errorf("after the last job: %v, want the end", err)
			}
		})
	}
}

// stoppedClock is at a moment, and rings only when it is told to go on.
type stoppedClock struct {
	jumpingClock
	asked chan time.Duration
}

func (c *stoppedClock) After(d time.Duration) <-chan time.Time {
	c.asked <- d
	return nil
}

// A scheduler that takes over while a job waits keeps how often it failed and how long it is to wait, and tells of the failure once.
func TestATakeoverKeepsRetries(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"before the failure is recorded": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			began := time.Unix(1e9, 0)
			waiting := &stoppedClock{jumpingClock{now: began}, make(chan time.Duration, 1)}
			settings := func() map[string]any {
				return map[string]any{"retry_delay": "1h", "retry_delay_max": "4h", "stall_after": "1m"}
			}
			first := openedToRetry(t, dir, waiting, settings(), failing(2))
			seen(t, first)
			waiting.now = began.Add(time.Second)
			apply(t, first, on(0, 1))
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // it waits for the retry
				for d := range waiting.asked {
					if d > 30*time.Minute {
						cancel()
						return
					}
				}
			}()
			if _, err := first.Next(ctx, onEvents); !errors.Is(err, context.Canceled) {
				t.Fatalf("%v, want it to wait for the retry", err)
			}
			told := 0
			if recorded {
				o := first.observe(first.elapsed())
				told = failuresIn(o.Events)
				apply(t, first)
			}
			if _, err := first.Leave(); err != nil {
				t.Fatal(err)
			}
			second := openedToRetry(t, dir, &jumpingClock{now: began.Add(time.Minute)}, settings(), failing(2))
			var at float64
			for {
				o, err := second.Next(t.Context(), onEvents)
				if err != nil {
					t.Fatal(err)
				}
				if !second.journal.Repeated() {
					told += failuresIn(o.Events)
				}
				over := false
				for _, e := range o.Events {
					if e.Kind == core.JobFailed {
						over, at = true, e.AtSeconds
					}
				}
				if over {
					break
				}
				if second.journal.Repeated() && o.NowSeconds == 0 && at == 0 && len(o.Events) > 0 && o.Events[0].Kind == core.JobSubmitted {
					apply(t, second, on(0, 1))
				} else {
					apply(t, second)
				}
			}
			if at < 3*3600 || at > 3*3600+60 {
				t.Errorf("it failed for good after %v s, want three hours", at)
			}
			if got := second.jobs[0].run.Number; got != 3 || told != 2 {
				t.Errorf("%d runs, of which %d were told to have failed and to be repeated; want 3 and 2", got, told)
			}
		})
	}
}

// failuresIn counts the runs that are told to have failed and to be repeated.
func failuresIn(events []core.Event) (count int) {
	for _, e := range events {
		if e.Kind == core.JobProgressed && strings.Contains(e.Message, "failed") {
			count++
		}
	}
	return count
}
