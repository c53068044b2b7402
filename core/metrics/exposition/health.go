package exposition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Patience is how long a round may take before the scheduler counts as stuck, where none waits for jobs to stop.
const Patience = 2 * time.Minute

// Health is how a scheduler fares. Between rounds it may rightly wait for hours, so a sign of life is that no
// round takes too long. Its methods may be called from any goroutine.
type Health struct {
	stopwatch func() time.Duration
	patience  time.Duration

	mu      sync.Mutex
	ready   bool
	inRound bool
	trouble error         // why the backend is not available; nil when it is
	began   time.Duration // of the round, by the stopwatch
}

// NewHealth returns the health of a scheduler that is not ready. The stopwatch times its rounds, none of which may take
// longer than the patience.
func NewHealth(stopwatch func() time.Duration, patience time.Duration) *Health {
	return &Health{stopwatch: stopwatch, patience: patience}
}

// Watch returns the backend, and sees from the calls to it when a round begins and ends. The backend says whether the
// next round is one of an earlier scheduler, replayed; nil for never.
func (h *Health) Watch(b core.Backend, replaying func() bool) core.Backend {
	return &watched{b, h, replaying}
}

// Ready reports whether the scheduler has come to rounds that are new. Before, its figures are those of the past.
func (h *Health) Ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready
}

// Alive is nil, or what is wrong with the scheduler.
func (h *Health) Alive() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.inRound || h.trouble != nil { // whoever ends it for that makes nothing better
		return nil
	}
	if spent := h.stopwatch() - h.began; spent > h.patience {
		return fmt.Errorf("a round has taken %v so far", spent.Truncate(time.Second))
	}
	return nil
}

// readiness is nil for a scheduler that is alive and ready.
func (h *Health) readiness() error {
	if err := h.Alive(); err != nil {
		return err
	}
	if err := h.unavailable(); err != nil {
		return err
	}
	return h.replayed()
}

// unavailable is why nothing is decided while the backend is not available.
func (h *Health) unavailable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble != nil {
		return fmt.Errorf("backend not available: %w", h.trouble)
	}
	return nil
}

// suffers notes whether a call to the backend failed because that is not available.
func (h *Health) suffers(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.trouble != nil
	h.trouble = nil
	if u, is := errors.AsType[*core.Unavailable](err); is {
		h.trouble = u.Cause
	} else if was && h.inRound {
		h.began = h.stopwatch() // the round was held up by no fault of its own
	}
}

func (h *Health) replayed() error {
	if !h.Ready() {
		return errors.New("no new rounds yet: those of an earlier scheduler are replayed first")
	}
	return nil
}

// waits notes that no round is going on, and whether the next one is new.
func (h *Health) waits(ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inRound = false
	h.ready = h.ready || ready
}

func (h *Health) begins() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inRound, h.began = true, h.stopwatch()
}

// watched is a backend under observation.
type watched struct {
	core.Backend
	health    *Health
	replaying func() bool
}

// Next ends a round when it is called and begins one when it returns.
func (w *watched) Next(ctx context.Context, wake core.Wake) (core.Observation, error) {
	w.health.waits(w.replaying == nil || !w.replaying())
	seen, err := w.Backend.Next(ctx, wake)
	w.health.suffers(err)
	if err == nil {
		w.health.begins()
	}
	return seen, err
}

// Apply is part of a round.
func (w *watched) Apply(ctx context.Context, changes []core.Change) error {
	err := w.Backend.Apply(ctx, changes)
	w.health.suffers(err)
	return err
}
