package core

import "slices"

// View is the state of the world that a stage decides on. It is read-only, and valid only during the call: a stage
// keeps no reference into it.
type View struct {
	NowSeconds      float64  // moment of the round, in seconds of the run
	Round           int      // 1 for the first round
	IntervalSeconds float64  // length of a round; 0 when rounds happen on events only
	OnEvents        bool     // a round happens at each event, such as a submission, too
	Cluster         *Cluster // machines as they are now
	Devices         int      // devices of ready nodes

	// Jobs holds each submitted job at its JobID; nil once the job has ended, and for identifiers not yet submitted.
	Jobs []*Job
	// Active lists the jobs that are admitted and have not ended, by JobID.
	Active []JobID
	// Waiting is how many of Active hold no devices.
	Waiting int
	// Changed lists the jobs that an event touched since the round before, by JobID, ended ones included. At a moment that the
	// elasticity named, it also lists those that run.
	Changed []JobID
	// HealthChanges counts how often the health of a node changed.
	HealthChanges int
	// Reserved lists devices that are kept for a job that waited for long, by node; all are of one job. Nobody gets new seats on them: where that job would have
	// devices of them, they are not in the view that a placer is shown.
	Reserved []Reservation

	journal  journal
	unpinned bool // no pinned job was submitted
}

// NonePinned reports whether it is known that no job is pinned, so that there is none to look for. The view of a pipeline knows.
func (v *View) NonePinned() bool { return v.unpinned }

// LookForPinned lets a view know that was made otherwise.
func (v *View) LookForPinned() {
	v.unpinned = !slices.ContainsFunc(v.Jobs, func(j *Job) bool { return j != nil && j.Pinned })
}

// Job returns the job, or nil when it is unknown or has ended.
func (v *View) Job(id JobID) *Job {
	if id < 0 || int(id) >= len(v.Jobs) {
		return nil
	}
	return v.Jobs[id]
}
