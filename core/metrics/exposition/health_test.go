package exposition

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// idle is a backend in which nothing happens.
type idle struct {
	core.Backend
	err error
}

func (b idle) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, b.err
}

func TestHealth(t *testing.T) {
	const ok, unavailable = http.StatusOK, http.StatusServiceUnavailable
	snapshot := full(t)
	for name, tc := range map[string]struct {
		before               func(h *Health, clock *time.Duration)
		wantAlive, wantReady int
		wantSays             string
	}{
		"before the first round": {func(*Health, *time.Duration) {}, ok, unavailable, "replayed"},
		"replaying":              {func(h *Health, _ *time.Duration) { next(h, nil, true) }, ok, unavailable, "replayed"},
		"done with replaying": {func(h *Health, _ *time.Duration) {
			next(h, nil, true)
			next(h, nil, false)
		}, ok, ok, "ok"},
		"a backend that is not available": {func(h *Health, clock *time.Duration) {
			next(h, nil, false)
			next(h, &core.Unavailable{Cause: io.ErrUnexpectedEOF}, false)
			*clock += 5 * time.Hour
		}, ok, unavailable, "backend not available: unexpected EOF"},
		"one that is again": {func(h *Health, _ *time.Duration) {
			next(h, &core.Unavailable{Cause: io.ErrUnexpectedEOF}, false)
			next(h, nil, false)
		}, ok, ok, "ok"},
		"a round that cannot be applied": {func(h *Health, clock *time.Duration) {
			next(h, nil, false)
			apply(h, &core.Unavailable{Cause: io.ErrUnexpectedEOF})
			*clock += 5 * time.Hour
		}, ok, unavailable, "backend not available: unexpected EOF"},
		"one that was applied at last": {func(h *Health, clock *time.Duration) {
			next(h, nil, false)
			apply(h, &core.Unavailable{Cause: io.ErrUnexpectedEOF})
			*clock += 5 * time.Hour
			apply(h, nil)
		}, ok, ok, "ok"},
		"in a round": {func(h *Health, clock *time.Duration) {
			next(h, nil, false)
			*clock += Patience
		}, ok, ok, "ok"},
		"in a round that does not end": {func(h *Health, clock *time.Duration) {
			next(h, nil, false)
			*clock += Patience + time.Second
		}, unavailable, unavailable, "a round has taken 2m1s"},
		"waiting for hours after a round": {func(h *Health, clock *time.Duration) {
			next(h, nil, false)
			*clock += Patience / 2
			next(h, io.EOF, false) // a call that has not returned looks the same
			*clock += 5 * time.Hour
		}, ok, ok, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			var clock time.Duration
			health := NewHealth(func() time.Duration { return clock }, Patience)
			tc.before(health, &clock)
			handler := NewHandler(Source{Snapshot: func() *metrics.Snapshot { return snapshot }, Health: health})
			if code, body := get(handler, "/healthz"); code != tc.wantAlive {
				t.Errorf("/healthz: status %d, want %d: %s", code, tc.wantAlive, body)
			}
			if code, body := get(handler, "/metrics"); (code == ok) != health.Ready() {
				t.Errorf("/metrics: status %d when ready is %v: %s", code, health.Ready(), body)
			}
			if code, body := get(handler, "/readyz"); code != tc.wantReady || !strings.Contains(body, tc.wantSays) {
				t.Errorf("/readyz: status %d, want %d that says %q: %s", code, tc.wantReady, tc.wantSays, body)
			}
		})
	}
}

// next is a call of Next that returns at once.
func next(h *Health, err error, replaying bool) {
	_, _ = h.Watch(idle{err: err}, func() bool { return replaying }).Next(context.Background(), core.Wake{})
}

func (b idle) Apply(context.Context, []core.Change) error { return b.err }

func apply(h *Health, err error) {
	_ = h.Watch(idle{err: err}, nil).Apply(context.Background(), nil)
}

func TestWaitingForARoundIsHealthy(t *testing.T) {
	var clock time.Duration
	health := NewHealth(func() time.Duration { return clock }, Patience)
	next(health, nil, false)
	var alive error
	_, err := health.Watch(during{func() {
		clock += 5 * time.Hour
		alive = health.Alive()
	}}, nil).Next(t.Context(), core.Wake{})
	if err != nil || alive != nil {
		t.Errorf("while it waits: %v, %v", alive, err)
	}
}

// during is a backend that does something while it waits.
type during struct{ do func() }

func (d during) Next(context.Context, core.Wake) (core.Observation, error) {
	d.do()
	return core.Observation{}, nil
}
func (during) Apply(context.Context, []core.Change) error { return nil }
func (during) Capabilities() []core.Capability            { return nil }
