package keeper

import (
	"fmt"
	"syscall"
)

// replicas are the processes of a run, by rank, as a keeper deals with them. A property test puts simulated ones in their place.
type replicas interface {
	// start starts a replica.
	start(rank int) error
	// next waits for the next occurrence.
	next() occurrence
	// collect returns how a replica ended. The process is nobody's from then on.
	collect(rank int) ending
	// working reports whether a replica that was started has not ended yet.
	working(rank int) bool
	// signal sends a signal to the process group of a replica that was not collected.
	signal(rank int, s syscall.Signal)
	// agentAsked reports whether the agent of the job was asked to stop.
	agentAsked() bool
	// beginGrace begins a grace period, in the place of any before. When it is over, next returns it.
	beginGrace()
}

// ending is how a replica ended.
type ending struct {
	code   int            // exit code; 128 + the signal for one that a signal ended
	reason string         // why it failed, in a sentence
	signal syscall.Signal // that ended it, if that is one by which processes are stopped; 0 for none
}

// occurrence is what a keeper waits for: the end of a replica, or else an event.
type occurrence struct {
	ended bool
	rank  int   // of the replica that ended
	event event // where no replica ended
}

// supervisor starts the replicas of a run and ends them as the table of transitions says.
type supervisor struct {
	replicas replicas
	left     map[int]bool // ranks of replicas that were started and not collected
	phase    phase
	exit     Exit
}

// supervise starts replicas, and returns how the run ended when none of them is left. The first replica that fails ends the
// others, and so does an order to stop. The exit codes are put into codes, by rank.
func supervise(r replicas, codes []int) Exit {
	s := &supervisor{replicas: r, left: map[int]bool{}, exit: Exit{Outcome: Finished, Codes: codes}}
	for rank := range codes {
		if err := r.start(rank); err != nil {
			s.exit.Failed = []int{rank}
			s.handle(startFailed, fmt.Sprintf("start replica %d: %v", rank, err))
			break
		}
		s.left[rank] = true
	}
	s.checkAgent()
	for len(s.left) > 0 {
		switch o := r.next(); {
		case o.ended:
			s.collect(o.rank)
		case s.working(): // an order that comes after the end of the replicas changes nothing
			s.handle(o.event, "")
		}
	}
	return s.exit
}

// checkAgent handles that the agent was asked to stop, for which the signal may be on its way.
func (s *supervisor) checkAgent() {
	if s.replicas.agentAsked() {
		s.handle(agentAsked, "")
	}
}

// collect handles the end of a replica.
func (s *supervisor) collect(rank int) {
	s.checkAgent()
	end := s.replicas.collect(rank)
	s.exit.Codes[rank] = end.code
	delete(s.left, rank)
	if end.code == 0 {
		s.handle(replicaCompleted, "")
		return
	}
	s.blame(rank, end.signal)
	s.handle(replicaFailed, end.reason)
}

// blame notes that a replica failed, if that ends the run, or if others killed it while the run ends for that: nobody here sent SIGKILL yet.
func (s *supervisor) blame(rank int, signal syscall.Signal) {
	switch {
	case s.phase == running:
		s.exit.Failed, s.exit.Killed = []int{rank}, signal != 0
	case s.phase == stopping && s.exit.Killed && signal == syscall.SIGKILL:
		s.exit.Failed = append(s.exit.Failed, rank)
	}
}

// handle does what the table says of an event. The reason is that of a failure.
func (s *supervisor) handle(e event, reason string) {
	t := transitions[s.phase][e]
	s.phase = t.next
	if t.outcome != "" {
		s.exit.Outcome, s.exit.Reason = t.outcome, reason
	}
	switch t.do {
	case wait:
	case beginGrace:
		s.replicas.beginGrace()
	case terminate:
		s.signal(syscall.SIGTERM)
		s.replicas.beginGrace()
	case kill:
		s.signal(syscall.SIGKILL)
	}
}

func (s *supervisor) signal(signal syscall.Signal) {
	for rank := range s.exit.Codes {
		if s.left[rank] {
			s.replicas.signal(rank, signal)
		}
	}
}

// working reports whether a replica is left that has not ended by itself.
func (s *supervisor) working() bool {
	for rank := range s.left {
		if s.replicas.working(rank) {
			return true
		}
	}
	return false
}
