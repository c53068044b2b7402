package host

import (
	"testing"

	"github.com/quartet-sched/quartet/plugins/wire"
)

// A process is asked to end, but for one that would leave what it learned of a run that is none, or goes on later.
func TestWhoLeavesSomethingIsKilled(t *testing.T) {
	for name, tc := range map[string]struct {
		ends, canKill bool
		want          string
	}{
		"it learns":                 {true, true, "killed closed"},
		"it learns nothing":         {false, true, "closed"},
		"there is nothing to kill":  {true, false, "closed"},
		"nothing, and nothing else": {false, false, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			s := &Session{Close: func() { got += "closed" }}
			if tc.ends {
				s.Abilities = wire.Able(wire.LearnsFromEnds)
			}
			if tc.canKill {
				s.Kill = func() { got += "killed " }
			}
			w := worker{session: s}
			for range 2 { // twice is once
				if err := w.Discard(); err != nil {
					t.Error(err)
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
