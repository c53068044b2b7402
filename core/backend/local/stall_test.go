package local

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
)

// A job that is thrown back again and again does not work, and neither when each of its runs lives a little longer than the one
// before, as it may on a busy machine: stall_after ends the run.
func TestARunStallsOverAJobThatIsThrownBack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	j := shell("again", "n=$(cat n || echo 0); echo $((n + 5)) >n; sleep 0.$(printf %03d $n); exit 3")
	j.Process.Dir, j.Process.Retries = t.TempDir(), 1<<20
	b, err := fast(t, t.TempDir(), map[string]any{"stall_after": "4s", "speedup": 1.0, "retry_delay": "0s"}, commands(j))
	if err != nil {
		t.Fatal(err)
	}
	seen(t, b)
	apply(t, b, on(0, 1))
	for {
		_, err := b.Next(ctx, core.Wake{BySeconds: b.now + 0.01, OnEvents: true})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the run does not end after %d runs of the job: %v", b.jobs[0].run.Number, err)
		}
		if b.jobs[0].seats == nil {
			apply(t, b, on(0, 1))
			continue
		}
		apply(t, b)
	}
	if b.jobs[0].run.Number < 2 {
		t.Errorf("the job was tried %d times", b.jobs[0].run.Number)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatCountsAsWork(t *testing.T) {
	began := func(vain float64) job {
		return job{submitted: true, watched: true, vain: vain, watch: watch{beganAt: 10}}
	}
	cases := map[string]struct {
		j          job
		now        float64
		works      bool
		stallsFrom float64 // when the last work was done at 10; stall_after is 60
	}{
		"never thrown back":                            {began(0), 10, true, 70},
		"no further than before":                       {began(5), 14, false, 80},
		"further than before, by what may be noise":    {began(5), 19, false, 80},
		"clearly further than before":                  {began(5), 21, true, 80},
		"nearly as long as a run may stall":            {began(50), 69, false, 130},
		"longer than a run may stall":                  {began(50), 71, true, 130},
		"worked for long before, and ends at once now": {began(600), 11, false, 130},
		"worked for long before, and does now":         {began(600), 71, true, 130},
	}
	for name, tc := range cases {
		if got := tc.j.advances(tc.now, 60); got != tc.works {
			t.Errorf("%s: it works: %v, want %v", name, got, tc.works)
		}
		b := &Backend{config: Config{StallAfter: time.Minute, Speedup: 1}, jobs: []*job{&tc.j}, lastWork: 10}
		if b.stalled(tc.stallsFrom) || !b.stalled(tc.stallsFrom+1) {
			t.Errorf("%s: the run does not stall from %v on", name, tc.stallsFrom)
		}
	}
}

// A checkpoint counts as work when it is further than all before, not when a run merely makes one.
func TestACheckpointIsWorkWhenItIsFurther(t *testing.T) {
	cases := map[string]struct {
		before, made []float64 // by earlier runs, by this one
		want         bool
	}{
		"the first":             {nil, []float64{0}, true},
		"further":               {[]float64{10}, []float64{11}, true},
		"as far":                {[]float64{10}, []float64{10}, false},
		"from the beginning":    {[]float64{5, 10}, []float64{5, 10}, false},
		"further in the end":    {[]float64{5, 10}, []float64{5, 10, 15}, true},
		"further, then no more": {[]float64{5}, []float64{10, 10}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBackend(&Opener{config: Config{Speedup: 1}, log: discard, clock: realClock{}}, machine(), commands(command("j", "true")))
			j := b.jobs[0]
			j.watched = true
			say := func(list []float64) {
				for _, progress := range list {
					b.collect(&agent.Event{Job: "j", FromJob: agent.FromJob{Checkpointed: &agent.Checkpointed{Progress: progress}}}, 1)
				}
			}
			say(tc.before)
			j.kept = false
			say(tc.made)
			if j.kept != tc.want {
				t.Errorf("it counts: %v, want %v", j.kept, tc.want)
			}
		})
	}
}
