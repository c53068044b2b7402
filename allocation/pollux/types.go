package pollux

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// begin starts a round: nothing is granted, and the types are put in order, those with most ready devices first.
func (p *allocator) begin(v *core.View, candidates []core.Candidate) {
	p.horizon.observe(v)
	p.grants, p.seats = p.grants[:0], p.seats[:0]
	p.ledger.ResetTo(v)
	p.left = p.left[:0]
	for i := range candidates {
		p.left = append(p.left, &candidates[i])
	}
	p.sharing.observe(v.Cluster, p.left)
	for _, c := range p.left {
		if len(c.Seats) > 1 && c.MustStay(v.Cluster, c.Response) && mixes(v.Cluster, c.Seats) {
			p.occupy(c.Seats) // no type is to give away what it has of another
		}
	}
	p.byType = append(p.byType[:0], make([]int, len(v.Cluster.Accelerators))...)
	for i := range v.Cluster.Nodes {
		p.byType[v.Cluster.Nodes[i].Accelerator] += v.Cluster.Nodes[i].Usable().Count()
	}
	p.types = p.types[:0]
	if p.config.Types == "blind" {
		p.types = append(p.types, core.AnyAccelerator)
		return
	}
	for t := range p.byType {
		p.types = append(p.types, core.AcceleratorID(t))
	}
	slices.SortStableFunc(p.types, func(a, b core.AcceleratorID) int { return cmp.Compare(p.byType[b], p.byType[a]) })
}

// mixes reports whether seats are on devices of several types.
func mixes(c *core.Cluster, seats []core.Seat) bool {
	return slices.ContainsFunc(seats, func(s core.Seat) bool { return c.Nodes[s.Node].Accelerator != c.Nodes[seats[0].Node].Accelerator })
}

// optimises reports whether devices of a type take part in the search.
func (p *allocator) optimises(t core.AcceleratorID) bool {
	return p.accelerator == core.AnyAccelerator || p.accelerator == t
}

// contenders are the jobs without a grant yet that can run on what is optimised, but for those that hold devices of a
// type whose turn comes later.
func (p *allocator) contenders(c *core.Cluster, t core.AcceleratorID) []*core.Candidate {
	p.contending = p.contending[:0]
	turn := slices.Index(p.types, t)
	for _, candidate := range p.left {
		if candidate.Held > 0 && t != core.AnyAccelerator && slices.Index(p.types, c.Nodes[candidate.Seats[0].Node].Accelerator) > turn {
			continue
		}
		if p.canRun(c, candidate.Job) {
			p.contending = append(p.contending, candidate)
		}
	}
	return p.contending
}

// canRun reports whether a job can run on every type that is optimised.
func (p *allocator) canRun(c *core.Cluster, j *core.Job) bool {
	for t := range p.byType {
		if accelerator := core.AcceleratorID(t); p.optimises(accelerator) && !j.CanRunOn(c, accelerator) {
			return false
		}
	}
	return true
}

// grantBound serves the jobs that the blind pass over, as they cannot run on every type, or that got too little of
// each: they keep what they hold, or get their least, wherever that fits.
func (p *allocator) grantBound(c *core.Cluster) {
	if p.config.Types != "blind" {
		return
	}
	for _, j := range p.left {
		if p.canRun(c, j.Job) && !slices.Contains(p.unallocated, j.ID) {
			continue
		}
		n := j.Response.MinReplicas
		if j.Held > n && j.Held <= j.Response.MaxReplicas {
			n = j.Held
		}
		p.grants = append(p.grants, core.Grant{Job: j.ID, Accelerator: core.AnyAccelerator, Replicas: n})
	}
}

// unmix leaves every job the nodes of one type, that of most of its replicas, the lowest of several. If that
// is fewer than the job needs, it is unallocated.
func (p *allocator) unmix(c *core.Cluster) {
	p.unallocated = p.unallocated[:0]
	if p.accelerator != core.AnyAccelerator {
		return
	}
	replicas := make([]int, len(p.byType))
	for i, row := range p.plan.rows {
		clear(replicas)
		most := core.AcceleratorID(0)
		for _, s := range row {
			replicas[c.Nodes[s.node].Accelerator] += int(s.replicas)
		}
		for t, n := range replicas {
			if n > replicas[most] {
				most = core.AcceleratorID(t)
			}
		}
		row = slices.DeleteFunc(slices.Clone(row), func(s share) bool { return c.Nodes[s.node].Accelerator != most })
		if j := &p.jobs[i]; len(row) > 0 && replicas[most] < j.least {
			row, p.unallocated = nil, append(p.unallocated, j.id)
		}
		p.plan.rows[i] = row
	}
}
