package engine

import (
	"context"
	"time"
)

// A backend that is not available is called again after firstRetry, then after twice as long each time, up to longestRetry.
const (
	firstRetry   = 500 * time.Millisecond
	longestRetry = 30 * time.Second
)

// retryAfter is how long to wait before a backend is called again that failed so many times in a row, 1 or more.
func retryAfter(failures int) time.Duration {
	if failures > 6 { // the doubles beyond are longer
		return longestRetry
	}
	return min(firstRetry<<(failures-1), longestRetry)
}

// retryBackend waits while a backend is not available, and logs when that begins and ends. In virtual time there is nothing to wait for.
func (e *execution) retryBackend(wait func(context.Context, time.Duration) error) func(context.Context, int, error) error {
	return func(ctx context.Context, failures int, trouble error) error {
		switch {
		case e.can.Clock == nil:
			return ctx.Err()
		case failures == 0:
			e.log.Info("the backend is available again")
			return nil
		case failures == 1:
			e.log.Warn("the backend is not available: no decisions until it is", "error", trouble)
		}
		return wait(ctx, retryAfter(failures))
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
