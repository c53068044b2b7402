package gavel

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// jobTable keeps the accounts of the jobs that are there, by JobID.
type jobTable struct {
	members, before []*member
	spare           []*member // of jobs that ended, for those to come
	types           int       // that the accounts are by
}

// update brings the accounts up to the round, and reports whether shares are to be computed anew: because a job came,
// ended, was edited or changed its speed.
func (r *jobTable) update(p *mechanism, v *core.View, candidates []core.Candidate) (changed bool) {
	changed = r.fit(len(v.Cluster.Accelerators), p.config.TypeBlind, v.IntervalSeconds/2)
	r.before, r.members = r.members, r.before[:0]
	at := 0
	for i := range candidates {
		c := &candidates[i]
		if c.MustStay(v.Cluster, c.Response) {
			continue
		}
		for at < len(r.before) && r.before[at].id < c.ID {
			r.spare, changed = append(r.spare, r.before[at]), true
			at++
		}
		var m *member
		if at < len(r.before) && r.before[at].id == c.ID {
			m = r.before[at]
			at++
			m.charge(c.ExecutedSeconds(v.NowSeconds))
			changed = changed || m.weight > 0 && m.weight != c.Weight // of one just restored it is 0
		} else {
			m, changed = r.enter(p, v, c), true
		}
		m.spec, m.tenant, m.weight, m.submit = c.JobSpec, c.Tenant, c.Weight, c.SubmitSeconds
		m.remaining, m.attained = remaining(c, v.NowSeconds), c.AttainedService(v.NowSeconds)
		if m.measure(p, v.Cluster, c) {
			changed = true
		}
		m.leased = p.leased(v, c, m)
		r.members = append(r.members, m)
	}
	for ; at < len(r.before); at++ {
		r.spare, changed = append(r.spare, r.before[at]), true
	}
	return changed
}

// fit makes room in the accounts for types that came with new nodes, and reports whether there are any. Nobody has a share of
// them yet, and everybody the credit. Accounts with more types than there are, of another cluster, are closed.
func (r *jobTable) fit(types int, typeBlind bool, credit float64) bool {
	if r.types == types {
		return false
	}
	r.types, r.spare = types, nil
	r.members = slices.DeleteFunc(r.members, func(m *member) bool { return len(m.speed) > types })
	for _, m := range r.members {
		had := *m
		m.open(types, typeBlind)
		for t := copy(m.seconds, had.seconds); t < types; t++ {
			m.seconds[t] = credit
		}
		copy(m.speed, had.speed)
		copy(m.share, had.share)
		copy(m.deficit, had.deficit)
		copy(m.rates, had.rates)
		copy(m.x, had.x)
	}
	return true
}

// open makes accounts of so many types.
func (m *member) open(types int, typeBlind bool) {
	numbers := make([]float64, 6*types)
	for _, list := range []*[]float64{&m.speed, &m.share, &m.seconds, &m.deficit, &m.rates, &m.x} {
		*list, numbers = numbers[:types:types], numbers[types:]
	}
	if typeBlind {
		m.rates, m.x = m.rates[:1], m.x[:1]
	}
}

// enter opens the accounts of a job.
func (r *jobTable) enter(p *mechanism, v *core.View, c *core.Candidate) *member {
	types := len(v.Cluster.Accelerators)
	m := new(member)
	if last := len(r.spare) - 1; last >= 0 {
		m, r.spare = r.spare[last], r.spare[:last]
	} else {
		m.open(types, p.config.TypeBlind)
	}
	m.id = c.ID
	m.granted, m.executed, m.shared, m.devices = core.AnyAccelerator, c.ExecutedSeconds(v.NowSeconds), false, 0
	m.with, m.together = nil, -1
	clear(m.x)
	for t := range types {
		m.speed[t], m.share[t], m.seconds[t], m.deficit[t] = 0, 0, v.IntervalSeconds/2, 0
		if p.config.NewJobs == share && !p.policy.strict() && p.total > 0 {
			m.share[t] = p.devices[t] / p.total
		}
	}
	return m
}

// charge books the time since the last round on the type that was granted then.
func (m *member) charge(executed float64) {
	switch spent := executed - m.executed; {
	case m.with != nil:
		m.with.spent = max(m.with.spent, spent)
	case m.granted != core.AnyAccelerator:
		m.seconds[m.granted] += spent
	}
	m.with = nil
	m.executed, m.granted = executed, core.AnyAccelerator
}

// measure notes how fast the job is on each type, and reports whether that is news. A job whose speed is unknown is
// taken to be as fast wherever it can run.
func (m *member) measure(p *mechanism, c *core.Cluster, candidate *core.Candidate) (changed bool) {
	response := candidate.Response
	replicas := p.replicas(c, candidate)
	changed = m.devices != replicas
	m.devices = replicas
	for t := range m.speed {
		accelerator := core.AcceleratorID(t)
		speed := 0.0
		if float64(replicas) <= p.devices[t] && candidate.CanRunOn(c, accelerator) {
			speed = 1
			if response.Curves != nil {
				speed = response.Rate(accelerator, replicas, p.nodes[t])
			}
		}
		if speed != m.speed[t] {
			m.speed[t], changed = speed, true
		}
	}
	if !p.config.TypeBlind {
		m.scale(m.speed)
	} else if len(m.rates) > 0 {
		first := max(slices.IndexFunc(m.speed, func(speed float64) bool { return speed > 0 }), 0)
		m.scale(m.speed[first : first+1])
	}
	return changed
}

// leased is the type that a job came to lately, or is still in a restart pause on, if it can go on there as it is.
func (p *mechanism) leased(v *core.View, c *core.Candidate, m *member) core.AcceleratorID {
	until := max(c.LastChange+p.config.Lease.Seconds(), c.ProgressAsOf)
	if c.Held == 0 || c.Held != m.devices || until <= v.NowSeconds {
		return core.AnyAccelerator
	}
	on := v.Cluster.Nodes[c.Seats[0].Node].Accelerator
	for _, s := range c.Seats {
		if n := &v.Cluster.Nodes[s.Node]; n.Accelerator != on || s.Devices&^n.Usable() != 0 {
			return core.AnyAccelerator
		}
	}
	if m.speed[on] <= 0 {
		return core.AnyAccelerator
	}
	return on
}

// replicas is what the candidate asked for, within what it can use and what some type has ready for it.
func (p *mechanism) replicas(c *core.Cluster, candidate *core.Candidate) int {
	r := candidate.Response
	most := r.MinReplicas
	for t, w := range p.devices {
		if int(w) > most && candidate.CanRunOn(c, core.AcceleratorID(t)) {
			most = int(w)
		}
	}
	return min(max(candidate.Requested, r.MinReplicas), r.MaxReplicas, most)
}

// remaining is the work left in the unit of the curves. What elasticity tells may count whole epochs only, and the
// declared work smaller steps.
func remaining(c *core.Candidate, now float64) float64 {
	declared, told := c.RemainingWork(now), c.Response.RemainingWork
	switch {
	case !(c.TotalWork > 0):
		return told
	case math.IsNaN(told):
		return declared
	}
	return min(declared, told)
}
