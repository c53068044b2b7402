package coretest

import "github.com/quartet-sched/quartet/core"

// room is what is free of a cluster: whole devices, of those that are divided into slices what nobody has of them, parts of those of which jobs have parts, and CPUs
// and memory where they are counted.
type room struct {
	devices core.Ledger
	shares  core.Shares // instead of them, where more is counted
	counts  bool
	slices  bool
	beside  bool // jobs that take turns are seated together though nobody groups them, as the placement antman does
}

// reset makes everything free.
func (r *room) reset(c *core.Cluster) {
	r.slices = c.Sharing == core.Mig
	if r.counts = c.CountsShares() && (c.Sharing != core.TimeSlice || r.beside); r.counts {
		r.shares.Reset(c)
		return
	}
	r.devices.Reset(c)
}

// keep takes what a job holds, with the slices that it has; false, and it takes nothing, where that is not free.
func (r *room) keep(j *core.Job) bool {
	if r.counts {
		return r.shares.OccupySlices(given(j), j.Seats, j.Slices())
	}
	return r.devices.Occupy(j.Seats)
}

// occupy takes seats for a job; false, and it takes nothing, where they are not free.
func (r *room) occupy(j *core.Job, seats []core.Seat) bool {
	if r.counts {
		return r.shares.Occupy(j.JobSpec, seats)
	}
	return r.devices.Occupy(seats)
}

func (r *room) release(j *core.Job, seats []core.Seat) {
	if r.counts {
		r.shares.Release(j.JobSpec, seats)
		return
	}
	r.devices.Release(seats)
}

// take seats up to n replicas of a job on the lowest devices of a node with room; a seat without devices where there is none.
func (r *room) take(j *core.Job, n core.NodeID, replicas int) core.Seat {
	if !r.counts {
		if r.devices.Free(n) == 0 {
			return core.Seat{}
		}
		return r.devices.Take(n, replicas)
	}
	seat := core.Seat{Node: n}
	for replicas > 0 && !r.shares.FitsAt(j.JobSpec, n, replicas) {
		replicas--
	}
	for rest := r.shares.Usable(n); rest != 0 && replicas > 0; rest &= rest - 1 {
		if r.shares.FitsOn(j.JobSpec, n, rest.First()) {
			seat.Devices |= rest & -rest
			replicas--
		}
	}
	if seat.Devices != 0 {
		r.shares.Occupy(j.JobSpec, []core.Seat{seat})
	}
	return seat
}

// given is the specification of a job as if it asked for what it was given.
func given(j *core.Job) *core.JobSpec {
	spec := *j.JobSpec
	spec.CPUs, spec.MemoryGB = j.Has().CPUs, j.Has().MemoryGB
	return &spec
}
