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

	given JobSpec // scratch: of a job that is given other amounts than it asks for

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
		o.free(j, j.Resources, j.Seats)
	}
}

// undo takes back what the placements of an answer hold that does not stand, so that what the running jobs hold is taken, and nothing
// else. Where more than whole devices is counted, it is counted anew the next time.
func (o *occupancy) undo(s *state, placed []Placement) {
	o.current = o.checked && o.shares == nil
	if o.current {
		for _, i := range o.moved {
			o.ledger.Release(placed[i].Seats)
		}
	}
	for _, j := range s.running {
		if m := s.marks[j.ID]; m.stayed == s.view.Round {
			m.stayed = 0
		} else {
			o.current = o.current && o.ledger.Occupy(j.Seats)
		}
	}
	o.begin()
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

// free gives back seats of a job, each replica of which has CPUs and memory.
func (o *occupancy) free(j *Job, each *Resources, seats []Seat) {
	if o.shares != nil {
		o.shares.Release(o.giving(j, each), seats)
		return
	}
	o.ledger.Release(seats)
}

// occupy takes the seats of a placement of a job, if they are free, and the CPUs and the memory.
func (o *occupancy) occupy(j *Job, p *Placement) bool {
	if o.shares == nil {
		return o.ledger.Occupy(p.Seats)
	}
	if keepsSlices(j, p.Seats) {
		return o.shares.OccupySlices(o.giving(j, p.Resources), p.Seats, j.Slices())
	}
	return o.shares.Occupy(o.giving(j, p.Resources), p.Seats)
}

// lacking is the rule that seats break which were not there to be taken, and how.
func (o *occupancy) lacking(j *Job, p *Placement) (rule, what string) {
	const taken = "are not all free"
	if o.shares == nil {
		return RuleDeviceOnce, taken
	}
	spec, l := o.giving(j, p.Resources), o.shares
	for _, s := range p.Seats {
		if s.Node < 0 || int(s.Node) >= len(l.nodes) || s.Devices&^l.nodes[s.Node].usable != 0 {
			return RuleDeviceOnce, taken
		}
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			switch device := rest.First(); {
			case l.FitsOn(spec, s.Node, device):
			case l.cluster.Sharing == Exclusive:
				return RuleDeviceOnce, taken
			case l.cluster.Sharing != Mig && asks(spec.DeviceMemoryGB) > l.devices[l.nodes[s.Node].first+device].memory:
				return RuleDeviceLeft, "have not the memory of devices that it needs left"
			default:
				return RuleDeviceLeft, "have not its part of devices left"
			}
		}
		if !l.FitsAt(spec, s.Node, s.Devices.Count()) {
			return RuleNodeLeft, "lack the CPUs and the memory that must be left"
		}
	}
	return RuleDeviceOnce, taken
}

// giving is the specification of a job as if it asked for what it is given. It is valid until the next call.
func (o *occupancy) giving(j *Job, each *Resources) *JobSpec {
	if each == nil {
		return j.JobSpec
	}
	o.given = *j.JobSpec
	o.given.CPUs, o.given.MemoryGB = each.CPUs, each.MemoryGB
	return &o.given
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
			if known && staysAs(j, &grants[m.grant], p) {
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
		s.freeMoved()
	}
	if s.view.Cluster.Sharing == Mig {
		s.keptSlicesFirst(placed)
	}
	for _, i := range o.moved {
		if err := s.checkPlacement(component, grants, &placed[i]); err != nil {
			return err
		}
	}
	o.checked = true
	return nil
}

// staysAs reports whether a running job goes on by a placement exactly as it runs.
func staysAs(j *Job, g *Grant, p *Placement) bool {
	return !p.Evicted && g.Replicas == j.Held && g.Accelerator == AnyAccelerator && SameSeats(j.Seats, p.Seats) && SameResources(j.Resources, p.Resources)
}

// freeMoved frees what the jobs hold that do not stay where they are in this round.
func (s *state) freeMoved() {
	for _, j := range s.running {
		if s.marks[j.ID].stayed != s.view.Round {
			s.occupancy.free(j, j.Resources, j.Seats)
		}
	}
}

// keptSlicesFirst puts the placements of jobs that keep their slices before those of others: their slices are taken before others are chosen.
func (s *state) keptSlicesFirst(placed []Placement) {
	moves := func(i int) int {
		if p := &placed[i]; keepsSlices(s.view.Jobs[p.Job], p.Seats) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(s.occupancy.moved, func(a, b int) int { return moves(a) - moves(b) })
}
