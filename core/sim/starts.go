package sim

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// A job that was given devices waits for those that others have not let go of, holds all of its own from then on, and its
// replicas run after the start delay. The pipeline counts the devices as its own from the round that gave them to it.

// starts are the jobs and devices between a change and its effect.
type starts struct {
	starting []*simJob // jobs with devices whose replicas do not run yet
	leaving  []leaving // devices that jobs lost and still hold, by time
	delays   *stream   // random delays of starts; nil without
}

// leaving are devices that a job lost and holds until a moment.
type leaving struct {
	job   core.JobID
	seats []core.Seat
	until float64
}

// nextStart is the earliest moment at which devices are let go of or a start is over; +Inf for none.
func (s *Simulator) nextStart() float64 {
	at := math.Inf(1)
	if len(s.starts.leaving) > 0 {
		at = s.starts.leaving[0].until
	}
	for _, j := range s.starts.starting {
		at = min(at, j.runsFrom)
	}
	return at
}

// letGo tells of the devices that were let go of up to a moment, and reports whether there are any.
func (s *Simulator) letGo(at float64) bool {
	n := 0
	for ; n < len(s.starts.leaving) && s.starts.leaving[n].until <= at; n++ {
		l := &s.starts.leaving[n]
		s.clock.events = append(s.clock.events, core.Event{Kind: core.DevicesReleased, AtSeconds: l.until, Job: l.job, Seats: l.seats})
	}
	s.starts.leaving = s.starts.leaving[n:]
	return n > 0
}

// begin tells of the jobs whose replicas run up to a moment, and reports whether there are any.
func (s *Simulator) begin(at float64) bool {
	before := len(s.starts.starting)
	s.starts.starting = slices.DeleteFunc(s.starts.starting, func(j *simJob) bool {
		if j.runsFrom > at {
			return false
		}
		s.clock.events = append(s.clock.events, core.Event{Kind: core.JobStarted, AtSeconds: j.runsFrom, Job: j.Spec.ID})
		return true
	})
	return len(s.starts.starting) < before
}

// held is the devices that a job holds at a moment, whatever it was given.
func (j *simJob) held(at float64) []core.Seat {
	if at < j.holdsFrom {
		return j.kept
	}
	return j.seats
}

// leave has a job let go of the devices that it holds and does not keep, later. Those of nodes that are down are free at once.
func (s *Simulator) leave(j *simJob, at float64, keep []core.Seat) {
	delay := s.config.ReleaseDelay.Seconds()
	if delay == 0 {
		return
	}
	held := j.held(at)
	j.kept = core.SeatsWithout(held, core.SeatsWithout(held, keep))
	lost := slices.DeleteFunc(core.SeatsWithout(held, keep), func(seat core.Seat) bool {
		return s.lost(seat.Node)
	})
	if len(lost) > 0 {
		s.starts.leaving = append(s.starts.leaving, leaving{j.Spec.ID, lost, at + delay})
	}
	j.holdsFrom = math.Inf(1)
}

// lost reports whether nothing runs on a node any more.
func (s *Simulator) lost(node core.NodeID) bool {
	health := s.devices.nodes.told[node]
	return health == core.Down || health == core.Gone
}

// vacate has the jobs that changes stop or move let go of their devices, before any of them is seated on those of another.
func (s *Simulator) vacate(changes []core.Change) {
	if s.config.ReleaseDelay == 0 {
		return
	}
	for i := range changes {
		c := &changes[i]
		j := s.jobs.byID[c.Job]
		if void(j, c) || c.Action != core.Stop && c.Action != core.Pause && c.Action != core.Finish && !gives(j, c) {
			continue
		}
		var keep []core.Seat
		if s.inPlace(j, c.Seats) {
			keep = c.Seats
		}
		s.leave(j, s.clock.now, keep)
	}
}

// void reports whether a change has no effect: its job has ended, or it was carried out before.
func void(j *simJob, c *core.Change) bool { return j == nil || c.Round > 0 && c.Round <= j.changed }

// gives reports whether a change gives a job devices, or another batch on those it has, by a restart.
func gives(j *simJob, c *core.Change) bool {
	return (c.Action == core.Start || c.Action == core.Move) && !(core.SameSeats(j.seats, c.Seats) && j.running.Tuning.Equal(c.Tuning))
}

// inPlace reports whether a job goes on where it is while it gets other devices, or gives some up. On a device that it keeps it may get another slice.
func (s *Simulator) inPlace(j *simJob, seats []core.Seat) bool {
	return s.config.Resize.InPlace && s.devices.slicing == nil && shareDevice(j.seats, seats)
}

// startOf is when the replicas of a job run on other seats than it has.
func (s *Simulator) startOf(j *simJob, seats []core.Seat) float64 {
	delay := s.config.StartDelay.Seconds()
	if s.config.ReleaseDelay > 0 {
		j.holdsFrom = s.freeFrom(core.SeatsWithout(seats, j.kept))
	} else {
		j.holdsFrom = s.clock.now
	}
	stays := s.inPlace(j, seats)
	if stays && len(core.SeatsWithout(seats, j.seats)) == 0 {
		return max(j.holdsFrom, j.runsFrom)
	}
	if s.starts.delays != nil {
		delay += s.starts.delays.Float64() * s.config.StartDelaySpread.Seconds()
	}
	if stays {
		return max(j.holdsFrom+delay, j.runsFrom)
	}
	return j.holdsFrom + delay
}

// freeFrom is when others have let go of devices.
func (s *Simulator) freeFrom(seats []core.Seat) float64 {
	from := s.clock.now
	for i := range s.starts.leaving {
		if l := &s.starts.leaving[i]; shareDevice(l.seats, seats) {
			from = max(from, l.until)
		}
	}
	return from
}

// noteStart tells of a start that takes time, or came too late: its node went down in the outage in which it was to be applied.
func (s *Simulator) noteStart(j *simJob) {
	if slices.ContainsFunc(j.seats, func(seat core.Seat) bool { return s.lost(seat.Node) }) {
		s.clock.notes = append(s.clock.notes, s.interrupt(j, s.clock.now, core.CauseNeverBegan))
		return
	}
	if j.runsFrom <= s.clock.now {
		return
	}
	message := "its replicas are being started"
	if j.holdsFrom > s.clock.now {
		message = "it waits for devices that were not let go of yet"
	}
	s.clock.notes = append(s.clock.notes, core.Event{Kind: core.JobStarting, AtSeconds: s.clock.now, Job: j.Spec.ID, Message: message})
}

// UsesSeed says that failures of nodes, the delays of starts, measurements and nodes of pools draw from streams of their own, which nobody watches.
func (o *opener) UsesSeed() bool {
	c := &o.config
	return c.StartDelaySpread > 0 || c.Failures.MTBF > 0 || c.MeasurementNoise.any() || slices.ContainsFunc(c.Pools, func(p Pool) bool { return p.Spread > 0 || p.Fails > 0 || p.Evictions > 0 })
}
