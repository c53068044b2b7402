package core

import "math"

// The checks of the numbers in an answer. A rate that is no number would not fail at once: jobs would wait for ever
// instead. They cost a look at each value of a new answer, and nothing where nothing is answered.

// amount reports whether a value is a finite number that is not negative.
func amount(x float64) bool { return x >= 0 && x <= math.MaxFloat64 }

// finite reports whether a value is a number, and not infinite.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// wrongAmount is the index of the first value that is no amount; -1 for none.
func wrongAmount(values []float64) int {
	for i, x := range values {
		if !amount(x) {
			return i
		}
	}
	return -1
}

// mostReplicas bounds what a response may speak of: the devices of the cluster, or what the job was submitted with where
// that is more.
func (s *state) mostReplicas(j *Job) int {
	return max(j.Requested, j.MaxReplicas, s.view.Cluster.Devices())
}

func (s *state) checkResponse(component string, j *Job, r *Response) error {
	if r.MinReplicas < 1 || r.MaxReplicas < r.MinReplicas {
		return s.broken(component, j.ID, RuleReplicasInRange, "responds with %d..%d replicas", r.MinReplicas, r.MaxReplicas)
	}
	if r.MaxReplicas > j.MaxReplicas && r.MaxReplicas > s.mostReplicas(j) {
		return s.broken(component, j.ID, RuleReplicasInRange, "responds with up to %d replicas, of %d possible", r.MaxReplicas, s.mostReplicas(j))
	}
	if !amount(r.RemainingWork) && !math.IsNaN(r.RemainingWork) {
		return s.broken(component, j.ID, RuleResponseSane, "remaining work of %v", r.RemainingWork)
	}
	if !amount(r.SingleDeviceRate) {
		return s.broken(component, j.ID, RuleResponseSane, "a rate of %v alone", r.SingleDeviceRate)
	}
	for t := range r.Curves {
		c := &r.Curves[t]
		if err := s.checkRates(component, j, c.OneNode, "on one node", t); err != nil {
			return err
		}
		if err := s.checkRates(component, j, c.ManyNodes, "across nodes", t); err != nil {
			return err
		}
	}
	if r.MixedTypes == nil {
		return nil
	}
	return s.checkUnlike(component, j, r)
}

// checkRates holds one half of a curve to amounts. It may be longer than the job or the cluster is wide: jobs share curves.
func (s *state) checkRates(component string, j *Job, rates []float64, where string, accelerator int) error {
	if i := wrongAmount(rates); i >= 0 {
		return s.broken(component, j.ID, RuleResponseSane, "a rate of %v with %d replicas %s, accelerator type %d", rates[i], i+1, where, accelerator)
	}
	return nil
}

func (s *state) checkUnlike(component string, j *Job, r *Response) error {
	u := r.MixedTypes
	if t := wrongAmount(u.SingleDeviceRates); t >= 0 {
		return s.broken(component, j.ID, RuleResponseSane, "a rate of %v alone, accelerator type %d", u.SingleDeviceRates[t], t)
	}
	if i := wrongAmount(u.SyncSeconds); i >= 0 {
		return s.broken(component, j.ID, RuleResponseSane, "synchronisation of %v s with %d replicas", u.SyncSeconds[i], i+1)
	}
	return nil
}

// checkProposed holds a proposed seating to one existing device for each replica; whether they are free is the placer's
// to see.
func (s *state) checkProposed(component string, g *Grant) error {
	if len(g.Proposed) == 0 {
		return nil
	}
	nodes := s.view.Cluster.Nodes
	last, ascending := NodeID(-1), true
	for _, seat := range g.Proposed {
		if seat.Node < 0 || int(seat.Node) >= len(nodes) || seat.Devices == 0 || seat.Devices&^FirstDevices(nodes[seat.Node].Devices) != 0 {
			return s.broken(component, g.Job, RuleProposalSane, "proposes seats that do not exist: %s", s.describeSeats(g.Proposed))
		}
		ascending = ascending && seat.Node > last
		last = seat.Node
	}
	if got := Replicas(g.Proposed); got != g.Replicas {
		return s.broken(component, g.Job, RuleProposalSane, "proposes seats for %d of %d replicas", got, g.Replicas)
	}
	if ascending {
		return nil
	}
	taken := make(map[NodeID]DeviceSet, len(g.Proposed))
	for _, seat := range g.Proposed {
		if taken[seat.Node]&seat.Devices != 0 {
			return s.broken(component, g.Job, RuleProposalSane, "proposes seats with a device twice: %s", s.describeSeats(g.Proposed))
		}
		taken[seat.Node] |= seat.Devices
	}
	return nil
}

// checkGroups holds groups of grants to jobs that can be on the same devices.
func (s *state) checkGroups(component string, grants []Grant) error {
	c, last := s.view.Cluster, 0
	for i := 0; i < len(grants); {
		first, n := &grants[i], GroupOf(grants, i)
		switch {
		case first.Group == 0:
		case c.Sharing != TimeSlice:
			return s.broken(component, first.Job, RuleGroupSane, "groups jobs on a cluster that shares devices by %s", c.Sharing)
		case first.Group <= last:
			return s.broken(component, first.Job, RuleGroupSane, "group %d after group %d", first.Group, last)
		case n > c.MaxOwners:
			return s.broken(component, first.Job, RuleGroupSane, "a group of %d jobs where a device has %d owners at most", n, c.MaxOwners)
		}
		for _, g := range grants[i+1 : i+n] {
			if g.Replicas != first.Replicas || g.Accelerator != first.Accelerator {
				return s.broken(component, g.Job, RuleGroupSane, "granted %d replicas of type %d in a group of %d of type %d", g.Replicas, g.Accelerator, first.Replicas, first.Accelerator)
			}
		}
		last = max(last, first.Group)
		i += n
	}
	return nil
}

// checkTogether holds a placer to the same devices for the jobs of a group.
func (s *state) checkTogether(component string, grants []Grant, placed []Placement) error {
	if s.view.Cluster.Sharing != TimeSlice {
		return nil
	}
	clear(s.together)
	for i := range placed {
		p := &placed[i]
		group := grants[s.marks[p.Job].grant].Group
		if group == 0 {
			continue
		}
		seats, found := s.together[group]
		if !found {
			if s.together == nil {
				s.together = make(map[int][]Seat)
			}
			s.together[group] = p.Seats
		} else if !SameDevices(seats, p.Seats) {
			return s.broken(component, p.Job, RuleGroupTogether, "seated on %s, others of its group on %s", s.describeSeats(p.Seats), s.describeSeats(seats))
		}
	}
	return nil
}

// takeStanding takes in for how long the answer stands that a policy just gave. grants are those of the answer, of
// which the standing may name the first as its condition: it does not stand where one of them was dropped.
func (p *Pipeline) takeStanding(component string, can *Abilities, grants []Grant) error {
	s := &p.state
	now := s.view.NowSeconds
	answer := Standing{UntilSeconds: now}
	if can.Steady != nil {
		answer = can.Steady.Standing()
	}
	if math.IsNaN(answer.UntilSeconds) {
		return s.broken(component, -1, RuleStandingSane, "stands until %v", answer.UntilSeconds)
	}
	if answer.IfSeated < 0 || answer.IfSeated > len(grants) {
		return s.broken(component, -1, RuleStandingSane, "stands if %d grants of %d are seated", answer.IfSeated, len(grants))
	}
	if len(p.plan.Grants) < len(grants) || len(s.view.Reserved) > 0 {
		for _, g := range grants[:answer.IfSeated] {
			if m := s.marks[g.Job]; m.granted != s.view.Round {
				answer.UntilSeconds = now
			} else {
				answer.IfSeated = max(answer.IfSeated, m.grant+1)
			}
		}
		answer.IfSeated = min(answer.IfSeated, len(p.plan.Grants))
	}
	p.standing.UntilSeconds = min(p.standing.UntilSeconds, max(answer.UntilSeconds, now))
	p.standing.IfSeated = max(p.standing.IfSeated, answer.IfSeated) // of no other stage than the allocator
	return nil
}

// takeRevision takes in when the elasticity, whose standing was checked, wants to be asked about running jobs again.
func (p *Pipeline) takeRevision(can *Abilities) {
	if can.Steady != nil {
		if at := can.Steady.Standing().UntilSeconds; at > p.state.view.NowSeconds {
			p.state.reviseAt = at
		}
	}
}

// checkTarget holds a scaler to a number of nodes.
func (s *state) checkTarget(component string, target ClusterTarget) error {
	if target.Nodes < 0 {
		return s.broken(component, -1, RuleTargetSane, "wants %d nodes", target.Nodes)
	}
	return s.checkPools(component, target.Pools)
}
