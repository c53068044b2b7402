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
	for _, o := range s.outages {
		if t > o.from && t < o.to {
			t = s.onGrid(o.to, w)
		}
	}
	return t
}

// unavailable tells once of each outage that began before a round, which is told afterwards.
func (s *Simulator) unavailable(round float64) error {
	if s.toldOutages == len(s.outages) || s.outages[s.toldOutages].from >= round {
		return nil
	}
	o := s.outages[s.toldOutages]
	s.toldOutages++
	s.owed = round
	return o.trouble()
}

// failToApply tells of an outage that begins at the moment of the round. When it is called again the outage is over: it reports
// whether what happened meanwhile is yet to be told.
func (s *Simulator) failToApply() (late bool, err error) {
	if s.toldOutages < len(s.outages) && s.outages[s.toldOutages].from == s.now {
		o := s.outages[s.toldOutages]
		s.toldOutages++
		s.appliesAt = o.to
		return false, o.trouble()
	}
	if s.appliesAt <= s.now {
		return false, nil
	}
	seen := s.events // the pipeline's until it asks for the next round
	s.events = s.notes
	for at := s.nextEvent(); at <= s.appliesAt; at = s.nextEvent() {
		s.owed = min(s.owed, s.available(s.happen(at, s.wake), s.wake))
	}
	s.notes, s.events = s.events, seen
	s.now = s.appliesAt
	return true, nil
}
