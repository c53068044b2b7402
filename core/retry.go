package core

import (
	"maps"
	"math"
	"slices"
)

// retries is what is known of jobs that failed somewhere: where that was, and until when they get no devices, or no more than they have.
type retries struct {
	failedOn  map[JobID][]Seat  // devices that a job gets only where no others are free
	notBefore map[JobID]float64 // seconds of the run
	next      float64           // the earliest of notBefore, in seconds of the run; +Inf for none
	eligible  []Candidate       // scratch: of a round
}

// blames reports whether the devices of a job may be why it lost them for this cause. Whether a node is healthy is known otherwise.
func (c Cause) blames() bool {
	switch c {
	case CauseExited, CauseKilled, CauseNeverBegan, CauseStartTimeout, CauseDeviceLost:
		return true
	default:
		return false
	}
}

// blame takes in where a job failed, and until when it is not tried again.
func (r *retries) blame(j *Job, e *Event, where []Seat) {
	if len(where) > 0 {
		r.failedOn[j.ID] = append(slices.Clip(r.failedOn[j.ID]), where...) // a fork may share them
	}
	switch {
	case e.NotBeforeSeconds > e.AtSeconds:
		r.notBefore[j.ID] = e.NotBeforeSeconds
	case e.Kind == JobInterrupted: // with fewer devices it waited for more, and now it has none
		delete(r.notBefore, j.ID)
	}
}

// forget drops what is known of a job that ended.
func (r *retries) forget(id JobID) {
	delete(r.failedOn, id)
	delete(r.notBefore, id)
}

// heal takes devices of a node that can be used again off what jobs avoid.
func (r *retries) heal(n NodeID, devices DeviceSet) {
	if devices == 0 {
		return
	}
	for id, seats := range r.failedOn { // each by itself: their order makes no difference
		left := slices.Clone(seats) // a fork may share them
		for i := range left {
			if left[i].Node == n {
				left[i].Devices &^= devices
			}
		}
		if left = slices.DeleteFunc(left, func(s Seat) bool { return s.Devices == 0 }); len(left) == 0 {
			delete(r.failedOn, id)
		} else {
			r.failedOn[id] = left
		}
	}
}

// reviewRetries drops the moments that have come: what their jobs can do with devices is asked anew.
func (s *state) reviewRetries() {
	r := &s.retries
	if r.next = math.Inf(1); len(r.notBefore) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(r.notBefore)) { // the journal of changes has their order
		if at := r.notBefore[id]; at > s.view.NowSeconds {
			r.next = min(r.next, at)
			continue
		}
		if delete(r.notBefore, id); s.view.Job(id) != nil {
			s.touch(id)
		}
	}
}

// cap bounds the replicas of a job by those that it has, while it gets no more.
func (r *retries) cap(j *Job, of *Response) {
	if j.State == Running && r.waits(j.ID) {
		of.MaxReplicas = min(of.MaxReplicas, j.Held)
		of.MinReplicas = min(of.MinReplicas, of.MaxReplicas)
	}
}

// fork is a copy of what is known.
func (r *retries) fork() retries {
	return retries{failedOn: maps.Clone(r.failedOn), notBefore: maps.Clone(r.notBefore), next: r.next}
}

// waits reports whether a job gets no devices yet, or no more.
func (r *retries) waits(id JobID) bool { return r.notBefore[id] > 0 }

// uncap lets a job that was stopped have any number of devices from the next round on: it had shrunk.
func (r *retries) uncap(id JobID, now float64) {
	if r.waits(id) {
		r.notBefore[id], r.next = now, now
	}
}

// eligible lists the candidates that devices are divided among now: jobs that wait to be tried again are left out.
func (s *state) eligible() []Candidate {
	r := &s.retries
	if len(r.notBefore) == 0 {
		return s.candidates
	}
	r.eligible = r.eligible[:0]
	for _, c := range s.candidates {
		if c.State == Running || !r.waits(c.ID) {
			r.eligible = append(r.eligible, c)
		}
	}
	return r.eligible
}

// ineligible drops grants to jobs that wait to be tried again, of an allocator that was asked about all of them all the same.
func (s *state) ineligible(grants []Grant) []Grant {
	out := func(g Grant) bool {
		j := s.view.Job(g.Job)
		return j != nil && j.State == Waiting && s.retries.waits(g.Job)
	}
	if len(s.retries.notBefore) == 0 {
		return grants
	}
	return slices.DeleteFunc(slices.Clone(grants), out)
}

// devicesOn is what seats have of a node.
func devicesOn(seats []Seat, n NodeID) (d DeviceSet) {
	for _, s := range seats {
		if s.Node == n {
			d |= s.Devices
		}
	}
	return d
}

// SeatsWithout is the devices of seats that others do not have, in the order of the seats.
func SeatsWithout(seats, others []Seat) (left []Seat) {
	for _, s := range seats {
		if s.Devices &^= devicesOn(others, s.Node); s.Devices != 0 {
			left = append(left, s)
		}
	}
	return left
}
