package metrics

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Tiers is what became of the guarantees of jobs with a tier. A tier that no job is of is nil.
type Tiers struct {
	Premium  *TierUse `json:"premium,omitempty"`  // jobs of tier premium; nil without such jobs
	Standard *TierUse `json:"standard,omitempty"` // jobs of tier standard; nil without such jobs
	Basic    *TierUse `json:"basic,omitempty"`    // jobs of tier basic; nil without such jobs

	GuaranteedDevicesMax Number `json:"guaranteed_devices_max"` // that the guarantees of all jobs there were came to at once
	OversoldSeconds      Number `json:"oversold_seconds"`       // for which that was more than the devices of ready nodes
}

// TierUse is what became of the guarantees of one tier. The life of each job has hours from its submission on; what is left at its
// end is judged only of one that lived no hour, for guarantees are over an hour. An hour is met if the job had its guaranteed part of
// the device time that it requested in it.
type TierUse struct {
	Guaranteed Number `json:"guaranteed"` // part of the device time they request
	Jobs       int    `json:"jobs"`       // that were not rejected
	JobsMet    int    `json:"jobs_met"`   // of those, with all hours met
	Hours      int    `json:"hours"`      // hours in which the jobs wanted devices
	Met        int    `json:"met"`        // of the hours
	Ratio      Number `json:"ratio"`      // met, of the hours
}

// hour is how long a guarantee is judged by, in seconds.
const hour = 3600

// tierBooks follow what jobs with a tier hold. They are nil before the first such job.
type tierBooks struct {
	guarantees core.Guarantees
	jobs       []tierJob // by JobID
	guaranteed float64   // devices that the guarantees of the jobs there are come to
	most       float64
	asOf       float64 // of the devices and what is below
	devices    int
	oversold   float64
}

// tierJob is the account of a job. The zero value is of one without a tier.
type tierJob struct {
	spec       *core.JobSpec // nil without a tier
	part       float64       // of a device, that each replica asks for
	from       float64       // of the hour that goes on
	had        float64       // of it, in seconds with all that was requested
	asOf       float64
	held       int
	hours, met int
	left       bool
}

// guaranteedDevices is what the guarantee of a job comes to.
func (b *tierBooks) guaranteedDevices(j *tierJob) float64 {
	return b.guarantees[max(core.TierRank(j.spec.Tier), 0)] * float64(j.spec.Requested) * j.part
}

// until lets time pass up to a moment, before what happens then is entered.
func (b *tierBooks) until(at float64) {
	if at <= b.asOf {
		return
	}
	if b.isOversold() {
		b.oversold += at - b.asOf
	}
	b.asOf = at
}

func (b *tierBooks) isOversold() bool { return b.guaranteed > float64(b.devices)+1e-9 }

// event enters what happened to a job that has come.
func (b *tierBooks) event(e *core.Event) {
	b.until(e.AtSeconds)
	switch e.Kind {
	case core.JobFinished, core.JobFailed, core.JobCancelled:
		b.leave(e.Job, e.AtSeconds)
	case core.JobInterrupted:
		b.hold(e.Job, 0, e.AtSeconds)
	case core.JobShrunk:
		b.hold(e.Job, core.Replicas(e.Seats), e.AtSeconds)
	}
}

// follow enters what a round changed, after its events.
func (b *tierBooks) follow(r *core.Report) {
	b.guarantees = r.Guarantees
	b.until(r.View.NowSeconds)
	for _, j := range r.Ended {
		b.leave(j.ID, r.View.NowSeconds)
	}
	for i := range r.Changes {
		switch c := &r.Changes[i]; c.Action {
		case core.Start, core.Move:
			b.hold(c.Job, core.Replicas(c.Seats), r.View.NowSeconds)
		case core.Stop, core.Discard, core.Finish, core.Pause:
			b.hold(c.Job, 0, r.View.NowSeconds)
		}
	}
	b.devices = r.View.Devices
}

// enter begins the account of a job, or goes on with one that its owner edited. What it had before this run of the scheduler is not
// known: it is judged from when it comes.
func (b *tierBooks) enter(spec *core.JobSpec, part, at float64, held int) {
	for int(spec.ID) >= len(b.jobs) {
		b.jobs = append(b.jobs, tierJob{})
	}
	j := &b.jobs[spec.ID]
	if j.left {
		return
	}
	if j.spec == nil {
		*j = tierJob{from: at, asOf: at, held: held}
	} else {
		b.pass(j, at)
		b.guaranteed -= b.guaranteedDevices(j)
	}
	if j.spec, j.part = spec, part; spec.Tier == "" {
		j.spec = nil
		return
	}
	b.guaranteed += b.guaranteedDevices(j)
	b.most = max(b.most, b.guaranteed)
}

func (b *tierBooks) of(id core.JobID) *tierJob {
	if int(id) >= len(b.jobs) || b.jobs[id].spec == nil || b.jobs[id].left {
		return nil
	}
	return &b.jobs[id]
}

func (b *tierBooks) hold(id core.JobID, devices int, at float64) {
	if j := b.of(id); j != nil {
		b.pass(j, at)
		j.held = devices
	}
}

func (b *tierBooks) leave(id core.JobID, at float64) {
	if j := b.of(id); j != nil {
		b.pass(j, at)
		if j.hours == 0 {
			b.judge(j, at)
		}
		j.left, j.held = true, 0
		b.guaranteed -= b.guaranteedDevices(j)
	}
}

// pass brings an account up to a moment, hour by hour.
func (b *tierBooks) pass(j *tierJob, at float64) {
	rate := min(float64(j.held)/float64(j.spec.Requested), 1)
	for end := j.from + hour; end <= at; end = j.from + hour {
		j.had += rate * (end - j.asOf)
		j.asOf = end
		b.judge(j, end)
	}
	if at > j.asOf {
		j.had += rate * (at - j.asOf)
		j.asOf = at
	}
}

// judge ends an hour, or a shorter life, and begins the next.
func (b *tierBooks) judge(j *tierJob, at float64) {
	length := at - j.from
	if length <= 0 {
		return
	}
	j.hours++
	if j.had >= b.guarantees[max(core.TierRank(j.spec.Tier), 0)]*length-1e-6 { // rounding breaks no guarantee
		j.met++
	}
	j.from, j.had = at, 0
}

// clone is a copy that goes its own way.
func (b *tierBooks) clone() *tierBooks {
	if b == nil {
		return nil
	}
	copied := *b
	copied.jobs = slices.Clone(b.jobs)
	return &copied
}

// describe is nil when no job has a tier. The jobs that have not ended are judged as if they did at a moment.
func (b *tierBooks) describe(records []record, window Window, endSeconds float64) *Tiers {
	if b == nil {
		return nil
	}
	b = b.clone()
	t := &Tiers{GuaranteedDevicesMax: Number(b.most), OversoldSeconds: Number(b.oversold)}
	if b.isOversold() {
		t.OversoldSeconds += Number(max(endSeconds-b.asOf, 0))
	}
	use := [...]**TierUse{&t.Premium, &t.Standard, &t.Basic}
	for id := range b.jobs {
		j := &b.jobs[id]
		rank := -1
		if j.spec != nil && records[id].outcome != rejected && window.Holds(core.JobID(id)) {
			rank = core.TierRank(j.spec.Tier)
		}
		if rank < 0 {
			continue
		}
		b.leave(core.JobID(id), endSeconds)
		u := *use[rank]
		if u == nil {
			u = &TierUse{Guaranteed: Number(b.guarantees[rank])}
			*use[rank] = u
		}
		u.Jobs++
		if j.met == j.hours {
			u.JobsMet++
		}
		u.Hours, u.Met = u.Hours+j.hours, u.Met+j.met
	}
	for _, u := range use {
		if *u != nil {
			(*u).Ratio = Number(float64((*u).Met) / float64((*u).Hours))
		}
	}
	return t
}
