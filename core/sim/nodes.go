package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// nodeEvents is the sequence of changes in the health of nodes.
type nodeEvents struct {
	schedule []nodeEvent // by time, then node; consumed from the front
	random   []nodeEvent // the next random failure or repair of each node; nil without failures
	mtbf     float64
	repair   float64
	rand     *rand.Rand
}

type nodeEvent struct {
	at   float64
	node core.NodeID
	to   core.Health
}

func newNodeEvents(c Config, cluster *core.Cluster, r *rand.Rand) (nodeEvents, error) {
	e := nodeEvents{mtbf: c.Failures.MTBF.Seconds(), repair: c.Failures.Repair.Seconds(), rand: r}
	healths := []core.Health{core.Ready, core.Draining, core.Down}
	for i, scheduled := range c.NodeEvents {
		node := slices.IndexFunc(cluster.Nodes, func(n core.Node) bool { return n.Name == scheduled.Node })
		to := slices.IndexFunc(healths, func(h core.Health) bool { return h.String() == scheduled.To })
		if node < 0 || to < 0 {
			return e, core.Diagnostics{{
				Path:    fmt.Sprintf("backend.config.node_events[%d]", i),
				Summary: fmt.Sprintf("no node %q that could become %q", scheduled.Node, scheduled.To),
			}}
		}
		e.schedule = append(e.schedule, nodeEvent{scheduled.At.Seconds(), core.NodeID(node), healths[to]})
	}
	slices.SortStableFunc(e.schedule, func(a, b nodeEvent) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node))
	})
	if e.mtbf > 0 {
		e.random = make([]nodeEvent, len(cluster.Nodes))
		for i := range e.random {
			e.random[i] = nodeEvent{e.rand.ExpFloat64() * e.mtbf, core.NodeID(i), core.Down}
		}
	}
	return e, nil
}

// next is the moment of the earliest change; +Inf if there is none.
func (e *nodeEvents) next() float64 {
	at := math.Inf(1)
	if len(e.schedule) > 0 {
		at = e.schedule[0].at
	}
	for i := range e.random {
		at = min(at, e.random[i].at)
	}
	return at
}

// scheduled reports whether a change that somebody asked for lies ahead.
func (e *nodeEvents) scheduled() bool { return len(e.schedule) > 0 }

// take removes and returns a change due at a moment.
func (e *nodeEvents) take(at float64) (nodeEvent, bool) {
	if len(e.schedule) > 0 && e.schedule[0].at <= at {
		first := e.schedule[0]
		e.schedule = e.schedule[1:]
		return first, true
	}
	for i := range e.random {
		if now := e.random[i]; now.at <= at {
			after := nodeEvent{now.at + e.rand.ExpFloat64()*e.repair, now.node, core.Ready}
			if now.to == core.Ready {
				after = nodeEvent{now.at + e.rand.ExpFloat64()*e.mtbf, now.node, core.Down}
			}
			e.random[i] = after
			return now, true
		}
	}
	return nodeEvent{}, false
}

// happenToNodes lets the changes of nodes up to a moment happen, and reports whether there was one.
func (s *Simulator) happenToNodes(at float64) bool {
	any := false
	for {
		change, ok := s.nodes.take(at)
		if !ok {
			return any
		}
		any = true
		s.events = append(s.events, core.Event{
			Kind: core.NodeChanged, AtSeconds: change.at, Node: change.node, Health: change.to,
		})
		if change.to == core.Down {
			s.interruptOn(change.node, at)
		}
	}
}

// interruptOn throws every job with a seat on a node back to its last checkpoint.
func (s *Simulator) interruptOn(node core.NodeID, at float64) {
	hit := slices.DeleteFunc(slices.Clone(s.running), func(j *simJob) bool {
		return !slices.ContainsFunc(j.seats, func(seat core.Seat) bool { return seat.Node == node })
	})
	for _, j := range hit {
		s.advance(j, at)
		if every := s.config.CheckpointInterval.Seconds(); every > 0 {
			s.rewind(j, math.Mod(max(at-j.pausedUntil, 0), every))
		}
		s.unseat(j)
		e := j.progressed(at)
		e.Kind = core.JobInterrupted
		s.events = append(s.events, e)
	}
	s.disturb(at, &s.events)
}

// rewind takes back what a job did in the last seconds, but not what it had done when it was started.
func (s *Simulator) rewind(j *simJob, seconds float64) {
	for seconds > 0 && j.progress > j.progressAtStart {
		begin := j.progressAtStart
		if j.phase > 0 {
			begin = max(begin, j.Model.PhaseEnd(j.phase-1))
		}
		rate := s.rateIn(j, j.phase)
		if lost := seconds * rate; rate <= 0 || lost <= j.progress-begin {
			j.progress -= lost
			return
		}
		seconds -= (j.progress - begin) / rate
		j.progress = begin
		if begin > j.progressAtStart {
			j.phase--
		}
	}
}
