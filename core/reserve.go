package core

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Reservation is devices of a node that are kept for a job which waited for long: nobody else gets new seats on them. They are not unusable: whoever runs
// on them goes on, and they are free otherwise.
type Reservation struct {
	Job     JobID     // that they are kept for
	Node    NodeID    // that they are on
	Devices DeviceSet // of the node; whoever has some of them now keeps these until it ends
}

// ReservedOn is the devices of a node that are reserved.
func (v *View) ReservedOn(n NodeID) (kept DeviceSet) {
	for _, r := range v.Reserved {
		if r.Node == n {
			kept |= r.Devices
		}
	}
	return kept
}

// reviewReserved gives up what is reserved for a job that does not wait any more, or that failed and waits to be tried again, on nodes that cannot be used, or by
// settings that are not in force any more.
func (s *state) reviewReserved(now Settling) {
	if now.Passes < 2 || now.ReserveAfterSeconds <= 0 {
		s.view.Reserved = nil
	}
	lost := func(r Reservation) bool {
		j := s.view.Job(r.Job)
		return j == nil || j.State != Waiting || s.retries.waits(r.Job) || r.Devices&^s.view.Cluster.Nodes[r.Node].Usable() != 0
	}
	if slices.ContainsFunc(s.view.Reserved, lost) {
		s.view.Reserved = nil
	}
}

// reservedFirst puts the grant of the job for which devices are reserved before all others.
func (s *state) reservedFirst(grants []Grant) []Grant {
	if len(s.view.Reserved) == 0 {
		return grants
	}
	at := slices.IndexFunc(grants, func(g Grant) bool { return g.Job == s.view.Reserved[0].Job })
	if at <= 0 {
		return grants
	}
	first := append(make([]Grant, 0, len(grants)), grants[at])
	return append(append(first, grants[:at]...), grants[at+1:]...)
}

// reserve keeps what is reserved until its job finds it idle, or reserves devices for the job that has waited for longest, where some were left out that others passed: those that it finds first when
// running jobs end one after the other; only where whole devices are counted. Where a refused job keeps its turn or may take devices of others, and where turns are handed out, the allocation says
// who waits for whom.
func (p *Pipeline) reserve(ctx context.Context) error {
	s, after := &p.state, p.rounds.Settle.ReserveAfterSeconds
	if after <= 0 || !p.mayReserve() {
		s.view.Reserved = nil
		return nil
	}
	if s.gaveUp() || len(s.view.Reserved) > 0 || len(p.settler.order) == 0 {
		return nil // nobody passed whom the allocation would have wait
	}
	heads := p.longestWaiting(after)
	if len(heads) == 0 {
		return nil
	}
	grants, r := slices.Clone(p.plan.Grants), p.seatedBefore()
	for i := range heads {
		if r.grants[r.head] = heads[i]; len(s.view.Reserved) == 0 {
			if err := p.reserveFor(ctx, &r); err != nil {
				return err
			}
		}
	}
	for {
		if err := p.seatThese(ctx, grants); err != nil {
			return err
		}
		p.goOnWhereTheyAre()
		if !s.gaveUp() { // all of it is idle once those that would start now do not: they start
			return nil
		}
	}
}

// mayReserve reports whether nothing else says who waits for whom, and the placer looks at what is reserved.
func (p *Pipeline) mayReserve() bool {
	r, s := &p.settler, &p.state
	return !s.view.Cluster.CountsShares() && !r.blocked && !s.blocked && !r.joint && p.stages.Allocation.can.AskedAgain() && !p.makesRoom() &&
		p.stages.Placement.can.KeepsReserved()
}

// gaveUp gives up what is reserved once its job has devices, or all of it is idle and the job does not take it, and reports whether it did.
func (s *state) gaveUp() bool {
	of := s.view.Reserved
	if len(of) == 0 || s.marks[of[0].Job].placed != s.view.Round && !s.allIdle(of) {
		return false
	}
	s.view.Reserved = nil
	return true
}

// allIdle reports whether nobody has any of the devices that are reserved.
func (s *state) allIdle(of []Reservation) bool {
	return !slices.ContainsFunc(of, func(r Reservation) bool { return r.Devices&^s.occupancy.ledger.FreeDevices(r.Node) != 0 })
}

// reservedDevices is how many devices are reserved.
func reservedDevices(of []Reservation) (n int) {
	for _, r := range of {
		n += r.Devices.Count()
	}
	return n
}

// mostHeads is for how many jobs devices are looked for in a round at most, where none are found for those before.
const mostHeads = 8

// longestWaiting is grants to the jobs that have waited for longest, and for so long at least, one of each shape; not to one for which nothing was found since.
func (p *Pipeline) longestWaiting(after float64) (heads []Grant) {
	s := &p.state
	var waiting []*Candidate
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.State != Waiting || s.retries.waits(c.ID) || s.marks[c.ID].placed == s.view.Round || s.marks[c.ID].roomFrom > s.view.NowSeconds {
			continue
		}
		if from := c.waitsSince() + after; from > s.view.NowSeconds {
			p.settler.until = min(p.settler.until, from)
		} else {
			waiting = append(waiting, c)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *Candidate) int { return cmp.Compare(a.waitsSince(), b.waitsSince()) })
	var firsts []*Candidate // of their shapes
	for _, c := range waiting {
		if len(heads) < mostHeads && !slices.ContainsFunc(firsts, func(o *Candidate) bool { return sameShape(c, o) }) {
			firsts = append(firsts, c)
			heads = append(heads, Grant{Job: c.ID, Accelerator: AnyAccelerator, Replicas: min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas)})
		}
	}
	return heads
}

// waitsSince is the moment since which a waiting job waits.
func (j *Job) waitsSince() float64 { return max(j.SubmitSeconds, j.LastChange) }

// seatedBefore is the search among those who were seated, who give way in the order in which they end, without a job for which it is.
func (p *Pipeline) seatedBefore() roomFor {
	s := &p.state
	r := roomFor{p: p, grants: make([]Grant, 0, len(p.plan.Placements)+1)}
	for i := range p.plan.Placements {
		if !s.view.Jobs[p.plan.Placements[i].Job].Pinned {
			r.later = append(r.later, len(r.grants))
		}
		r.grants = append(r.grants, p.plan.Grants[s.marks[p.plan.Placements[i].Job].grant])
	}
	r.head, r.grants = len(r.grants), append(r.grants, Grant{})
	slices.SortStableFunc(r.later, func(a, b int) int {
		x, y := s.view.Jobs[r.grants[a].Job], s.view.Jobs[r.grants[b].Job]
		return cmp.Or(cmp.Compare(x.secondsLeft(s.view.NowSeconds), y.secondsLeft(s.view.NowSeconds)), cmp.Compare(x.Held, y.Held))
	})
	return r
}

// reserveFor reserves the devices that a job finds when as few as possible of those that run end, the first to end first.
func (p *Pipeline) reserveFor(ctx context.Context, r *roomFor) error {
	s, job := &p.state, r.grants[r.head].Job
	victims, err := r.search(ctx)
	if err != nil || len(victims) == 0 {
		s.marks[job].roomFrom = s.view.NowSeconds + p.rounds.Settle.ReserveAfterSeconds
		return err
	}
	if err := r.seatWithout(ctx, victims); err != nil {
		return err
	}
	for i := range p.plan.Placements {
		if at := &p.plan.Placements[i]; at.Job == job {
			for _, seat := range at.Seats {
				s.view.Reserved = append(s.view.Reserved, Reservation{Job: job, Node: seat.Node, Devices: seat.Devices})
			}
		}
	}
	return nil
}

// secondsLeft is what is left of a job as far as anybody knows, at its present rate; infinite when unknown.
func (j *Job) secondsLeft(now float64) float64 {
	switch left := j.RemainingWork(now); {
	case !(j.TotalWork > 0):
		return math.Inf(1)
	case j.ProgressRate > 0:
		return left / j.ProgressRate
	default:
		return left
	}
}
