package metrics

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// sharingBooks follow who is on devices with whom. They are nil where each device is one job's. A change costs a look at the jobs on its
// nodes.
type sharingBooks struct {
	jobs []sharingJob   // by JobID
	on   [][]core.JobID // by node: those that compute there
	asks bool           // some job asks for a part of its devices
	lost bool           // some job was slowed down
}

// sharingJob is the account of a job.
type sharingJob struct {
	seats   []core.Seat // on which it computes; nil without
	others  int         // on its devices, one on two of them counted twice
	since   float64     // from when it has had company, if it has any
	seconds float64     // with company before

	slowed     float64 // part of its rate that it loses to its company
	slowedFrom float64
	lost       float64 // seconds before, at its rate alone
}

// divides reports whether jobs may have parts of devices.
func divides(c *core.Cluster) bool { return c.Sharing == core.Fractional || c.Sharing == core.Mig }

// PartOfProfile is the part of a device that a slice of a MIG profile has, as jobs.csv names it; 0 for none.
func PartOfProfile(name string) float64 { return core.PartOfProfile(name) }

// follow takes in the events and the changes of a round.
func (b *sharingBooks) follow(r *core.Report) {
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Kind {
		case core.JobSubmitted, core.JobChanged:
			b.asks = b.asks || divides(r.View.Cluster) && e.Spec.Share != nil
		case core.JobFinished, core.JobFailed, core.JobCancelled, core.JobInterrupted:
			b.leave(e.Job, e.AtSeconds)
		case core.JobProgressed:
			b.slow(e.Job, e.AtSeconds, e.Slowed, e.FromSeconds)
		}
	}
	now := r.View.NowSeconds
	for i := range r.Events {
		switch e := &r.Events[i]; e.Kind {
		case core.JobSubmitted, core.JobShrunk, core.JobChanged:
			b.seat(r.View, e.Job, now)
		}
	}
	for i := range r.Changes {
		b.seat(r.View, r.Changes[i].Job, now)
	}
}

func (b *sharingBooks) job(id core.JobID) *sharingJob {
	for int(id) >= len(b.jobs) {
		b.jobs = append(b.jobs, sharingJob{})
	}
	return &b.jobs[id]
}

// seat has a job be where the view has it.
func (b *sharingBooks) seat(v *core.View, id core.JobID, now float64) {
	j := v.Job(id)
	if j == nil || len(j.Seats) == 0 || j.Part() == 0 {
		b.leave(id, now)
		return
	}
	job := b.job(id)
	if core.SameSeats(job.seats, j.Seats) {
		return
	}
	b.part(id, now)
	job.seats = slices.Clone(j.Seats)
	for _, s := range job.seats {
		for int(s.Node) >= len(b.on) {
			b.on = append(b.on, nil)
		}
		b.meet(id, s, 1, now)
		at, _ := slices.BinarySearch(b.on[s.Node], id)
		b.on[s.Node] = slices.Insert(b.on[s.Node], at, id)
	}
}

// leave has a job be nowhere.
func (b *sharingBooks) leave(id core.JobID, at float64) {
	b.part(id, at)
	b.slow(id, at, 0, at)
}

// part takes a job off its devices.
func (b *sharingBooks) part(id core.JobID, now float64) {
	job := b.job(id)
	for _, s := range job.seats {
		at, _ := slices.BinarySearch(b.on[s.Node], id)
		b.on[s.Node] = slices.Delete(b.on[s.Node], at, at+1)
		b.meet(id, s, -1, now)
	}
	job.seats = nil
}

// meet counts a job in (1) or out (-1) at a seat, for it and for those that are there.
func (b *sharingBooks) meet(id core.JobID, s core.Seat, by int, now float64) {
	for _, other := range b.on[s.Node] {
		if n := (b.devices(other, s.Node) & s.Devices).Count(); n > 0 && other != id {
			b.jobs[id].count(by*n, now)
			b.jobs[other].count(by*n, now)
		}
	}
}

// devices are those on which a job computes on a node.
func (b *sharingBooks) devices(id core.JobID, node core.NodeID) (all core.DeviceSet) {
	for _, s := range b.jobs[id].seats {
		if s.Node == node {
			all |= s.Devices
		}
	}
	return all
}

// count takes in more company, or less.
func (j *sharingJob) count(more int, now float64) {
	before := j.others
	switch j.others += more; {
	case before == 0 && j.others > 0:
		j.since = now
	case before > 0 && j.others == 0:
		j.seconds += max(now-j.since, 0)
	}
}

// slow takes in at a moment what a job loses from another moment on.
func (b *sharingBooks) slow(id core.JobID, at, slowed, from float64) {
	job := b.job(id)
	if job.slowed > 0 {
		job.lost += job.slowed * max(at-job.slowedFrom, 0)
		b.lost = true
	}
	job.slowed, job.slowedFrom = slowed, from
}

// with lists the jobs on the devices of a job, by JobID.
func (b *sharingBooks) with(id core.JobID) (others []core.JobID) {
	if int(id) >= len(b.jobs) || b.jobs[id].others == 0 {
		return nil
	}
	for _, s := range b.jobs[id].seats {
		for _, other := range b.on[s.Node] {
			if other != id && b.devices(other, s.Node)&s.Devices != 0 {
				others = append(others, other)
			}
		}
	}
	slices.Sort(others)
	return slices.Compact(others)
}

// clone is books of their own, of a run that goes on; nil of nil.
func (b *sharingBooks) clone() *sharingBooks {
	if b == nil {
		return nil
	}
	copied := *b
	copied.jobs, copied.on = slices.Clone(b.jobs), slices.Clone(b.on)
	for i := range copied.on {
		copied.on[i] = slices.Clone(copied.on[i])
	}
	return &copied
}

// companySeconds is how long a job had others on its devices, and lostSeconds how long it would have taken less without them. Both are NaN
// of one that never started.
func (b *sharingBooks) companySeconds(r *record) float64 {
	if !r.started() {
		return math.NaN()
	}
	return b.job(r.spec.ID).seconds
}

func (b *sharingBooks) lostSeconds(r *record) float64 {
	if !r.started() {
		return math.NaN()
	}
	return b.job(r.spec.ID).lost
}
