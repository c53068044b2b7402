// Package drawn has property tests draw what coretest makes at random, so that a failure shrinks.
package drawn

import (
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// View draws a view and its candidates as coretest.DrawView does.
func View(t *rapid.T) (*core.View, []core.Candidate) {
	return coretest.DrawView(coretest.NewT(t, chance{t}))
}

// chance draws what a property test can shrink.
type chance struct{ t *rapid.T }

func (c chance) Whole(what string, least, most int) int {
	return rapid.IntRange(least, most).Draw(c.t, what)
}

func (c chance) Real(what string, least, most float64) float64 {
	return rapid.Float64Range(least, most).Draw(c.t, what)
}

func (c chance) Bits(what string) uint64 { return rapid.Uint64().Draw(c.t, what) }
