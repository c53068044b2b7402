package cli

import (
	"time"
)

// WallClock is the clock of real backends.
type WallClock struct{}

// Now is the time of this machine.
func (WallClock) Now() time.Time { return time.Now() }

// After sends the time once a duration has passed.
func (WallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
