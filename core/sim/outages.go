package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// outage is a time in which no round is held. Its ends are none of it, but what is decided at its beginning comes into effect
// at its end.
type outage struct{ from, to float64 }

// outages are the times in which no round is held, and what they keep back.
type outages struct {
	list      []outage  // by time
	reported  int       // list[:reported] were reported
	appliesAt float64   // end of the outage in which changes were to be applied, seconds
	owed      float64   // moment of a round that an outage kept from being reported, seconds; +Inf for none
	wake      core.Wake // as the pipeline last asked for
}

func sortedOutages(list []Outage) (sorted []outage) {
	for _, o := range list {
		sorted = append(sorted, outage{o.At.Seconds(), (o.At + o.For).Seconds()})
	}
	slices.SortFunc(sorted, func(a, b outage) int { return cmp.Compare(a.from, b.from) })
	return sorted
}

func (o outage) trouble() error {
	return &core.Unavailable{Cause: fmt.Errorf("a simulated outage from %v s to %v s", o.from, o.to)}
}

// available is the first moment of a round not before t that is in no outage.
func (s *Simulator) available(t float64, w core.Wake) float64 {
	for _, o := range s.outages.list {
		if t > o.from && t < o.to {
			t = s.onGrid(o.to, w)
		}
	}
	return t
}

// unavailable tells once of each outage that began before a round, which is told afterwards.
func (s *Simulator) unavailable(round float64) error {
	if s.outages.reported == len(s.outages.list) || s.outages.list[s.outages.reported].from >= round {
		return nil
	}
	o := s.outages.list[s.outages.reported]
	s.outages.reported++
	s.outages.owed = round
	return o.trouble()
}

// failToApply tells of an outage that begins at the moment of the round. When it is called again the outage is over: it reports
// whether what happened meanwhile is yet to be told.
func (s *Simulator) failToApply() (late bool, err error) {
	if s.outages.reported < len(s.outages.list) && s.outages.list[s.outages.reported].from == s.clock.now {
		o := s.outages.list[s.outages.reported]
		s.outages.reported++
		s.outages.appliesAt = o.to
		return false, o.trouble()
	}
	if s.outages.appliesAt <= s.clock.now {
		return false, nil
	}
	seen := s.clock.events // the pipeline's until it asks for the next round
	s.clock.events = s.clock.notes
	for at := s.nextEvent(); at <= s.outages.appliesAt; at = s.nextEvent() {
		s.outages.owed = min(s.outages.owed, s.available(s.happen(at, s.outages.wake), s.outages.wake))
	}
	s.clock.notes, s.clock.events = s.clock.events, seen
	s.clock.now = s.outages.appliesAt
	return true, nil
}
