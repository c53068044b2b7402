package keeper

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// The names of phases and events, for failures of tests.
var (
	phaseNames = [...]string{running: "running", asked: "asked", stopping: "stopping", killing: "killing"}
	eventNames = [...]string{
		replicaCompleted: "replica completed", replicaFailed: "replica failed", startFailed: "start failed", agentAsked: "agent asked",
		stopOrdered: "stop ordered", killOrdered: "kill ordered", graceOver: "grace over",
	}
)

func phases() []phase { return []phase{running, asked, stopping, killing} }

func events() []event {
	return []event{replicaCompleted, replicaFailed, startFailed, agentAsked, stopOrdered, killOrdered, graceOver}
}

// What holds for every event in every phase.
func TestTransitions(t *testing.T) {
	if len(transitions) != len(phases()) || len(transitions[0]) != len(events()) || len(phaseNames) != len(phases()) || len(eventNames) != len(events()) {
		t.Fatalf("the table has %d phases and %d events", len(transitions), len(transitions[0]))
	}
	enter := map[phase]action{running: wait, asked: beginGrace, stopping: terminate, killing: kill}
	for _, p := range phases() {
		for _, e := range events() {
			t.Run(phaseNames[p]+"/"+eventNames[e], func(t *testing.T) {
				got := transitions[p][e]
				if got.next < p {
					t.Errorf("the phase goes back to %s", phaseNames[got.next])
				}
				want := wait
				if got.next != p {
					want = enter[got.next]
				}
				if got.do != want {
					t.Errorf("does %v, want %v: what begins the phase %s, once", got.do, want, phaseNames[got.next])
				}
				if leaves := p == running && got.next != running; leaves != (got.outcome != "") {
					t.Errorf("outcome %q, want one if and only if the phase running is left", got.outcome)
				}
				if fails := e == replicaFailed || e == startFailed; got.outcome != "" && fails != (got.outcome == Failed) {
					t.Errorf("outcome %q of %s", got.outcome, eventNames[e])
				}
				checkUrgency(t, p, e, got)
			})
		}
	}
}

// checkUrgency holds how fast replicas are ended.
func checkUrgency(t *testing.T, p phase, e event, got transition) {
	t.Helper()
	switch {
	case e == killOrdered && got.next != killing:
		t.Error("an order to kill does not kill")
	case e == graceOver && p != running && p != killing && got.next != p+1:
		t.Errorf("the end of a grace period leads to %s, want the next phase", phaseNames[got.next])
	case e != killOrdered && e != graceOver && got.next == killing && p != killing:
		t.Errorf("replicas are killed without a grace period by %s", eventNames[e])
	case e == replicaFailed && got.next < stopping:
		t.Error("the others go on after one has failed")
	}
}

// simulated is a machine on which a property test lets anything happen, in any order.
type simulated struct {
	t         *rapid.T
	processes []*simulatedProcess // by rank; nil for one that was not started
	unstarted int                 // rank that cannot be started, if there is such a rank
	hasAgent  bool
	asked     bool // the agent, to stop
	ordered   bool // the keeper, to stop or kill what had not ended by itself
	grace     bool // a grace period runs
	occurred  int
}

type simulatedProcess struct {
	stubborn  bool // does not heed SIGTERM
	alive     bool
	code      int // of the end
	ended     syscall.Signal
	foreign   bool // others killed it
	reported  bool
	collected bool
	signals   []syscall.Signal
}

func (s *simulated) start(rank int) error {
	if rank == s.unstarted {
		return errors.New("no such program")
	}
	s.processes[rank] = &simulatedProcess{alive: true, stubborn: rapid.Bool().Draw(s.t, "stubborn")}
	return nil
}

// next draws what happens next from what can.
func (s *simulated) next() occurrence {
	if s.occurred++; s.occurred > 200 {
		s.t.Fatal("the supervisor does not come to an end")
	}
	s.checkSignals()
	for {
		type possible struct {
			name string
			do   func() (occurrence, bool)
		}
		order := func(e event) func() (occurrence, bool) {
			return func() (occurrence, bool) { s.ordered = s.ordered || s.anyAlive(); return occurrence{event: e}, true }
		}
		all := []possible{{"stop", order(stopOrdered)}, {"kill", order(killOrdered)}}
		if s.hasAgent {
			all = append(all,
				possible{"agent asked", func() (occurrence, bool) { s.asked = true; return occurrence{event: agentAsked}, true }},
				possible{"agent asked, and the signal is lost", func() (occurrence, bool) { s.asked = true; return occurrence{}, false }},
			)
		}
		if s.grace {
			all = append(all, possible{"grace over", func() (occurrence, bool) { s.grace = false; return occurrence{event: graceOver}, true }})
		}
		for rank, p := range s.processes {
			if p != nil && p.alive {
				all = append(all, possible{fmt.Sprintf("replica %d exits", rank), func() (occurrence, bool) {
					p.alive, p.code = false, rapid.SampledFrom([]int{0, 0, 1, 75, 137}).Draw(s.t, "code")
					if p.code == 137 {
						p.ended, p.foreign = syscall.SIGKILL, true
					}
					return occurrence{}, false
				}})
			} else if p != nil && !p.reported {
				all = append(all, possible{fmt.Sprintf("end of replica %d is noticed", rank), func() (occurrence, bool) {
					p.reported = true
					return occurrence{ended: true, rank: rank}, true
				}})
			}
		}
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].name
		}
		chosen := rapid.SampledFrom(names).Draw(s.t, "happens")
		if o, reported := all[slices.Index(names, chosen)].do(); reported {
			return o
		}
	}
}

// checkSignals fails where a replica got other signals than the others that are left.
func (s *simulated) checkSignals() {
	var first *simulatedProcess
	for rank, p := range s.processes {
		switch {
		case p == nil || p.collected:
		case first == nil:
			first = p
		case !slices.Equal(first.signals, p.signals):
			s.t.Fatalf("replica %d got the signals %v, one before it %v", rank, p.signals, first.signals)
		}
	}
}

func (s *simulated) anyAlive() bool {
	return slices.ContainsFunc(s.processes, func(p *simulatedProcess) bool { return p != nil && p.alive })
}

func (s *simulated) collect(rank int) ending {
	p := s.processes[rank]
	if p == nil || !p.reported || p.collected {
		s.t.Fatalf("replica %d is collected, which has not ended", rank)
	}
	p.collected = true
	return ending{p.code, "a reason", p.ended}
}

func (s *simulated) working(rank int) bool {
	s.mine(rank)
	return s.processes[rank].alive
}

func (s *simulated) signal(rank int, sig syscall.Signal) {
	s.mine(rank)
	p := s.processes[rank]
	p.signals = append(p.signals, sig)
	if p.alive && (sig == syscall.SIGKILL || !p.stubborn) {
		p.alive, p.code, p.ended = false, 128+int(sig), sig
	}
}

// mine fails where a number may be that of a foreign process by now.
func (s *simulated) mine(rank int) {
	if s.processes[rank] == nil || s.processes[rank].collected {
		s.t.Fatalf("replica %d is signalled or looked at, which is not the keeper's", rank)
	}
}

func (s *simulated) agentAsked() bool { return s.asked }

func (s *simulated) beginGrace() { s.grace = true }

// In any order of ends, orders and grace periods the keeper signals its own processes only, comes to an end, leaves none, and
// tells what happened.
func TestAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 4).Draw(t, "replicas")
		s := &simulated{t: t, processes: make([]*simulatedProcess, n), unstarted: rapid.IntRange(0, 12).Draw(t, "unstarted"), hasAgent: rapid.Bool().Draw(t, "has an agent")}
		s.asked = s.hasAgent && rapid.Bool().Draw(t, "asked before")
		codes := slices.Repeat([]int{-1}, n)
		e := supervise(s, codes)
		failed := s.unstarted < n
		for rank, p := range s.processes {
			switch {
			case p == nil && rank < s.unstarted:
				t.Fatalf("replica %d was not started", rank)
			case p == nil && codes[rank] != -1:
				t.Errorf("replica %d has code %d, but was not started", rank, codes[rank])
			case p == nil:
			case p.alive || !p.collected:
				t.Errorf("replica %d is left", rank)
			case codes[rank] != p.code:
				t.Errorf("replica %d has code %d, want %d", rank, codes[rank], p.code)
			}
			if p != nil {
				failed = failed || p.code != 0
				if !slices.Equal(p.signals, slices.Compact(slices.Clone(p.signals))) || !slices.IsSortedFunc(p.signals, func(a, b syscall.Signal) int { return int(b) - int(a) }) {
					t.Errorf("replica %d got %v, want SIGTERM once at most, then SIGKILL", rank, p.signals)
				}
			}
		}
		possible := map[Outcome]bool{Finished: !failed && !s.asked, Stopped: s.asked || s.ordered, Failed: failed}
		if !possible[e.Outcome] {
			t.Errorf("outcome %s of codes %v; asked %v, ordered %v", e.Outcome, codes, s.asked, s.ordered)
		}
		for _, rank := range e.Failed {
			if p := s.processes[rank]; p != nil && p.code == 0 || e.Killed && !p.foreign {
				t.Errorf("replica %d is said to have failed, killed %v: %+v", rank, e.Killed, p)
			}
		}
		if e.Outcome == Failed && len(e.Failed) == 0 {
			t.Errorf("nobody is said to have failed: %+v", e)
		}
		if (e.Outcome == Failed) != (e.Reason != "") {
			t.Errorf("outcome %s for the reason %q", e.Outcome, e.Reason)
		}
	})
}

// Replicas that heed nothing but SIGKILL are gone after one grace period when they are to be stopped, and after two when their
// agent was asked.
func TestGracePeriodsAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		order  event
		graces int
	}{"asked": {agentAsked, 2}, "stopped": {stopOrdered, 1}, "killed": {killOrdered, 0}} {
		t.Run(name, func(t *testing.T) {
			p := &patient{t: t, first: tc.order}
			e := supervise(p, []int{-1})
			if p.graces != tc.graces || e.Outcome != Stopped || e.Codes[0] != 137 {
				t.Errorf("%d grace periods, and %+v; want %d", p.graces, e, tc.graces)
			}
		})
	}
}

// patient is a replica that only SIGKILL ends, of a run that gets one order.
type patient struct {
	t         *testing.T
	first     event
	ordered   bool
	killed    bool
	collected bool
	graces    int
}

func (p *patient) start(int) error { return nil }

func (p *patient) next() occurrence {
	switch {
	case p.killed && p.collected:
		p.t.Fatal("the supervisor does not come to an end")
	case p.killed:
		return occurrence{ended: true}
	case !p.ordered:
		p.ordered = true
		return occurrence{event: p.first}
	}
	if p.graces++; p.graces > 5 {
		p.t.Fatal("the replica is never killed")
	}
	return occurrence{event: graceOver}
}

func (p *patient) collect(int) ending {
	p.collected = true
	return ending{137, "killed", syscall.SIGKILL}
}

func (p *patient) working(int) bool { return !p.killed }

func (p *patient) signal(_ int, s syscall.Signal) { p.killed = s == syscall.SIGKILL }

func (p *patient) agentAsked() bool { return false }

func (p *patient) beginGrace() {}
