package twin

import "github.com/quartet-sched/quartet/core"

// Beliefs are what a run taught so far: how long jobs are, how fast they come, how they go on more devices. It is an observer of the run, and knows only what policies
// may know.
type Beliefs struct{}

// ObserveRound learns from a round.
func (b *Beliefs) ObserveRound(r *core.Report) error { return nil }

// Draw is one of the worlds that are believed in. The same view, seed and draw give the same world. Draw 0 is the one that is expected: nothing in it is drawn
// where it can be computed.
func (b *Beliefs) Draw(v *core.View, seed uint64, draw int, horizonSeconds float64) *World {
	return &World{}
}
