package sim

import (
	"context"
	"io"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/grid"
)

// clock is the virtual time of a simulation, and what is to be reported of it.
type clock struct {
	now    float64      // seconds since the start of the run: the moment of the last round
	begun  bool         // the first round was held
	events []core.Event // what happened since the last round, reported with the next
	notes  []core.Event // what Apply led to, reported with the next round
}

// advanceByEvents goes from event to event until one of them, or the wake-up, calls for a round.
func (s *Simulator) advanceByEvents(ctx context.Context, w core.Wake) (float64, error) {
	due, happened := min(s.onGrid(w.BySeconds, w), s.outages.owed), !math.IsInf(s.outages.owed, 1)
	if at, reacted, owed, err := s.catchUp(ctx); err != nil {
		return 0, err
	} else if reacted || owed {
		due, happened = min(due, s.moment(at, w)), true
	}
	due = s.available(due, w)
	for {
		at := s.nextEvent()
		if report := s.nextReport(w); report < due {
			due = report
		}
		if !happened && s.over(min(at, due)) || math.IsInf(min(at, due), 1) {
			return 0, io.EOF
		}
		if at > due {
			return due, nil
		}
		if err := ctx.Err(); err != nil && !happened { // what happened is told
			return 0, err
		}
		wakes := s.happen(at, w)
		if reacted, err := s.react(ctx, at); err != nil {
			return 0, err
		} else if reacted {
			wakes = min(wakes, s.moment(at, w))
		}
		if wakes = s.available(wakes, w); wakes <= due {
			due, happened = wakes, true
		}
	}
}

// moment is that of the round of which something is told that happens at a moment.
func (s *Simulator) moment(at float64, w core.Wake) float64 {
	if w.OnEvents {
		return at
	}
	return s.onGrid(at, w)
}

// nextEvent is the moment of the earliest event, +Inf if there is none.
func (s *Simulator) nextEvent() float64 {
	at := s.devices.nodes.next()
	if s.jobs.arrived < len(s.jobs.byID) {
		at = min(at, s.jobs.workload[s.jobs.arrived-s.jobs.base].Spec.SubmitSeconds)
	}
	if len(s.jobs.queue) > 0 {
		at = min(at, s.jobs.queue[0].nextAt)
	}
	return min(at, s.nextStart())
}

// happen lets everything of one moment happen, and returns when that wakes the pipeline.
func (s *Simulator) happen(at float64, w core.Wake) (wakes float64) {
	wakes = math.Inf(1)
	moment := s.moment(at, w)
	for len(s.jobs.queue) > 0 && s.jobs.queue[0].nextAt <= at {
		j := s.jobs.queue[0]
		if s.endPhase(j, w) {
			wakes = moment
		} else if w.IntervalSeconds > 0 {
			wakes = min(wakes, s.onGrid(at, w))
		}
	}
	if s.letGo(at) || s.begin(at) {
		wakes = moment
	}
	s.removeEmpty(at)
	if s.happenToNodes(at) {
		wakes = moment
	}
	if s.arrive(at) {
		wakes = moment
	}
	return wakes
}

// onGrid is the first moment of the round grid not before t.
func (s *Simulator) onGrid(t float64, w core.Wake) float64 {
	if w.IntervalSeconds > 0 {
		t = grid.From(t, w.IntervalSeconds)
	}
	if s.config.Publication.FirstRound == oneInterval {
		return max(t, w.IntervalSeconds)
	}
	return t
}
