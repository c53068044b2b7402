package cli

import (
	"time"
)

// WallClock is the clock of real backends.
type WallClock struct{}

func (WallClock) Now() time.Time { return time.Now() }

func (WallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
