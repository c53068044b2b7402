package core

import (
	"math"
	"slices"
)

// diff compares the plan with what runs: stops first, then moves, starts and tunings in the order of placement, then
// the jobs rejected in this round.
func (s *state) diff(plan *Plan, stages *Stages) []Change {
	s.changes, s.evicted = s.changes[:0], s.evicted[:0]
	for _, j := range s.suspended {
		if !j.State.Ended() && s.marks[j.ID].placed != s.view.Round {
			s.changes = append(s.changes, Change{Round: s.view.Round, Action: Stop, Job: j.ID, Reason: Suspended, By: "pipeline"})
		}
	}
	s.changes = append(s.changes, s.reviewed...)
	if s.occupancy.kept < len(s.running) {
		s.stops(stages)
	}
	if len(plan.Tunings) == 0 {
		for _, i := range s.occupancy.moved {
			s.compare(plan, stages, &plan.Placements[i])
		}
	} else {
		for i := range plan.Placements {
			s.compare(plan, stages, &plan.Placements[i])
		}
	}
	for _, j := range s.report.Ended {
		if j.State == Rejected {
			s.changes = append(s.changes, Change{Round: s.view.Round, Action: Discard, Job: j.ID, Reason: j.WaitingReason, By: "pipeline"})
		}
	}
	return s.changes
}

// stops adds the jobs that have no placement.
func (s *state) stops(stages *Stages) {
	round := s.view.Round
	for _, j := range s.running {
		if s.marks[j.ID].placed == round {
			continue
		}
		c := Change{Round: round, Action: Stop, Job: j.ID, Reason: PreemptedByPriority, By: stages.Allocation.ID}
		if s.marks[j.ID].granted == round {
			c.By = stages.Placement.ID
		}
		if !s.usable(j.Seats) {
			c.Reason, c.By = NodeUnavailable, "pipeline"
		}
		s.changes = append(s.changes, c)
	}
}

// compare adds what a placement changes for its job.
func (s *state) compare(plan *Plan, stages *Stages, p *Placement) {
	j, m, round := s.view.Jobs[p.Job], s.marks[p.Job], s.view.Round
	stays := j.State == Running && SameSeats(j.Seats, p.Seats)
	given := SameResources(j.Resources, p.Resources)
	if stays && !p.Evicted && given && (m.tuned != round || plan.Tunings[m.tuning].Equal(j.Tuning)) {
		return // as almost all do in most rounds
	}
	c := s.start(plan, p)
	c.By = stages.Placement.ID
	if j.State == Running {
		if p.Evicted {
			s.evicted = append(s.evicted, j) // the same seats make no change
		}
		c.Action = Move
		if stays {
			if c.Tuning.Equal(j.Tuning) && given {
				return
			}
			if c.Action = Tune; given {
				c.By = stages.Elasticity.ID
			}
			c.Tuning.BatchByReplica = slices.Clone(c.Tuning.BatchByReplica)
			s.changes = append(s.changes, c)
			return
		}
	}
	c.Seats, c.Tuning.BatchByReplica = slices.Clone(p.Seats), slices.Clone(c.Tuning.BatchByReplica)
	s.changes = append(s.changes, c)
}

// start is the change that starts a job as a placement says, on no seats yet.
func (s *state) start(plan *Plan, p *Placement) Change {
	j, m, round := s.view.Jobs[p.Job], s.marks[p.Job], s.view.Round
	c := Change{Round: round, Action: Start, Job: p.Job, Tuning: j.Tuning}
	if m.tuned == round {
		c.Tuning = plan.Tunings[m.tuning]
	} else if len(c.Tuning.BatchByReplica) != Replicas(p.Seats) {
		c.Tuning.BatchByReplica = nil // it was for other seats
	}
	if p.Resources != nil {
		each := *p.Resources // the placer's own
		c.Resources = &each
	}
	if m.suspended == round {
		c.Action = Move // its owner held it back and let it go on again since the round before
	}
	return c
}

// usable reports whether every device of seats may be placed on.
func (s *state) usable(seats []Seat) bool {
	for _, seat := range seats {
		if seat.Devices&^s.view.Cluster.Nodes[seat.Node].Usable() != 0 {
			return false
		}
	}
	return true
}

// commit enters the applied changes into the state and completes the report.
func (s *state) commit() {
	now := s.view.NowSeconds
	for _, j := range s.evicted {
		j.Preemptions++
		s.view.journal.add(j.ID)
	}
	for i := range s.changes {
		c := &s.changes[i]
		j := s.view.Jobs[c.Job]
		s.view.journal.add(c.Job)
		switch c.Action {
		case Finish, Pause: // done before the stages were asked
			continue
		case Stop:
			if c.Reason == Suspended && j.State == Pending {
				continue // it was released when its owner said so
			}
			s.release(j, now)
			s.retries.uncap(j.ID, now)
			j.Preemptions++
			j.Progress, j.ProgressRate, j.ProgressAsOf = j.WorkDone(now), 0, now
			j.WaitingReason = c.Reason
		case Start, Move:
			s.seat(j, c, now)
		case Tune:
			j.Tuning, j.Resources = c.Tuning, c.Resources
			s.occupancy.current = s.occupancy.current && s.occupancy.shares == nil // it may hold other amounts
		}
	}
	if s.explained.plain = s.explained.plain && !s.recorded; !s.recorded {
		s.explainWaiting()
	}
	s.report.Changes = s.changes
	s.report.DevicesUsed = s.holders.devices
	s.occupancy.commit()
}

func (s *state) seat(j *Job, c *Change, now float64) {
	j.settle(now)
	j.Progress, j.ProgressRate, j.ProgressAsOf = j.WorkDone(now), 0, now
	if j.State == Waiting {
		s.view.Waiting--
		s.running = insertJob(s.running, j)
	}
	if math.IsNaN(j.FirstStart) {
		j.FirstStart = now
	} else {
		j.Restarts++
	}
	j.State, j.WaitingReason, j.Starting = Running, NoReason, false
	m := s.marks[j.ID]
	m.nodesTold, m.roomFrom = false, 0
	held := Replicas(c.Seats)
	s.holders.add(s.sharing, j, j.Seats, j.Slices(), -1)
	s.holders.add(s.sharing, j, c.Seats, c.Slices, 1)
	s.occupancy.current, j.Sliced = false, slicedAt(c.Slices)
	j.Seats, j.Held, j.Tuning, j.Resources, j.LastChange = c.Seats, held, c.Tuning, c.Resources, now
}
