package antman

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

var _ core.Forker = (*antMan)(nil)

// Fork goes on with who keeps which nodes, and with the sums. O(nodes + devices + jobs that run, where loads are summed).
func (p *antMan) Fork(*rand.Rand) any {
	f := &antMan{
		Config: p.Config, forgetful: p.forgetful,
		keeper: slices.Clone(p.keeper), whole: slices.Clone(p.whole), keeps: maps.Clone(p.keeps),
		sums: slices.Clone(p.sums), on: maps.Clone(p.on), // whose seats are replaced, never changed
	}
	if f.keeps != nil {
		f.inVain = make(map[antManAsk]bool)
	}
	return f
}
