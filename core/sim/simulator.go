package sim

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Simulator is a core.Backend over virtual time. Its state is in parts, each in the file of its name.
type Simulator struct {
	config   Config
	settings core.Settings

	clock    clock
	jobs     jobs
	starts   starts
	devices  devices
	pools    pools
	reports  measurements
	outages  outages
	stall    stall
	reaction *reaction // nil for a list of jobs

	filesRead []core.FileRead
}

var (
	_ core.Backend      = (*Simulator)(nil)
	_ core.FileReader   = (*Simulator)(nil)
	_ core.DeviceKeeper = (*Simulator)(nil)
	_ core.Scaling      = (*Simulator)(nil)
)

// FilesRead are the pairs of the user's own.
func (s *Simulator) FilesRead() []core.FileRead { return s.filesRead }

// KeepsDevices is as the config has it.
func (s *Simulator) KeepsDevices() bool { return s.config.Resize.Keep }

// Capabilities repeats what the opener declared.
func (s *Simulator) Capabilities() []core.Capability { return (&opener{}).Capabilities() }

// Next moves the clock to the next round and returns what happened up to it.
func (s *Simulator) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if err := s.config.checkRounds(w.IntervalSeconds, w.OnEvents).Err(); err != nil {
		return core.Observation{}, err
	}
	s.clock.events = append(s.clock.events[:0], s.clock.notes...)
	s.clock.notes = s.clock.notes[:0]
	advance := s.advanceByEvents
	switch s.config.Publication.Progress {
	case perRound, wholeSteps:
		advance = s.advanceByRounds
	case backToBack:
		advance = s.advanceBackToBack
	}
	s.outages.wake = w
	now, err := advance(ctx, w)
	if err == nil {
		err = s.unavailable(now)
	}
	if err != nil {
		s.clock.notes = append(s.clock.notes, s.clock.events...) // nothing is lost when the context ended
		return core.Observation{}, err
	}
	if p := s.config.Publication.Progress; p != perRound && p != wholeSteps {
		s.reportAll(now)
	}
	s.pauseForRound(now, &s.clock.events)
	s.clock.now, s.clock.begun, s.outages.owed = now, true, math.Inf(1)
	return core.Observation{NowSeconds: now, Events: s.clock.events}, nil
}
