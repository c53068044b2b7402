package local

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// A job that is thrown back again and again does not work: stall_after ends the run.
func TestARunStallsOverAJobThatIsThrownBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j := shell("again", "sleep 0.03; exit 3")
	j.Process.Retries = 1 << 20
	b, err := fast(t, t.TempDir(), map[string]any{"stall_after": "1s", "speedup": 1.0}, commands(j))
	if err != nil {
		t.Fatal(err)
	}
	seen(t, b)
	apply(t, b, on(0, 1))
	for {
		_, err := b.Next(ctx, core.Wake{BySeconds: b.now + 0.5, OnEvents: true})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the run does not end: %v", err)
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
	cases := map[string]struct {
		j    job
		now  float64
		want bool
	}{
		"never thrown back":       {job{watch: watch{beganAt: 10}}, 10, true},
		"no further than before":  {job{thrown: 5, watch: watch{beganAt: 10}}, 14, false},
		"further than before":     {job{thrown: 5, watch: watch{beganAt: 10}}, 16, true},
		"worked for long, before": {job{thrown: 60, watch: watch{beganAt: 10}}, 11, true},
	}
	for name, tc := range cases {
		if got := tc.j.advances(tc.now, 60); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
