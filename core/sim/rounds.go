package sim

import (
	"context"
	"io"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/grid"
)

// advanceByRounds advances every running job round by round, as published simulators do, until something happens.
func (s *Simulator) advanceByRounds(ctx context.Context, w core.Wake) (float64, error) {
	now := s.clock.now
	_, reacted, owed, err := s.catchUp(ctx)
	if err != nil || owed {
		return now, err
	}
	for {
		if err := ctx.Err(); err != nil {
			s.clock.now = now
			return 0, err
		}
		next := s.nextRound(now, reacted, w)
		if s.over(next) {
			return 0, io.EOF
		}
		reported := len(s.clock.events)
		s.runRound(now, next-now)
		now = next
		s.happenToNodes(now)
		s.arrive(now)
		again, err := s.react(ctx, now)
		if err != nil {
			s.clock.now = now
			return 0, err
		}
		s.disturb(now, &s.clock.events)
		if len(s.clock.events) > reported || reacted || again || now >= w.BySeconds {
			break
		}
	}
	if s.config.Publication.Progress == wholeSteps {
		for _, j := range s.jobs.running { // the line that was reported last assumed that it is never between two steps
			s.clock.events = append(s.clock.events, j.progressed(now))
		}
	}
	return now, nil
}

// nextRound is the moment of the round after now: the next on the grid, or a later one where no job comes further until something happens.
func (s *Simulator) nextRound(now float64, reacted bool, w core.Wake) float64 {
	next := grid.After(now, w.IntervalSeconds)
	if !s.clock.begun && now == 0 && s.config.Publication.FirstRound == atStart {
		next = 0
	}
	if !reacted && !s.works(math.Inf(1)) { // jobs that were submitted just now are reported in this round
		next = max(next, s.onGrid(min(s.nextEvent(), w.BySeconds), w))
	}
	return next
}

// runRound lets every running job work for the seconds of a round that begins now. Those that end leave the list meanwhile.
func (s *Simulator) runRound(now, seconds float64) {
	run := s.advanceRound
	if s.config.Publication.Progress == wholeSteps {
		run = s.advanceSteps
	}
	for i := 0; i < len(s.jobs.running); i++ {
		j := s.jobs.running[i]
		if run(j, now, seconds); j.ended {
			i--
		}
	}
}

// advanceSteps lets a job do the whole units of its work that fit the seconds of a round; a unit that is longer than a round goes on in the next. When it is
// done with the last of them it ends with the round.
func (s *Simulator) advanceSteps(j *simJob, now, seconds float64) {
	left := seconds - min(max(j.pausedUntil-now, 0), seconds)
	j.asOf = now + seconds
	for left > 0 && j.rate > 0 {
		s.report(j, now)
		most, missing := j.rate*left*(1+1e-12), j.Model.PhaseEnd(j.phase)-j.progress
		if most < missing {
			if most >= 1 || left < seconds {
				most = math.Floor(most)
			}
			s.reach(j, j.progress+most, j.asOf)
			return
		}
		left -= missing / j.rate
		s.reach(j, j.Model.PhaseEnd(j.phase), j.asOf)
		s.reportMetrics(j, j.asOf)
		j.phase++
		j.unmeasured = true
		if j.phase == j.Model.Phases() {
			s.finish(j, j.asOf)
			return
		}
		s.schedule(j)
	}
}

// advanceRound advances a job by the seconds of a round.
func (s *Simulator) advanceRound(j *simJob, now, seconds float64) {
	pause := min(max(j.pausedUntil-now, 0), seconds)
	now += pause
	seconds -= pause
	phase := j.phase
	if seconds > 0 && s.reports.noise != nil {
		j.unmeasured = true // each round anew
	}
	for seconds > 0 && j.rate > 0 {
		s.report(j, now)
		end := j.Model.PhaseEnd(j.phase)
		if j.progress+j.rate*seconds < end {
			now += seconds
			s.reach(j, j.progress+j.rate*seconds, now)
			break
		}
		delta := (end - j.progress) / j.rate
		if s.config.Publication.EpochEnds == wholeSeconds {
			delta = math.RoundToEven(delta)
		}
		delta = min(delta, seconds)
		now += delta
		seconds -= delta
		s.reach(j, end, now)
		s.reportMetrics(j, now)
		j.phase++
		j.unmeasured = true
		if j.phase == j.Model.Phases() {
			s.finish(j, now)
			return
		}
		s.schedule(j)
	}
	j.asOf = now
	if j.phase != phase {
		s.clock.events = append(s.clock.events, j.progressed(now))
	}
}
