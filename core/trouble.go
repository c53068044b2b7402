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

// persist calls a backend until it is available.
func (p *Pipeline) persist(ctx context.Context, call func() error) error {
	for inVain := 1; ; inVain++ {
		err := call()
		var trouble *Unavailable
		if p.outlast == nil || !errors.As(err, &trouble) {
			if err == nil && inVain > 1 {
				return p.outlast(ctx, 0, nil)
			}
			return err
		}
		if err := p.outlast(ctx, inVain, trouble); err != nil {
			return err
		}
	}
}

// wait waits for the next round of a backend, however long it is not available.
func (p *Pipeline) wait(ctx context.Context, b Backend, w Wake) (seen Observation, err error) {
	err = p.persist(ctx, func() (err error) {
		seen, err = b.Next(ctx, w)
		return err
	})
	return seen, err
}
