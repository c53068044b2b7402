package core

import (
	"cmp"
	"math"
	"slices"
)

// comes reports whether a node of a pool is on its way.
func (n *Node) comes() bool { return n.Pool != "" && n.Health == Provisioning }

// await corrects a verdict about a job that waits for nodes of pools: it does not fit the free devices, and it would if those
// that are on their way were ready, or it is too large for the ready ones and pools may have more.
func (m *missing) await(s *state, c Candidate, v *Verdict) {
	switch v.Reason {
	case WaitingForDevices, BlockedByEarlier, Fragmented, AcceleratorMissing:
	default:
		return
	}
	need := c.Response.MinReplicas
	if mark := s.marks[c.ID]; mark.granted == s.view.Round {
		need = mark.replicas
	}
	free := most(s.view.Cluster, c.JobSpec, m.free)
	if free >= need {
		return
	}
	at, comes := m.readyAt(s.view.Cluster, c.JobSpec, m.free, need, s.view.NowSeconds)
	if usable := most(s.view.Cluster, c.JobSpec, m.usable); !comes && usable < need {
		if at, comes = m.readyAt(s.view.Cluster, c.JobSpec, m.usable, need, s.view.NowSeconds); !comes {
			comes = most(s.view.Cluster, c.JobSpec, m.possible) >= need
		}
	}
	if comes {
		m.claim(s.view.Cluster, c.JobSpec, need)
		*v = Verdict{
			Job: v.Job, Code: Defer, Reason: AwaitingNodes, By: "pipeline",
			Wanted: float64(need), Available: float64(free), Unit: "devices", ExpectedSeconds: at,
		}
	}
}

// most is how many of devices, by type, a job can have at once: those of one type, or all where it mixes them.
func most(c *Cluster, spec *JobSpec, devices []int) int {
	one, all, _ := widestOf(c, spec, devices, (*JobSpec).CanRunOn)
	if spec.MixesTypes {
		return all
	}
	return one
}

// readyAt is when a job should have the devices that it needs, of those that there are and those of nodes on their way, less what jobs
// before it wait for. It reports whether these are enough; the moment is 0 when nobody knows it.
func (m *missing) readyAt(c *Cluster, spec *JobSpec, there []int, need int, now float64) (at float64, enough bool) {
	if len(m.coming) == 0 {
		return 0, false
	}
	m.sum = append(m.sum[:0], there...)
	for t, n := range m.claimed {
		m.sum[t] -= n
	}
	for _, id := range m.coming {
		n := &c.Nodes[id]
		if m.sum[n.Accelerator] += n.Devices; most(c, spec, m.sum) >= need {
			return ahead(n.ExpectedSeconds, now), true
		}
	}
	return 0, false
}

// shown are the jobs that a scaler is shown: the candidates, and those that are not admitted for want of nodes.
func (s *state) shown() []Candidate {
	awaits := func(j *Job) bool { return j.State == Pending && j.WaitingReason == AwaitingNodes }
	if !slices.ContainsFunc(s.pending, awaits) {
		return s.eligible()
	}
	s.awaited = append(s.awaited[:0], s.eligible()...)
	for _, j := range s.pending {
		if awaits(j) && s.responses[j.ID] != nil {
			s.awaited = append(s.awaited, Candidate{Job: j, Response: s.responses[j.ID]})
		}
	}
	slices.SortFunc(s.awaited, func(a, b Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return s.awaited
}

// claim takes what a job waits for out of what comes.
func (m *missing) claim(c *Cluster, spec *JobSpec, need int) {
	for need > 0 {
		widest, left := -1, 0
		for t := range m.claimed {
			n := m.free[t] - m.claimed[t]
			for _, id := range m.coming {
				if c.Nodes[id].Accelerator == AcceleratorID(t) {
					n += c.Nodes[id].Devices
				}
			}
			if n > left && spec.CanRunOn(c, AcceleratorID(t)) {
				widest, left = t, n
			}
		}
		if widest < 0 {
			return // it waits for nodes that nobody asked for yet
		}
		taken := min(need, left)
		m.claimed[widest] += taken
		if need -= taken; !spec.MixesTypes {
			return
		}
	}
}

// ahead is a moment that is yet to come, and 0 for one that is past: who said so was wrong, and nobody knows.
func ahead(at, now float64) float64 {
	if at <= now {
		return 0
	}
	return at
}

// sortComing puts the nodes on their way in order of the moments at which they should be ready, those without one last.
func (m *missing) sortComing(c *Cluster) {
	moment := func(id NodeID) float64 {
		if at := c.Nodes[id].ExpectedSeconds; at > 0 {
			return at
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(m.coming, func(a, b NodeID) int { return cmp.Compare(moment(a), moment(b)) })
}

// expect completes a verdict of AwaitingNodes about a job that is not admitted: it says when the next node should be ready that
// the job can run on.
func (s *state) expect(j *Job, v *Verdict) {
	if v.Reason != AwaitingNodes || v.ExpectedSeconds > 0 {
		return
	}
	c := s.view.Cluster
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if at := ahead(n.ExpectedSeconds, s.view.NowSeconds); at > 0 && n.comes() && j.CanRunOn(c, n.Accelerator) && (v.ExpectedSeconds == 0 || at < v.ExpectedSeconds) {
			v.ExpectedSeconds = at
		}
	}
}

// expectsOther reports whether a job was given another moment at which nodes come, or none.
func (s *state) expectsOther(v *Verdict) bool {
	return v.Reason == AwaitingNodes && v.ExpectedSeconds != s.marks[v.Job].expected
}
