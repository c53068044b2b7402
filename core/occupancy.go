package core

import "slices"

// occupancy is who holds which devices, as far as the check of a seating needs it. Its ledger is kept from round to round, so
// that a job that stays where it is costs no look at its devices.
type occupancy struct {
	ledger        Ledger
	shares        *Shares // instead of the ledger, where more than whole devices is counted
	healthChanges int     // as of which the ledger is
	current       bool    // what the running jobs hold is taken, and nothing else
	checked       bool    // what this round's placements hold is taken, and nothing else

	moved []int // indices of the placements that do not plainly leave a running job alone
	kept  int   // how many of the placements are of running jobs
}

// begin forgets the round before.
func (o *occupancy) begin() { o.checked, o.moved, o.kept = false, o.moved[:0], 0 }

// commit notes that the placements that were checked are what runs now.
func (o *occupancy) commit() { o.current = o.current || o.checked }

// release notes that a running job loses its devices.
func (o *occupancy) release(j *Job) {
	if o.current {
		o.free(j)
	}
}

// reset makes everything free.
func (o *occupancy) reset(v *View) {
	if o.shares = nil; v.Cluster.CountsShares() {
		o.shares = new(Shares)
		o.shares.Reset(v.Cluster)
		return
	}
	o.ledger.ResetTo(v)
}

// free gives back what a job holds.
func (o *occupancy) free(j *Job) {
	if o.shares != nil {
		o.shares.Release(j.JobSpec, j.Seats)
		return
	}
	o.ledger.Release(j.Seats)
}

// occupy takes seats for a job, if they are free.
func (o *occupancy) occupy(j *Job, seats []Seat) bool {
	if o.shares == nil {
		return o.ledger.Occupy(seats)
	}
	if keepsSlices(j, seats) {
		return o.shares.OccupySlices(j.JobSpec, seats, j.Slices())
	}
	return o.shares.Occupy(j.JobSpec, seats)
}

// checkPlacements holds a placer to one placement for a grant, of free devices.
func (s *state) checkPlacements(component string, grants []Grant, placed []Placement) error {
	o, round := &s.occupancy, s.view.Round
	known := o.current && o.healthChanges == s.view.HealthChanges && s.view.Devices == s.devices
	o.begin()
	o.current, o.healthChanges = false, s.view.HealthChanges
	for i := range placed {
		p := &placed[i]
		if err := s.answersGrant(component, p.Job); err != nil {
			return err
		}
		j, m := s.view.Jobs[p.Job], s.marks[p.Job]
		m.placed = round
		if j.State == Running {
			o.kept++
			if g := &grants[m.grant]; known && !p.Evicted && g.Replicas == j.Held && g.Accelerator == AnyAccelerator && SameSeats(j.Seats, p.Seats) {
				m.stayed = round
				continue
			}
		}
		o.moved = append(o.moved, i)
	}
	switch {
	case !known:
		o.reset(&s.view)
	case len(placed)-len(o.moved) < len(s.running):
		for _, j := range s.running {
			if s.marks[j.ID].stayed != round {
				o.free(j)
			}
		}
	}
	if s.view.Cluster.Sharing == Mig { // the slices of those who stay are taken before those of others are chosen
		moves := func(i int) int {
			if p := &placed[i]; keepsSlices(s.view.Jobs[p.Job], p.Seats) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(o.moved, func(a, b int) int { return moves(a) - moves(b) })
	}
	for _, i := range o.moved {
		if err := s.checkPlacement(component, grants, &placed[i]); err != nil {
			return err
		}
	}
	o.checked = true
	return nil
}
