package backendtest

import (
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// shareChecks test what is shared. A backend without core.CapabilityShares skips them.
var shareChecks = []check{
	{"shares: jobs are on a device together", sharesADevice},
	{"shares: jobs take turns on a device", takesTurns},
	{"shares: a job takes the place of one of several", sharesInTurn},
}

// sharing opens a backend on a cluster that shares devices.
func sharing(t testing.TB, h *Harness, how core.Sharing, jobs ...Job) *session {
	t.Helper()
	c := cluster()
	c.Sharing, c.MaxOwners = how, 2
	b := h.Open(t, World{Cluster: c, Jobs: h.scaled(jobs)})
	if !slices.Contains(b.Capabilities(), core.CapabilityShares) {
		t.Skip("on this backend each device is one job's at a time")
	}
	s := newSession(t, h, b, c)
	s.submitted(len(jobs))
	return s
}

// wantShares complains about a job that was not told as it was submitted.
func (s *session) wantShares(jobs ...Job) {
	s.Helper()
	for id := range jobs {
		if got, want := s.jobs[id].spec.Share, jobs[id].Share(); (got == nil) != (want == nil) || got != nil && *got != *want {
			s.Errorf("job %d is reported with the share %v, want %v", id, got, want)
		}
	}
}

// A job beside another that never ends runs to its own end, and so does one on the second of the devices of a third.
func sharesADevice(t testing.TB, h *Harness) {
	jobs := []Job{{Seconds: Endless, ShareMilli: 334}, {Seconds: 1, ShareMilli: 333}, {Seconds: 2, ShareMilli: 333, Replicas: 2}}
	s := sharing(t, h, core.Fractional, jobs...)
	s.wantShares(jobs...)
	from := s.now
	s.apply(start(0, firstOfA), start(1, firstOfA), start(2, bothOfA))
	for id, units := range map[core.JobID]float64{1: 1, 2: 2} {
		if e := s.end(id); e.Kind != core.JobFinished {
			t.Errorf("job %d %v, want it finished", id, e.Kind)
		} else {
			h.checkSpan(t, e.AtSeconds-from, units*h.UnitSeconds)
		}
	}
	if s.jobs[0].ended != nil {
		t.Errorf("the job beside them %v", s.jobs[0].ended.Kind)
	}
}

func takesTurns(t testing.TB, h *Harness) {
	s := sharing(t, h, core.TimeSlice, Job{Seconds: Endless}, Job{Seconds: 1})
	s.apply(start(0, bothOfA), start(1, firstOfA))
	if e := s.end(1); e.Kind != core.JobFinished {
		t.Errorf("the job %v, want it finished", e.Kind)
	}
}

// What is stopped leaves its part to another, and the one beside both does not notice.
func sharesInTurn(t testing.TB, h *Harness) {
	s := sharing(t, h, core.Fractional, Job{Seconds: 4, ShareMilli: 500}, Job{Seconds: Endless, ShareMilli: 500}, Job{Seconds: 1, ShareMilli: 500}, Job{Seconds: 1})
	from := s.now
	s.apply(start(0, firstOfA), start(1, firstOfA), start(3, firstOfB))
	s.end(3)
	s.apply(stop(1), start(2, firstOfA))
	s.end(2)
	if e := s.end(0); e.Kind != core.JobFinished || s.jobs[0].interrupted != nil {
		t.Errorf("the job beside them %v, interrupted: %v", e.Kind, s.jobs[0].interrupted != nil)
	} else {
		h.checkSpan(t, e.AtSeconds-from, 4*h.UnitSeconds)
	}
	s.apply(start(1, firstOfB), start(2, firstOfA)) // the latter has ended
	s.pass(1)
	if s.jobs[1].ended != nil {
		t.Errorf("the job that was stopped %v", s.jobs[1].ended.Kind)
	}
}
