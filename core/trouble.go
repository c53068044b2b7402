package core

import (
	"context"
	"errors"
	"fmt"
)

// Unavailable is what a backend returns that cannot report or apply anything for a while: an API server that restarts, say. What
// runs goes on. Any other error ends the run.
type Unavailable struct {
	Cause error // what the call came to
}

// Error words that the backend is not available, and the cause.
func (e *Unavailable) Error() string { return fmt.Sprintf("the backend is not available: %v", e.Cause) }

// Unwrap returns the cause.
func (e *Unavailable) Unwrap() error { return e.Cause }

// ErrFenced is what a backend returns once another scheduler has taken over: this one touches nothing any more.
var ErrFenced = errors.New("another scheduler has taken over")

// retry reports whether a call to a backend, which failed so many times before, must be made again. Otherwise the error is what it
// came to.
func (p *Pipeline) retry(ctx context.Context, failures int, err error) (again bool, _ error) {
	if p.retryBackend == nil || err == nil && failures == 0 {
		return false, err
	}
	if err == nil {
		return false, p.retryBackend(ctx, 0, nil)
	}
	trouble, passes := errors.AsType[*Unavailable](err)
	if !passes {
		return false, err
	}
	err = p.retryBackend(ctx, failures+1, trouble)
	return err == nil, err
}

// apply has a backend take in changes, however long it is not available.
func (p *Pipeline) apply(ctx context.Context, b Backend, changes []Change) error {
	for failures := 0; ; failures++ {
		if again, err := p.retry(ctx, failures, b.Apply(ctx, changes)); !again {
			return err
		}
	}
}

// wait waits for the next round of a backend, however long it is not available.
func (p *Pipeline) wait(ctx context.Context, b Backend, w Wake) (Observation, error) {
	for failures := 0; ; failures++ {
		seen, err := b.Next(ctx, w)
		if again, err := p.retry(ctx, failures, err); !again {
			return seen, err
		}
	}
}
