package exposition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Patience is how long a round may take before the scheduler counts as stuck.
const Patience = 2 * time.Minute

// Health is how a scheduler fares. Between rounds it may rightly wait for hours, so a sign of life is that no round
// failed and none takes longer than Patience. Its methods may be called from any goroutine.
type Health struct {
	stopwatch func() time.Duration

	mu      sync.Mutex
	ready   bool
	inRound bool
	began   time.Duration // of the round, by the stopwatch
	failure error
}

// NewHealth returns the health of a scheduler that is not ready. The stopwatch times its rounds.
func NewHealth(stopwatch func() time.Duration) *Health { return &Health{stopwatch: stopwatch} }

// Watch returns the backend, and sees from the calls to it when a round begins and ends.
func (h *Health) Watch(b core.Backend) core.Backend { return &watched{b, h} }

// SetReady says that the rounds of earlier schedulers have been replayed: what is decided now is new.
func (h *Health) SetReady() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = true
}

// Ready reports whether SetReady was called.
func (h *Health) Ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready
}

// Fail says that the scheduler holds no more rounds, and why.
func (h *Health) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = err
}

// Alive is nil, or what is wrong with the scheduler.
func (h *Health) Alive() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure != nil {
		return fmt.Errorf("the scheduler stopped: %w", h.failure)
	}
	if !h.inRound {
		return nil
	}
	if spent := h.stopwatch() - h.began; spent > Patience {
		return fmt.Errorf("a round has taken %v so far", spent.Truncate(time.Second))
	}
	return nil
}

// readiness is nil for a scheduler that is alive and ready.
func (h *Health) readiness() error {
	if err := h.Alive(); err != nil {
		return err
	}
	if !h.Ready() {
		return errors.New("the rounds of an earlier scheduler are being replayed")
	}
	return nil
}

func (h *Health) round(going bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inRound, h.began = going, h.stopwatch()
}

// watched is a backend under observation.
type watched struct {
	core.Backend
	health *Health
}

// Next ends a round when it is called and begins one when it returns.
func (w *watched) Next(ctx context.Context, wake core.Wake) (core.Observation, error) {
	w.health.round(false)
	seen, err := w.Backend.Next(ctx, wake)
	w.health.round(err == nil)
	return seen, err
}
