package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/backend"
)

// ticking is a backend whose time goes on.
type ticking struct{}

func (ticking) Present() float64 { return 0 }

// Trouble is told when it begins and ends; between two calls twice as long is waited as before, up to 30 s.
func TestTroubleIsWaitedOut(t *testing.T) {
	var log strings.Builder
	e := &execution{log: slog.New(slog.NewTextHandler(&log, nil)), can: backend.Abilities{Clock: ticking{}}}
	var waited []time.Duration
	retry := e.retryBackend(func(_ context.Context, d time.Duration) error {
		waited = append(waited, d)
		return nil
	})
	for failures := range 10 {
		if err := retry(t.Context(), failures+1, errors.New("no route")); err != nil {
			t.Fatal(err)
		}
	}
	if err := retry(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	const s = time.Second
	if diff := cmp.Diff([]time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 30 * s, 30 * s}, waited); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if lines := strings.Split(strings.TrimSpace(log.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "no route") || !strings.Contains(lines[1], "again") {
		t.Errorf("the log is\n%s", log.String())
	}
}

// In virtual time nothing is waited for, and whoever gives up is heard.
func TestTroubleInVirtualTime(t *testing.T) {
	e := &execution{log: slog.New(slog.DiscardHandler)}
	retry := e.retryBackend(func(context.Context, time.Duration) error { return errors.New("it waits") })
	if err := retry(t.Context(), 3, errors.New("no route")); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := retry(ctx, 1, errors.New("no route")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := pause(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("the pause ends with %v, want the error of the context", fmt.Sprint(err))
	}
}
