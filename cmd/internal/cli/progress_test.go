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
