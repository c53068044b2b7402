package elasticflow

import (
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/promise"
)

var _ core.Forker = (*elasticFlow)(nil)

// Fork goes on with the plans and with the last answer, which stands while nothing happens. O(jobs submitted so far).
func (p *elasticFlow) Fork(*rand.Rand) any {
	f := &elasticFlow{
		config: p.config, ledger: promise.Ledger{Planner: promise.Planner{Overhead: p.ledger.Overhead}, Levels: p.ledger.Levels},
		kept: slices.Clone(p.kept), grants: slices.Clone(p.grants), asked: slices.Clone(p.asked),
		health: p.health, round: p.round, standing: p.standing,
	}
	for i := range f.kept {
		f.kept[i].plan = slices.Clone(f.kept[i].plan)
	}
	return f
}
