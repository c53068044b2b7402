package elasticity

import (
	"github.com/quartet-sched/quartet/core"
)

// reportsNothing reports whether a job with a batch to tune measures nothing: it has worked and reported nothing, for as long as
// silent_after where nobody sees that it works, or even the truth does not know it. Such a job keeps the batch that its user
// asked for, on any number of replicas, along its true step times if the truth is to be known, and otherwise as if it scaled
// linearly; on one device it would never grow.
func (p *goodputAgent) reportsNothing(j *core.Job, now float64) bool {
	if int(j.ID) < len(p.silent) && p.silent[j.ID] {
		if len(j.Measured) > 0 {
			p.silent[j.ID] = false
		}
		return len(j.Measured) == 0
	}
	worked := j.Held > 0 && (j.ProgressRate > 0 && now > j.ProgressAsOf || now >= p.silentAt(j))
	if len(j.Measured) > 0 || !worked && (!p.config.knowsTruth() || j.Truth != nil) {
		return false
	}
	for int(j.ID) >= len(p.silent) {
		p.silent = append(p.silent, false)
	}
	p.silent[j.ID] = true
	p.note(&p.silences, j, "a job reports no measurements: it keeps its batch, and is taken to scale "+p.scales(j))
	if int(j.ID) < len(p.agents) {
		p.agents[j.ID] = nil
	}
	return true
}

// silentAt is when a job that runs and reports nothing until then is taken to report nothing.
func (p *goodputAgent) silentAt(j *core.Job) float64 {
	return max(j.LastChange, j.ProgressAsOf) + p.config.SilentAfter.Seconds()
}

// scales says how a job that reports nothing is taken to scale.
func (p *goodputAgent) scales(j *core.Job) string {
	if p.rigid.oracle && j.StepTimes != nil {
		return "as its true step times say"
	}
	return "linearly"
}

// standUntilSilent ends the standing when a job of which nothing is known yet will have been silent for too long: Respond is
// asked about it then, though no event touches it.
func (p *goodputAgent) standUntilSilent(v *core.View, j *core.Job, seats []core.Seat) {
	if p.agents[j.ID].models != nil {
		return
	}
	silentAt := v.NowSeconds + p.config.SilentAfter.Seconds()
	if core.SameSeats(j.Seats, seats) {
		silentAt = p.silentAt(j)
	}
	p.standing.UntilSeconds = min(p.standing.UntilSeconds, silentAt)
}
