package local

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// openedToRetry is a backend of failing jobs, on a clock that is where it is waited for.
func openedToRetry(t *testing.T, dir string, clock Clock, settings map[string]any, w *workload.Workload) *Backend {
	t.Helper()
	if settings["grace"] == nil {
		settings["grace"] = "200ms"
	}
	o := coretest.Component(New(clock), settings, discard).(*Opener)
	o.For(Run{Dir: dir, Identity: "test"})
	opened, err := o.Open(context.Background(), machine(), w)
	if err != nil {
		t.Fatal(err)
	}
	b := opened.(*Backend)
	t.Cleanup(func() { _ = b.Close() }) // it may be closed already
	return b
}

func failing(retries int) *workload.Workload {
	j := command("j", "false")
	j.Process.Retries = retries
	return commands(j)
}

// ends waits for the next round in which a run of the first job ended, and returns how.
func ends(t *testing.T, b *Backend) (end core.Event, nowSeconds float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for {
		o, err := b.Next(ctx, onEvents)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range o.Events {
			switch e.Kind {
			case core.JobInterrupted, core.JobShrunk, core.JobFailed, core.JobFinished:
				return e, o.NowSeconds
			}
		}
		apply(t, b)
	}
}

// A job that failed is tried again after a while, each time after twice as long, up to a limit; meanwhile it has no devices.
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
		"never":              {map[string]any{}, nil},
		// It waits longer than the run may stand still, and the run goes on all the same.
		"through a stall": {map[string]any{"stall_after": "2s"}, []float64{10, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openedToRetry(t, t.TempDir(), &jumpingClock{now: time.Unix(1e9, 0)}, tc.settings, failing(len(tc.waits)))
			seen(t, b)
			var waits []float64
			for {
				apply(t, b, on(0, 1))
				e, _ := ends(t, b)
				if e.Kind == core.JobFailed {
					break
				}
				if e.Cause != core.CauseExited || b.jobs[0].seats != nil {
					t.Errorf("%+v, and its seats are %v", e, b.jobs[0].seats)
				}
				if diff := cmp.Diff([]core.Seat{{Node: 0, Devices: 1}}, e.Seats); diff != "" {
					t.Errorf("failed on (-want +got):\n%s", diff)
				}
				waits = append(waits, math.Round(e.NotBeforeSeconds-e.AtSeconds))
				apply(t, b)
				if now := b.now; now < e.NotBeforeSeconds {
					o, err := b.Next(t.Context(), onEvents)
					if err != nil || o.NowSeconds < e.NotBeforeSeconds {
						t.Fatalf("a round at %v s, want one at %v s: %v", o.NowSeconds, e.NotBeforeSeconds, err)
					}
				}
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("waits in s (-want +got):\n%s", diff)
			}
			if got, want := b.jobs[0].run.Number, len(tc.waits)+1; got != want {
				t.Errorf("%d runs, want %d", got, want)
			}
			apply(t, b)
			if _, err := b.Next(t.Context(), onEvents); !errors.Is(err, io.EOF) {
				t.Errorf("after the last job: %v, want the end", err)
			}
		})
	}
}

// Ends count by their causes, each up to a limit of its own.
func TestLimitsByCause(t *testing.T) {
	t.Parallel()
	one, none := 1, 0
	for name, tc := range map[string]struct {
		job  func(j *workload.Job)
		end  func(t *testing.T, b *Backend) // of a run that sleeps; nil for one that ends by itself
		want []string
	}{
		"no program, no limit": {func(j *workload.Job) { j.Spec.Command, j.Process.Retries = []string{"no-such-program"}, 9 }, nil, []string{"job_failed unknown"}},
		"no program, and a start that may be repeated": {
			func(j *workload.Job) { j.Spec.Command, j.Process.StartRetries = []string{"no-such-program"}, &one }, nil, []string{"job_interrupted never_began", "job_failed unknown"},
		},
		"its own exit counts by itself": {
			func(j *workload.Job) {
				j.Spec.Command, j.Process.StartRetries, j.Process.LostRetries = []string{"false"}, &one, &one
			}, nil, []string{"job_failed unknown"},
		},
		"its keeper is killed, once more than it may be": {
			func(j *workload.Job) { j.Process.LostRetries = &one }, killKeeper, []string{"job_interrupted killed", "job_failed unknown"},
		},
		"its keeper may never be killed":       {func(j *workload.Job) { j.Process.LostRetries, j.Process.Retries = &none, 5 }, killKeeper, []string{"job_failed unknown"}},
		"its keeper is killed, and no limit":   {func(*workload.Job) {}, killKeeper, []string{"job_interrupted killed", "job_interrupted killed", "job_failed unknown"}},
		"its process is killed: it is no part": {func(j *workload.Job) { j.Process.Retries = 1 }, killReplica(0), []string{"job_interrupted exited", "job_failed unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := elasticJob(1, 1)
			tc.job(&j)
			b := openedToRetry(t, t.TempDir(), realClock{}, map[string]any{"retry_delay": "0s"}, commands(j))
			seen(t, b)
			var got []string
			for len(got) < 5 {
				apply(t, b, on(0, 1))
				if tc.end != nil {
					tc.end(t, b)
				}
				e, _ := ends(t, b)
				if got = append(got, e.Kind.String()+" "+e.Cause.String()); e.Kind == core.JobFailed {
					break
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
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

// A scheduler that takes over while a job waits keeps how often it failed, where, and how long it is to wait, and tells of the failure once.
func TestATakeoverKeepsRetries(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]bool{"before the failure is recorded": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			began := time.Unix(1e9, 0)
			waiting := &stoppedClock{jumpingClock{now: began}, make(chan time.Duration, 16)}
			settings := func() map[string]any {
				return map[string]any{"retry_delay": "1h", "retry_delay_max": "4h", "stall_after": "1m"}
			}
			first := openedToRetry(t, dir, waiting, settings(), failing(2))
			seen(t, first)
			waiting.now = began.Add(time.Second)
			apply(t, first, on(0, 1))
			e, _ := ends(t, first)
			if recorded {
				apply(t, first)
			}
			if _, err := first.Leave(); err != nil {
				t.Fatal(err)
			}
			second := openedToRetry(t, dir, &jumpingClock{now: began.Add(time.Minute)}, settings(), failing(2))
			failures := 0
			for last := 0.0; ; {
				o, err := second.Next(t.Context(), onEvents)
				if err != nil {
					t.Fatal(err)
				}
				for _, again := range o.Events {
					switch again.Kind {
					case core.JobInterrupted:
						if failures++; failures == 1 && (again.NotBeforeSeconds != e.NotBeforeSeconds || !core.SameSeats(again.Seats, e.Seats)) {
							t.Errorf("said again as %+v, first as %+v", again, e)
						}
						last = again.NotBeforeSeconds
					case core.JobFailed:
						if failures != 2 || again.AtSeconds < last || last < 3*3600 {
							t.Errorf("it failed for good after %v s, %d other failures and a wait until %v s; want three hours", again.AtSeconds, failures, last)
						}
						if got := second.jobs[0].run.Number; got != 3 {
							t.Errorf("%d runs, want 3", got)
						}
						return
					}
				}
				first := second.journal.Repeated() && o.Events[0].Kind == core.JobSubmitted
				if first || failures > 0 && second.jobs[0].seats == nil && o.NowSeconds >= last {
					apply(t, second, on(0, 1))
				} else {
					apply(t, second)
				}
			}
		})
	}
}

// killKeeper kills the keeper of the first job.
func killKeeper(t *testing.T, b *Backend) {
	t.Helper()
	begun(t, b)
	b.jobs[0].run.Keeper.Kill()
}
