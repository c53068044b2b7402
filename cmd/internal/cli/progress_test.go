package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestProgressIsShownAndTakenAway(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, tc := range map[string]struct {
		all   int
		after time.Duration
		drawn bool
	}{"jobs": {10, 0, true}, "simulations": {-1, 0, true}, "not for long": {-1, time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			drawn := &noted{some: make(chan struct{})}
			p := &progress{}
			p.show(drawn, name, tc.all, tc.after)
			p.Count()
			if tc.drawn {
				select {
				case <-drawn.some:
				case <-time.After(time.Minute):
					t.Fatal("nothing is drawn")
				}
			}
			p.Stop()
			p.Stop()
			switch text := drawn.text.String(); {
			case strings.Contains(text, "\n"):
				t.Errorf("the bar leaves a line behind: %q", text)
			case (text != "") != tc.drawn, tc.drawn && !strings.Contains(text, name):
				t.Errorf("drawn is %q", text)
			}
		})
	}
}

func TestBarText(t *testing.T) {
	for _, tc := range []struct {
		count, all int64
		taken      time.Duration
		want       string
	}{
		{0, 4, 1500 * time.Millisecond, "jobs   0% |                              | (0/4) [1s]"},
		{1, 4, 2500 * time.Millisecond, "jobs  25% |███████                       | (1/4) [2s:7s]"},
		{4, 4, time.Minute, "jobs 100% |██████████████████████████████| (4/4) [1m0s:0s]"},
		{7, 4, time.Minute, "jobs 100% |██████████████████████████████| (4/4) [1m0s:0s]"}, // counted again after a restart
		{7, -1, 3 * time.Second, "jobs (7) [3s]"},
		{0, 0, 0, "jobs (0) [0s]"},
	} {
		if got := barText("jobs", tc.count, tc.all, tc.taken); got != tc.want {
			t.Errorf("%d of %d: %q, want %q", tc.count, tc.all, got, tc.want)
		}
	}
}

// noted notes what is written, and tells when something is.
type noted struct {
	text bytes.Buffer
	some chan struct{}
}

func (n *noted) Write(text []byte) (int, error) {
	if n.text.Len() == 0 && len(text) > 0 {
		close(n.some)
	}
	return n.text.Write(text)
}
