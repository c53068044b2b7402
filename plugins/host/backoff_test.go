package host

import (
	"math"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for name, tc := range map[string]struct {
		first    time.Duration
		restarts int
		want     time.Duration
	}{
		"the first":         {100 * time.Millisecond, 0, 100 * time.Millisecond},
		"the fourth":        {100 * time.Millisecond, 3, 800 * time.Millisecond},
		"bounded":           {100 * time.Millisecond, 10, time.Minute},
		"without end":       {time.Nanosecond, math.MaxInt, time.Minute},
		"none":              {0, 1000, 0},
		"longer than bound": {time.Hour, 5, time.Minute},
		"at once too long":  {time.Hour, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := backoff(tc.first, tc.restarts); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
