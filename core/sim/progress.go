package sim

import (
	"cmp"
	"container/heap"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// progressed tells the job's progress as of a moment.
func (j *simJob) progressed(at float64) core.Event {
	return core.Event{
		Kind: core.JobProgressed, AtSeconds: at, Job: j.Spec.ID,
		Progress: j.progress, Rate: j.rate, FromSeconds: max(j.asOf, j.pausedUntil), StepsLeft: j.StepsLeft(j.phase), Slowed: j.slowed,
	}
}

// reach sets a job's progress, and notes the moment if it never came so far: what a failure undid is not done twice.
func (s *Simulator) reach(j *simJob, progress, at float64) {
	j.progress = progress
	if progress > j.furthest {
		j.furthest = progress
		s.came(at)
	}
}

// advance brings a job's progress up to a moment not after its next phase end.
func (s *Simulator) advance(j *simJob, now float64) {
	if from := max(j.asOf, j.pausedUntil); now > from && j.rate > 0 {
		s.reach(j, min(j.progress+(now-from)*j.rate, j.Model.PhaseEnd(j.phase)), now)
	}
	j.asOf = now
}

// lose takes back what a job did that keeps no checkpoint: its replicas end.
func (j *simJob) lose() {
	if j.anew {
		j.progress, j.phase = 0, 0
	}
}

// schedule computes the rate of a job from now on, and queues the end of its phase.
func (s *Simulator) schedule(j *simJob) {
	j.rate, j.nextAt = 0, math.Inf(1)
	if j.seats != nil {
		if j.rate = s.rateIn(j, j.phase); j.rate > 0 {
			j.nextAt = s.worksFrom(j) + (j.Model.PhaseEnd(j.phase)-j.progress)/j.rate
		}
	}
	switch {
	case s.config.Publication.byRounds():
	case j.heapIndex >= 0:
		heap.Fix(&s.jobs.queue, j.heapIndex)
	case j.seats != nil:
		heap.Push(&s.jobs.queue, j)
	}
}

// worksFrom is when a job goes on, as far as the end of its phase is concerned.
func (s *Simulator) worksFrom(j *simJob) float64 {
	if s.config.Publication.Overhead == everyRound {
		return max(j.asOf, j.runsFrom)
	}
	return max(j.asOf, j.pausedUntil)
}

// rateIn is the rate of a job in a phase, where and how it runs now.
func (s *Simulator) rateIn(j *simJob, phase int) float64 {
	rate := j.Model.Rate(phase, j.running) * j.speed
	if len(j.seats) > 1 {
		rate *= 1 - s.config.LocalityPenalty
	}
	if j.disturbed {
		rate *= 1 - s.config.Interference
	}
	if s.devices.sharing != nil {
		rate *= (1 - j.slowed) * j.onSlice
	}
	return rate
}

// endPhase ends the phase of a job at its time, and reports whether that ended the job.
func (s *Simulator) endPhase(j *simJob, w core.Wake) bool {
	at := j.nextAt
	j.asOf = at
	s.reach(j, j.Model.PhaseEnd(j.phase), at)
	reports := s.reportMetrics(j, at)
	j.phase++
	j.unmeasured = true
	if j.phase < j.Model.Phases() {
		s.schedule(j)
		s.clock.events = append(s.clock.events, j.progressed(at))
		return reports && w.OnReports && w.IntervalSeconds == 0
	}
	if s.config.Publication.Completion == nextRound {
		at = s.onGrid(at, w)
	}
	s.finish(j, at)
	s.disturb(at, &s.clock.events)
	return true
}

func (s *Simulator) finish(j *simJob, at float64) {
	s.unseat(j)
	s.end(j)
	s.clock.events = append(s.clock.events, core.Event{Kind: core.JobFinished, AtSeconds: at, Job: j.Spec.ID, Progress: j.progress})
	s.reaction.note(j, workload.Result{Kind: workload.JobFinished, AtSeconds: at})
}

// give notes the CPUs and the memory that each replica of a job has from now on, and how fast it is with them. Where nobody counts them, and of what it
// does not ask for, it has the base.
func (s *Simulator) give(j *simJob, each *core.Resources) {
	j.resources = each
	t := j.Spec.Sensitivity
	if t == nil || !s.devices.cluster.CountsResources {
		return
	}
	has := t.Base
	if each != nil {
		has = *each
	} else {
		has = core.Resources{CPUs: cmp.Or(j.Spec.CPUs, has.CPUs), MemoryGB: cmp.Or(j.Spec.MemoryGB, has.MemoryGB)}
	}
	j.speed = t.Speed(has)
}
