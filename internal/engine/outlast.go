package engine

import (
	"context"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// A backend that is not available is asked again after firstAgain, then after twice as long each time, up to longestAgain.
const (
	firstAgain   = 500 * time.Millisecond
	longestAgain = 30 * time.Second
)

// againAfter is how long to wait before a backend is asked again that was asked so often in vain, 1 or more.
func againAfter(inVain int) time.Duration {
	if inVain > 6 { // the doubles beyond are longer
		return longestAgain
	}
	return min(firstAgain<<(inVain-1), longestAgain)
}

// outlast waits while a backend is not available, and tells of it when that begins and ends. In virtual time there is nothing to
// wait for.
func (e *execution) outlast(world core.Backend, wait func(context.Context, time.Duration) error) func(context.Context, int, error) error {
	_, real := world.(backend.Ticking)
	return func(ctx context.Context, inVain int, trouble error) error {
		switch {
		case !real:
			return ctx.Err()
		case inVain == 0:
			e.log.Info("the backend is available again")
			return nil
		case inVain == 1:
			e.log.Warn("nothing is decided until the backend is available", "error", trouble)
		}
		return wait(ctx, againAfter(inVain))
	}
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
