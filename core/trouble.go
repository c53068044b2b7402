package core

import (
	"context"
	"errors"
	"fmt"
)

// Unavailable is what a backend returns that cannot tell or apply anything for a while: an API server that restarts, say. What
// runs goes on. Any other error ends the run.
type Unavailable struct{ Cause error }

func (e *Unavailable) Error() string { return fmt.Sprintf("the backend is not available: %v", e.Cause) }

// Unwrap returns the cause.
func (e *Unavailable) Unwrap() error { return e.Cause }

// ErrFenced is what a backend returns once another scheduler has taken over: this one touches nothing any more.
var ErrFenced = errors.New("another scheduler has taken over")

// Outlast makes the pipeline go on asking a backend that is not available, and decide nothing meanwhile. It calls wait before
// it asks again, with the number of times in a row that it asked in vain, and once with 0 when the backend is back; an error of
// wait ends the run. Without it, Unavailable is an error like any other.
func (p *Pipeline) Outlast(wait func(ctx context.Context, inVain int, trouble error) error) {
	p.outlast = wait
}

// outlasted reports whether a call to a backend, which was made in vain so many times before, is to be made again. Otherwise the
// error is what it came to.
func (p *Pipeline) outlasted(ctx context.Context, inVain int, err error) (again bool, _ error) {
	if p.outlast == nil || err == nil && inVain == 0 {
		return false, err
	}
	if err == nil {
		return false, p.outlast(ctx, 0, nil)
	}
	trouble, passes := errors.AsType[*Unavailable](err)
	if !passes {
		return false, err
	}
	err = p.outlast(ctx, inVain+1, trouble)
	return err == nil, err
}

// apply has a backend take in changes, however long it is not available.
func (p *Pipeline) apply(ctx context.Context, b Backend, changes []Change) error {
	for inVain := 0; ; inVain++ {
		if again, err := p.outlasted(ctx, inVain, b.Apply(ctx, changes)); !again {
			return err
		}
	}
}

// wait waits for the next round of a backend, however long it is not available.
func (p *Pipeline) wait(ctx context.Context, b Backend, w Wake) (Observation, error) {
	for inVain := 0; ; inVain++ {
		seen, err := b.Next(ctx, w)
		if again, err := p.outlasted(ctx, inVain, err); !again {
			return seen, err
		}
	}
}
