package sim

import (
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Apply carries out the changes of a round at the moment of the last observation, or at the end of an outage that began then.
func (s *Simulator) Apply(_ context.Context, changes []core.Change) error {
	late, err := s.failToApply()
	if err != nil {
		return err
	}
	for i := range changes {
		if c := &changes[i]; c.Job < 0 || int(c.Job) >= s.jobs.arrived {
			return fmt.Errorf("%v job %d, which was never submitted", c.Action, c.Job)
		}
	}
	s.vacate(changes)
	for i := range changes {
		s.applyTo(s.jobs.byID[changes[i].Job], &changes[i], late)
	}
	if len(changes) > 0 {
		s.stall.churned++
		s.disturb(s.clock.now, &s.clock.notes)
		s.pauseForRound(s.clock.now, &s.clock.notes)
	}
	s.removeEmpty(s.clock.now)
	return nil
}

// applyTo carries out the change of one job. Late says that an outage kept it back, in which the job may have lost its devices.
func (s *Simulator) applyTo(j *simJob, c *core.Change, late bool) {
	if void(j, c) {
		return
	}
	j.changed = c.Round
	if late && j.seats == nil && c.Action != core.Start && c.Action != core.Discard && c.Action != core.Finish {
		return // it lost its devices meanwhile
	}
	seated := gives(j, c)
	if c.Action == core.Discard || c.Action == core.Finish {
		s.advance(j, s.clock.now)
		s.unseat(j)
		s.end(j)
		s.reaction.ended(j, c, s.clock.now)
		return
	}
	s.carryOut(j, c)
	s.reaction.changed(j, c, s.clock.now)
	s.clock.notes = append(s.clock.notes, j.progressed(s.clock.now))
	if seated {
		s.noteStart(j)
	}
}

// carryOut gives a job what a change says, and takes from it what it loses.
func (s *Simulator) carryOut(j *simJob, c *core.Change) {
	s.advance(j, s.clock.now)
	switch c.Action {
	case core.Stop, core.Pause:
		s.unseat(j)
		j.lose()
	case core.Tune:
		if pause := s.config.TuneOverhead.Seconds(); pause > 0 && !j.running.Tuning.Equal(c.Tuning) {
			j.pausedUntil = max(j.pausedUntil, s.clock.now+pause)
		}
		j.running.Tuning, j.unmeasured = c.Tuning, true
		s.give(j, c.Resources)
	case core.Start, core.Move:
		if core.SameSeats(j.seats, c.Seats) && j.running.Tuning.Equal(c.Tuning) && core.SameResources(j.resources, c.Resources) {
			return // applied before
		}
		from := s.startOf(j, c.Seats)
		j.pausedUntil = s.pauseUntil(j, c.Seats, from)
		if !s.inPlace(j, c.Seats) {
			j.lose()
		}
		s.unseat(j)
		j.seats, j.running.Tuning = c.Seats, c.Tuning
		s.give(j, c.Resources)
		j.running.Replicas = core.Replicas(c.Seats)
		j.running.Shape, j.running.Accelerators = j.running.Shape[:0], j.running.Accelerators[:0]
		for _, seat := range c.Seats {
			j.running.Shape = append(j.running.Shape, seat.Devices.Count())
			j.running.Accelerators = append(j.running.Accelerators, s.devices.cluster.Accelerators[s.devices.cluster.Nodes[seat.Node].Accelerator])
		}
		j.started, j.progressAtStart, j.unmeasured, j.fresh = true, j.progress, true, true
		at, _ := slices.BinarySearchFunc(s.jobs.running, j, compareJobs)
		s.jobs.running = slices.Insert(s.jobs.running, at, j)
		if j.runsFrom = from; from > s.clock.now {
			s.starts.starting = append(s.starts.starting, j)
		}
		s.span(j, +1)
		if s.devices.sharing != nil {
			s.devices.sharing.join(j)
		}
		if s.devices.slicing != nil && s.devices.slicing.divide(j.Spec.Slice(), c.Seats, c.Slices) {
			j.pausedUntil = max(j.pausedUntil, from) + s.config.Mig.Repartition.Seconds()
		}
	}
	s.schedule(j)
}

// pauseUntil is when a job works on other seats than it has, whose replicas run from a moment on: a restart begins anew, a
// resize in place only prolongs what is left of a pause.
func (s *Simulator) pauseUntil(j *simJob, seats []core.Seat, from float64) float64 {
	switch {
	case !j.started && s.config.FreeFirstStart:
		return from
	case s.config.Publication.Moves == freeAlike && s.alike(j.seats, seats):
		return j.pausedUntil
	case s.inPlace(j, seats):
		return max(j.pausedUntil, from+min(s.config.Resize.Overhead.Seconds(), j.overhead))
	default:
		return from + j.overhead
	}
}

// alike reports whether two seatings have as many devices of the same type on each of their nodes.
func (s *Simulator) alike(a, b []core.Seat) bool {
	return slices.EqualFunc(a, b, func(x, y core.Seat) bool {
		return x.Devices.Count() == y.Devices.Count() && s.devices.cluster.Nodes[x.Node].Accelerator == s.devices.cluster.Nodes[y.Node].Accelerator
	})
}

// shareDevice reports whether two seatings have a device in common.
func shareDevice(a, b []core.Seat) bool {
	return slices.ContainsFunc(a, func(x core.Seat) bool {
		return slices.ContainsFunc(b, func(y core.Seat) bool { return x.Node == y.Node && x.Devices&y.Devices != 0 })
	})
}

// unseat takes a job's devices away.
func (s *Simulator) unseat(j *simJob) {
	if j.seats == nil {
		return
	}
	s.span(j, -1)
	if s.devices.sharing != nil {
		s.devices.sharing.part(j)
	}
	j.seats = nil
	j.rate = 0
	s.starts.starting = slices.DeleteFunc(s.starts.starting, func(o *simJob) bool { return o == j })
	at, _ := slices.BinarySearchFunc(s.jobs.running, j, compareJobs)
	s.jobs.running = slices.Delete(s.jobs.running, at, at+1)
	if j.heapIndex >= 0 {
		heap.Remove(&s.jobs.queue, j.heapIndex)
	}
}
