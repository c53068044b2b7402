package sim

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// nodeEvents is the sequence of changes in the health of nodes. They have two causes, the schedule and chance, and neither
// undoes what the other did: a node is ready while both say so.
type nodeEvents struct {
	schedule []nodeEvent // by time, then node; consumed from the front
	asked    int         // of those, the ones that the config asks for; pools make the others
	chance   nodeHeap    // the next random failure or repair of each node; empty without failures
	mtbf     float64
	repair   float64
	rand     *stream

	planned []core.Health    // by node: as the schedule says
	failed  []bool           // by node: by chance
	told    []core.Health    // by node: as last returned
	joining []core.AddedNode // in the order of their ids, without their health; consumed from the front
}

// absent is the health of a node that has not joined yet.
const absent = core.Gone + 1

// nodeEvent says what a node becomes for one of the causes.
type nodeEvent struct {
	at     float64
	node   core.NodeID
	to     core.Health
	ofPool bool // it was not asked for by the config
}

func compareNodeEvents(a, b nodeEvent) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node))
}

// newNodeEvents expects that checkNodeEvents found nothing.
func newNodeEvents(c Config, cluster *core.Cluster, r *stream) nodeEvents {
	e := nodeEvents{
		mtbf: c.Failures.MTBF.Seconds(), repair: c.Failures.Repair.Seconds(), rand: r,
		planned: make([]core.Health, len(cluster.Nodes)), failed: make([]bool, len(cluster.Nodes)),
	}
	ids := make(map[string]core.NodeID, len(cluster.Nodes))
	for i := range cluster.Nodes {
		ids[cluster.Nodes[i].Name] = core.NodeID(i)
		e.planned[i] = cluster.Nodes[i].Health
	}
	ready := e.join(c.JoiningNodes, ids)
	e.told = slices.Clone(e.planned)
	for _, scheduled := range c.NodeEvents {
		e.schedule = append(e.schedule, nodeEvent{at: scheduled.At.Seconds(), node: ids[scheduled.Node], to: healthOf(scheduled.To)})
	}
	slices.SortStableFunc(e.schedule, compareNodeEvents)
	e.asked = len(e.schedule)
	if e.mtbf > 0 {
		for i := range cluster.Nodes {
			e.chance = append(e.chance, nodeEvent{at: e.rand.ExpFloat64() * e.mtbf, node: core.NodeID(i), to: core.Down})
		}
		for _, joined := range ready {
			e.chance = append(e.chance, nodeEvent{at: joined.at + e.rand.ExpFloat64()*e.mtbf, node: joined.node, to: core.Down})
		}
		heap.Init(&e.chance)
	}
	return e
}

// next is the moment of the earliest event; +Inf if there is none.
func (e *nodeEvents) next() float64 {
	at := math.Inf(1)
	if len(e.schedule) > 0 {
		at = e.schedule[0].at
	}
	if len(e.chance) > 0 {
		at = min(at, e.chance[0].at)
	}
	return at
}

// scheduled reports whether a change that the config asks for lies ahead. Nodes of pools come and go for as long as a scaler wants some.
func (e *nodeEvents) scheduled() bool { return e.asked > 0 }

// take lets the events up to a moment happen, until one changes the health of its node, and returns what that became.
func (e *nodeEvents) take(upTo float64) (nodeEvent, bool) {
	for e.next() <= upTo {
		change := e.happen()
		if change.to = e.health(change.node); change.to != e.told[change.node] {
			e.told[change.node] = change.to
			return change, true
		}
	}
	return nodeEvent{}, false
}

// happen lets the next event happen. At the same moment and node, the schedule comes before chance.
func (e *nodeEvents) happen() nodeEvent {
	if len(e.chance) == 0 || len(e.schedule) > 0 && compareNodeEvents(e.schedule[0], e.chance[0]) <= 0 {
		first := e.schedule[0]
		e.schedule = e.schedule[1:]
		if !first.ofPool {
			e.asked--
		}
		if e.planned[first.node] != core.Gone { // it never comes back
			e.planned[first.node] = first.to
		}
		return first
	}
	first := e.chance[0]
	e.failed[first.node] = first.to == core.Down
	after := nodeEvent{at: first.at + e.rand.ExpFloat64()*e.repair, node: first.node, to: core.Ready}
	if first.to == core.Ready {
		after = nodeEvent{at: first.at + e.rand.ExpFloat64()*e.mtbf, node: first.node, to: core.Down}
	}
	e.chance[0] = after
	heap.Fix(&e.chance, 0)
	return first
}

// health is what both causes make of a node: the worse of the two.
func (e *nodeEvents) health(node core.NodeID) core.Health {
	if e.failed[node] && e.planned[node] != core.Gone {
		return core.Down
	}
	return e.planned[node]
}

// nodeHeap is a heap of events by time, then node.
type nodeHeap []nodeEvent

func (h nodeHeap) Len() int           { return len(h) }
func (h nodeHeap) Less(a, b int) bool { return compareNodeEvents(h[a], h[b]) < 0 }
func (h nodeHeap) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *nodeHeap) Push(any)          { panic("nodes: each node has one event ahead, always") }
func (h *nodeHeap) Pop() any          { panic("nodes: each node has one event ahead, always") }

// happenToNodes lets the changes of nodes up to a moment happen, and reports whether there was one.
func (s *Simulator) happenToNodes(at float64) bool {
	any := false
	for {
		change, ok := s.devices.nodes.take(at)
		if !ok {
			if any {
				s.devices.known.MayGrow = s.mayGrow()
			}
			return any
		}
		any = true
		switch {
		case int(change.node) == len(s.devices.cluster.Nodes):
			s.addNode(change)
		case change.to == core.Gone:
			s.clock.events = append(s.clock.events, core.Event{Kind: core.NodeRemoved, AtSeconds: change.at, Node: change.node})
			cause := core.CauseNodeFailed
			if expires, leaves := s.pools.expires[change.node]; leaves && change.at == expires {
				cause = core.CauseNodeDrained
			}
			s.interruptOn(change.node, at, cause)
		default:
			s.clock.events = append(s.clock.events, core.Event{
				Kind: core.NodeChanged, AtSeconds: change.at, Node: change.node, Health: change.to,
			})
			if change.to == core.Down {
				s.interruptOn(change.node, at, core.CauseUnknown)
			}
		}
	}
}

// interruptOn throws every job with a seat on a node back to its last checkpoint.
func (s *Simulator) interruptOn(node core.NodeID, at float64, cause core.Cause) {
	hit := slices.DeleteFunc(slices.Clone(s.jobs.running), func(j *simJob) bool {
		return !slices.ContainsFunc(j.seats, func(seat core.Seat) bool { return seat.Node == node })
	})
	for _, j := range hit {
		s.clock.events = append(s.clock.events, s.interrupt(j, at, cause))
	}
	s.disturb(at, &s.clock.events)
}

// interrupt throws a job back to its last checkpoint, or to its beginning.
func (s *Simulator) interrupt(j *simJob, at float64, cause core.Cause) core.Event {
	s.advance(j, at)
	if every := s.config.CheckpointInterval.Seconds(); every > 0 {
		s.rewind(j, math.Mod(max(at-j.pausedUntil, 0), every))
	}
	s.leave(j, at, nil)
	s.unseat(j)
	j.lose()
	e := j.progressed(at)
	e.Kind, e.Cause = core.JobInterrupted, cause
	return e
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
