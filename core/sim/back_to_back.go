package sim

import (
	"context"
	"io"
	"math"

	"github.com/quartet-sched/quartet/core"
)

// advanceBackToBack holds one round after the other, as Gavel's simulator does, until something happens. In a round each
// running job does the whole steps that fit an interval, and keeps its devices when it is done with them. The round is over
// when the last job is; when none runs, at the next arrival, or after an interval if jobs wait and none arrives.
func (s *Simulator) advanceBackToBack(ctx context.Context, w core.Wake) (float64, error) {
	now, told := s.clock.now, len(s.clock.events)
	_, reacted, owed, err := s.catchUp(ctx)
	if err != nil || owed {
		return now, err
	}
	for {
		if err := ctx.Err(); err != nil {
			s.clock.now = now
			return 0, err
		}
		next := now
		if !reacted || len(s.jobs.running) > 0 { // or else jobs were submitted just now, and nobody else is to be waited for
			next = s.endOfRound(now, w.IntervalSeconds)
		}
		reacted = false
		if s.over(next) {
			return 0, io.EOF
		}
		for i := 0; i < len(s.jobs.running); i++ {
			if j := s.jobs.running[i]; s.finishInRound(j, next) {
				i--
			}
		}
		now = next
		s.happenToNodes(now)
		s.arrive(now)
		if _, err := s.react(ctx, now); err != nil {
			s.clock.now = now
			return 0, err
		}
		s.disturb(now, &s.clock.events)
		if len(s.clock.events) > told || now+w.IntervalSeconds > w.BySeconds {
			break
		}
	}
	for _, j := range s.jobs.running { // the line that was told last assumed that it does not idle
		s.clock.events = append(s.clock.events, j.progressed(now))
	}
	return now, nil
}

// endOfRound lets each running job do its part of the round that begins now, and returns when the last is done.
func (s *Simulator) endOfRound(now, interval float64) float64 {
	end := now
	for _, j := range s.jobs.running {
		s.doRound(j, now, interval)
		end = max(end, j.asOf)
	}
	if end > now {
		return end
	}
	if next := s.nextEvent(); s.jobs.active == 0 || !math.IsInf(next, 1) {
		return next
	}
	return now + interval
}

// doRound does the whole steps that fit an interval, pauses excluded, or a single one when none fits. The progress is
// then that at asOf, which is at most the end of the round.
func (s *Simulator) doRound(j *simJob, now, interval float64) {
	from := max(now, j.pausedUntil)
	left := now + interval - from
	j.asOf = min(from, now+interval)
	for left > 0 && j.rate > 0 && j.phase < j.Model.Phases() {
		fitting := math.Floor(j.rate * left)
		if fitting == 0 && left == interval {
			fitting = 1
		}
		missing := j.Model.PhaseEnd(j.phase) - j.progress
		if fitting < missing {
			j.progress += fitting
			j.asOf += fitting / j.rate
			break
		}
		j.progress = j.Model.PhaseEnd(j.phase)
		j.asOf += missing / j.rate
		left -= missing / j.rate
		s.reportMetrics(j, j.asOf)
		j.phase++
		j.unmeasured = true
		if j.phase < j.Model.Phases() {
			j.rate = s.rateIn(j, j.phase)
		}
	}
	if j.asOf > from {
		s.stall.advanced, s.stall.churned = max(s.stall.advanced, j.asOf), 0
	}
}

// finishInRound ends a job that did all of its work at the moment when it had, or lets it idle to the end of the round.
func (s *Simulator) finishInRound(j *simJob, end float64) (ended bool) {
	if j.phase == j.Model.Phases() {
		s.finish(j, j.asOf)
		return true
	}
	j.asOf = end
	return false
}
