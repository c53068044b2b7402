package core

import (
	"fmt"
	"math"
	"slices"
)

// explained is the reasons that waiting jobs know, so that a round looks at those alone whose reason may differ.
type explained struct {
	plain      bool    // nobody waited for nodes
	notGranted Reason  // of those that were granted nothing
	others     []JobID // those that knew another reason
	cursor     int     // of the journal
	round      []JobID // scratch
}

// explainWaiting tells each admitted job without devices why, when the reason is new. O(jobs that changed or were refused), as long as the reason of those that were
// granted nothing stays true.
func (s *state) explainWaiting() {
	if s.outgrown = false; s.view.Waiting == 0 {
		return
	}
	notGranted := WaitingForDevices
	if s.blocked {
		notGranted = BlockedByEarlier
	}
	nodesMissing := s.missing.count(s)
	e := &s.explained
	plain := !nodesMissing && !s.shrunken // nobody waits for nodes
	changed, _, complete := s.view.ChangesSince(e.cursor)
	round := s.view.Active
	if plain && e.plain && complete && notGranted == e.notGranted && len(changed)+len(e.others)+len(s.unseated) < len(round) {
		round = append(append(e.round[:0], e.others...), changed...)
		for i := range s.unseated {
			round = append(round, s.unseated[i].Job)
		}
		slices.Sort(round)
		e.round = slices.Compact(round)
		round = e.round
	}
	e.others, e.plain, e.notGranted = e.others[:0], plain, notGranted
	for _, id := range round {
		j := s.view.Jobs[id]
		if j == nil || j.State != Waiting {
			continue
		}
		if s.retries.waits(id) && j.WaitingReason != NoReason { // what interrupted it says why
			e.others = append(e.others, id)
			continue
		}
		if !plain || j.WaitingReason != notGranted || s.marks[id].answered == s.view.Round { // it may not know
			s.explain(Candidate{Job: j, Response: s.responses[id]}, notGranted, nodesMissing)
		}
		if j.WaitingReason != notGranted {
			e.others = append(e.others, id)
		}
	}
	_, e.cursor, _ = s.view.ChangesSince(e.cursor)
}

// explain tells a waiting job why it waits, unless a stop in this round says so.
func (s *state) explain(c Candidate, notGranted Reason, nodesMissing bool) {
	v := s.whyWaiting(c, notGranted, nodesMissing)
	if !math.IsNaN(c.FirstStart) && c.LastChange == s.view.NowSeconds && v.Reason != NodeUnavailable {
		return
	}
	s.reportWaiting(c.Job, v)
}

// reportWaiting tells a job why it waits, if that is new.
func (s *state) reportWaiting(j *Job, v Verdict) {
	m := s.marks[j.ID]
	unproven := v.Reason == NodeUnavailable && !m.nodesTold
	if v.Reason != j.WaitingReason || unproven || s.expectsOther(&v) {
		j.WaitingReason, m.nodesTold = v.Reason, v.Reason == NodeUnavailable
		s.view.journal.add(j.ID)
		s.reportVerdict(v)
	}
}

// whyWaiting says why a candidate waits: by the placer if it answered, corrected by what the pipeline knows of nodes.
func (s *state) whyWaiting(c Candidate, notGranted Reason, nodesMissing bool) Verdict {
	v := Verdict{Job: c.ID, Code: Defer, Reason: notGranted, By: "pipeline"}
	if m := s.marks[c.ID]; m.answered == s.view.Round {
		v = s.unseated[m.verdict]
	}
	if nodesMissing {
		s.missing.blame(s, c, &v)
		s.missing.await(s, c, &v)
	}
	if s.shrunken {
		s.blameCapacity(c, &v)
	}
	return v
}

// blameCapacity corrects a verdict about an admitted job that became too large for a cluster to which nodes may join: others left
// for good, or its owner edited it.
func (s *state) blameCapacity(c Candidate, v *Verdict) {
	s.countCapacity()
	need := c.Response.MinReplicas
	if capacity, _ := s.capacity.For(s.view.Cluster, c.JobSpec); need > capacity {
		if !s.view.Cluster.MayGrow {
			s.outgrown = true
			return
		}
		*v = Verdict{
			Job: v.Job, Code: Defer, Reason: AwaitingNodes, By: "pipeline",
			Wanted: float64(need), Available: float64(capacity), Unit: "devices",
		}
		s.expect(c.Job, v)
	}
}

// missing counts the devices of each accelerator type while nodes are down or draining, or pools may have more of them.
type missing struct {
	usable []int // on ready nodes
	free   []int // of those, the ones that no job holds
	lost   []int // unusable, on nodes that are neither gone nor on their way to a pool

	message string // about those that are lost

	possible []int    // on ready nodes and those on their way, and on the nodes that pools may still ask for
	coming   []NodeID // the nodes on their way to pools, in order of their moments
	claimed  []int    // of what is free and of those nodes, what jobs wait for, as their verdicts said
	sum      []int
}

// The messages about devices that are lost.
const (
	onNodes   = "%d of the devices that it can use are on nodes that are down or draining"
	onAnyNode = "%d of the devices that it can use are broken, held by others, or on nodes that are not ready"
)

// count brings the numbers up to date, and reports whether any device is lost or may come. O(nodes × pools + seats) when there is
// one, otherwise O(pools).
func (m *missing) count(s *state) bool {
	c := s.view.Cluster
	if s.devices == s.view.Devices && (len(c.Pools) == 0 || !c.MayGrow) {
		return false
	}
	m.usable = append(m.usable[:0], make([]int, len(c.Accelerators))...)
	m.lost = append(m.lost[:0], m.usable...)
	m.possible, m.claimed = append(m.possible[:0], m.usable...), append(m.claimed[:0], m.usable...)
	m.message, m.coming = onNodes, m.coming[:0]
	for i := range c.Pools {
		m.possible[c.Pools[i].Accelerator] += c.toCome(&c.Pools[i])
	}
	for i := range c.Nodes {
		node := &c.Nodes[i]
		if node.comes() {
			m.coming = append(m.coming, node.ID)
			m.possible[node.Accelerator] += node.Devices
			continue
		}
		usable := node.Usable().Count()
		m.usable[node.Accelerator] += usable
		m.possible[node.Accelerator] += usable
		if node.Health == Provisioning || node.Health == Ready && usable < node.Devices {
			m.message = onAnyNode
		}
		if node.Health != Gone {
			m.lost[node.Accelerator] += node.Devices - usable
		}
	}
	m.sortComing(c)
	m.free = append(m.free[:0], m.usable...)
	for _, j := range s.running {
		for _, seat := range j.Seats {
			node := &c.Nodes[seat.Node]
			m.free[node.Accelerator] -= (seat.Devices & node.Usable()).Count()
		}
	}
	return true
}

// blame corrects a verdict about a job that lacks devices because nodes are missing: it does not fit the free ones, and it
// would if those nodes were ready, or it cannot run before they are, whatever the other jobs do.
func (m *missing) blame(s *state, c Candidate, v *Verdict) {
	switch v.Reason {
	case WaitingForDevices, BlockedByEarlier, Fragmented:
	default:
		return
	}
	need := c.Response.MinReplicas
	if mark := s.marks[c.ID]; mark.granted == s.view.Round {
		need = mark.replicas
	}
	cluster := s.view.Cluster
	free, usable, back, lost := 0, 0, 0, 0 // of the best type, or of all that it mixes
	for t := range cluster.Accelerators {
		if !c.CanRunOn(cluster, AcceleratorID(t)) {
			continue
		}
		lost += m.lost[t]
		if c.MixesTypes {
			free, usable, back = free+m.free[t], usable+m.usable[t], back+m.free[t]+m.lost[t]
		} else {
			free, usable, back = max(free, m.free[t]), max(usable, m.usable[t]), max(back, m.free[t]+m.lost[t])
		}
	}
	if lost == 0 || free >= need || back < need && usable >= need {
		return
	}
	*v = Verdict{
		Job: v.Job, Code: Defer, Reason: NodeUnavailable, By: "pipeline",
		Wanted: float64(need), Available: float64(free), Unit: "devices",
		Message: fmt.Sprintf(m.message, lost),
	}
}
