package core

import (
	"context"
	"fmt"
	"slices"
)

// Chooser chooses between compositions while a run goes on. One that is a Snapshotter goes on where it was when the run does.
type Chooser interface {
	// Choose is asked between two rounds, by the goroutine that holds them, when all observers have seen the first. The composition that it
	// returns takes over as by Pipeline.Replace; nil leaves those that decide. Of rounds that an earlier scheduler held, it is not asked.
	Choose(ctx context.Context, p *Pipeline) (*Composition, error)
}

// chooserID is under which what a chooser learned is kept.
const chooserID = "synthesizer"

// choose asks the chooser, and does as it says.
func (p *Pipeline) choose(ctx context.Context) error {
	r := &p.resumption
	if p.chooser == nil || r.memory != nil && r.memory.Replaying() {
		return nil
	}
	if !r.chose {
		r.chose = true
		p.restoreChooser()
	}
	p.state.asking = chooserID
	c, err := p.chooser.Choose(ctx, p)
	p.state.asking = ""
	if err != nil {
		return fmt.Errorf("component %q: choose: %w", chooserID, err)
	}
	if c == nil {
		return nil
	}
	return p.replace(c)
}

// restoreChooser gives the chooser what it had learned when the run was left. One that cannot take it up begins anew, and tells so itself: the run goes on.
func (p *Pipeline) restoreChooser() {
	s := AbilitiesOf(p.chooser).Snapshotter
	if s == nil || p.resumption.memory == nil {
		return
	}
	learned := p.resumption.memory.Learned()
	at := slices.IndexFunc(learned, func(l Learned) bool { return l.Component == chooserID })
	if at >= 0 {
		_ = s.Restore(learned[at].Data)
	}
}

// chooserLearned is what the chooser learned, as a list.
func (p *Pipeline) chooserLearned() []Learned {
	s := AbilitiesOf(p.chooser).Snapshotter
	if s == nil {
		return nil
	}
	data, err := s.Snapshot()
	if err != nil {
		return nil
	}
	return []Learned{{chooserID, data}}
}
