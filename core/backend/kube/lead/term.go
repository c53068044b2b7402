package lead

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Clock is where time comes from. Now has a monotonic reading where there is one.
type Clock interface {
	// Now is the present moment.
	Now() time.Time
	// After returns a channel that gets the moment once a duration has passed.
	After(d time.Duration) <-chan time.Time
}

// ErrFenced is of a term that is over: somebody else leads, or nobody does. Nothing may be written in its name.
var ErrFenced = errors.New("no longer the leader")

// ErrNotRenewed is of a term that was not renewed in time. Nothing may be written until it is, or until it turns out to be over.
var ErrNotRenewed = errors.New("the lease was not renewed in time")

// Term is the time for which this process leads.
type Term struct {
	Epoch    int64           // greater than those of all terms before
	Identity string          // as the Lease names its holder
	Done     <-chan struct{} // closed when the term is over for good, and the Lease given up where it is to be

	clock Clock
	renew time.Duration

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was sent
	over    error
}

// Valid reports whether the process leads now. It is to be asked before every write.
func (t *Term) Valid() bool { return t.Err() == nil }

// Err is nil while the process leads, ErrNotRenewed while it does not know, and ErrFenced, with the cause, when the term is over.
func (t *Term) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return t.over
	}
	if t.left(t.clock.Now()) <= 0 {
		return ErrNotRenewed
	}
	return nil
}

// Left is for how long the term is valid unless it is renewed; not positive when it is not. A request that is given no more time
// is answered before anybody else leads.
func (t *Term) Left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return 0
	}
	return t.left(t.clock.Now())
}

// Renewed is when the last renewal was sent that succeeded: since then, the API server and its store took a write.
func (t *Term) Renewed() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renewed
}

func (t *Term) left(now time.Time) time.Duration {
	return remaining(t.renew, now.Sub(t.renewed), now.Round(0).Sub(t.renewed.Round(0)))
}

// remaining counts by the monotonic clock and by the wall clock: the first stands still while the machine sleeps, and the
// second may be set. When they differ the term is held to be older. A renewal later it is as young as it is.
func remaining(renew, steady, wall time.Duration) time.Duration {
	if steady < 0 { // there is no monotonic reading, and the clock was set back
		return 0
	}
	return renew - max(steady, wall)
}

// renewedAt notes a renewal that was sent at a moment and succeeded.
func (t *Term) renewedAt(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = sent
}

// end makes the term invalid for good. Done is closed later, when the Lease was given up too.
func (t *Term) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = fmt.Errorf("%w: %w", ErrFenced, cause)
}
