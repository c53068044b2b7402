package core

import (
	"cmp"
	"context"
	"fmt"
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

// ReservedFrom is the devices of a node that are kept from a job for another one.
func (v *View) ReservedFrom(job JobID, n NodeID) (kept DeviceSet) {
	for _, r := range v.Reserved {
		if r.Node == n && r.Job != job {
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

// keepReserved takes out of a seating what seats others on devices that are reserved.
func (s *state) keepReserved(seating Seating) Seating {
	if len(s.view.Reserved) == 0 {
		return seating
	}
	takes := func(p Placement) bool {
		j := s.view.Job(p.Job)
		return j != nil && !SameSeats(j.Seats, p.Seats) && slices.ContainsFunc(p.Seats, func(seat Seat) bool {
			return seat.Devices&s.view.ReservedFrom(p.Job, seat.Node) != 0
		})
	}
	if !slices.ContainsFunc(seating.Placed, takes) {
		return seating
	}
	seating.Unseated = slices.Clip(seating.Unseated)
	for _, p := range seating.Placed {
		if takes(p) {
			seating.Unseated = append(seating.Unseated, Verdict{
				Job: p.Job, Code: Defer, Reason: BlockedByEarlier, Wanted: float64(Replicas(p.Seats)), Unit: "devices",
				Message: fmt.Sprintf("the devices for it are reserved for job %d, which has waited for longer", s.view.Reserved[0].Job),
			})
		}
	}
	seating.Placed = slices.DeleteFunc(slices.Clone(seating.Placed), takes)
	return seating
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
	head := p.longestWaiting(after)
	if head == nil {
		return nil
	}
	grants := slices.Clone(p.plan.Grants)
	if err := p.reserveFor(ctx, head); err != nil {
		return err
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

// mayReserve reports whether nothing else says who waits for whom.
func (p *Pipeline) mayReserve() bool {
	r, s := &p.settler, &p.state
	return !s.view.Cluster.CountsShares() && !r.blocked && !s.blocked && !r.joint && p.stages.Allocation.can.AskedAgain() && !p.makesRoom()
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

// longestWaiting is a grant to the job that has waited for longest, and for so long at least; nil for none.
func (p *Pipeline) longestWaiting(after float64) (head *Grant) {
	s, since := &p.state, math.Inf(1)
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.State != Waiting || s.retries.waits(c.ID) || s.marks[c.ID].placed == s.view.Round {
			continue
		}
		if from := c.waitsSince(); from+after > s.view.NowSeconds {
			p.settler.until = min(p.settler.until, from+after)
		} else if from < since {
			head, since = &Grant{Job: c.ID, Accelerator: AnyAccelerator, Replicas: min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas)}, from
		}
	}
	return head
}

// waitsSince is the moment since which a waiting job waits.
func (j *Job) waitsSince() float64 { return max(j.SubmitSeconds, j.LastChange) }

// reserveFor looks for the devices that a job finds when as few as possible of those that run end, the first to end first.
func (p *Pipeline) reserveFor(ctx context.Context, head *Grant) error {
	s := &p.state
	r := roomFor{p: p, grants: make([]Grant, 0, len(p.plan.Placements)+1)}
	for i := range p.plan.Placements {
		if !s.view.Jobs[p.plan.Placements[i].Job].Pinned {
			r.later = append(r.later, len(r.grants))
		}
		r.grants = append(r.grants, p.plan.Grants[s.marks[p.plan.Placements[i].Job].grant])
	}
	r.head, r.grants = len(r.grants), append(r.grants, *head)
	slices.SortStableFunc(r.later, func(a, b int) int {
		x, y := s.view.Jobs[r.grants[a].Job], s.view.Jobs[r.grants[b].Job]
		return cmp.Or(cmp.Compare(x.secondsLeft(s.view.NowSeconds), y.secondsLeft(s.view.NowSeconds)), cmp.Compare(x.Held, y.Held))
	})
	victims, err := r.search(ctx)
	if err != nil || len(victims) == 0 {
		return err
	}
	if err := r.seatWithout(ctx, victims); err != nil || !r.seated() {
		return err
	}
	for i := range p.plan.Placements {
		if at := &p.plan.Placements[i]; at.Job == head.Job {
			for _, seat := range at.Seats {
				s.view.Reserved = append(s.view.Reserved, Reservation{Job: head.Job, Node: seat.Node, Devices: seat.Devices})
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
