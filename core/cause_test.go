package core

import "testing"

// What takes devices from a job is a preemption, and what its own processes do is none.
func TestCauses(t *testing.T) {
	cases := map[Cause]struct {
		reason   Reason
		preempts bool
	}{
		CauseUnknown:     {NodeUnavailable, true},
		CauseNodeFailed:  {NodeUnavailable, true},
		CauseNodeDrained: {NodeUnavailable, true},
		CauseDeviceLost:  {NodeUnavailable, true},
		CauseKilled:      {Interrupted, false},
		CauseNeverBegan:  {Interrupted, false},
		CausePreempted:   {PreemptedByPriority, true},
		CauseExited:      {Interrupted, false},
		CauseEvicted:     {Interrupted, true},
		CauseRefused:     {Interrupted, false},
		CauseNoImage:     {Interrupted, false},

		CauseStartTimeout: {Interrupted, false},
	}
	if len(cases) != len(causeNames) {
		t.Errorf("%d of %d causes are looked at", len(cases), len(causeNames))
	}
	for c, want := range cases {
		if c.Reason() != want.reason || c.preempts() != want.preempts {
			t.Errorf("%v: reason %v, preempts %v, want %+v", c, c.Reason(), c.preempts(), want)
		}
		if parsed, ok := ParseCause(c.String()); !ok || parsed != c {
			t.Errorf("%v is parsed as %v", c, parsed)
		}
		s := &state{view: View{Cluster: &Cluster{}}}
		j := NewJob(&JobSpec{})
		j.State = Running
		s.view.Jobs, s.marks, s.running = []*Job{j}, []*mark{{}}, []*Job{j}
		if err := s.take(&Event{Kind: JobInterrupted, Cause: c}); err != nil {
			t.Fatal(err)
		}
		if (j.Preemptions == 1) != want.preempts || j.WaitingReason != want.reason || j.State != Waiting {
			t.Errorf("%v: %d preemptions, %v because of %v", c, j.Preemptions, j.State, j.WaitingReason)
		}
	}
	if _, ok := ParseCause("nonsense"); ok {
		t.Error("nonsense is a cause")
	}
}
