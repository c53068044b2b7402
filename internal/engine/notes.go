package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// longRound is an interval that people wait for.
const longRound = 10 * time.Second

// noteRounds says that rounds are rare, for a job that ends sooner holds its devices until the next.
func (e *execution) noteRounds() {
	if o := e.Round; !o.OnEvents && o.Interval > longRound {
		e.note(fmt.Sprintf("rounds are held every %v only: a job starts, and one that has ended gives its devices up, at the next one; with --set round.on_events=true at once", o.Interval))
	}
}

// notePromises says that promises may break: without an interval plans change between events, and nobody is asked then; and they are of devices, where
// more is counted.
func (e *execution) notePromises(stages *core.Stages) {
	for i := range stages.Admission {
		can := core.AbilitiesOf(stages.Admission[i].Policy)
		if !can.Promises() {
			continue
		}
		who := stages.Admission[i].ID + " promises deadlines, and may break them: "
		if e.Round.Interval == 0 {
			e.note(who + "rounds have no interval, at which plans change; with --set round.interval=60s")
		}
		switch {
		case e.cluster.Sharing != core.Exclusive:
			e.note(who + "it counts whole devices, and the cluster shares them; for the same reason it may decline jobs that would fit beside others")
		case e.cluster.CountsResources:
			e.note(who + "it counts devices, and the cluster CPUs and memory as well; with --set cluster.count_resources=false")
		}
	}
}

// notePairs says that no two of the jobs were measured together, where somebody goes by that.
func (e *execution) notePairs() {
	packs := slices.Contains(e.Allocation.Factory.Needs(e.Allocation.Config), core.CapabilityPairRates)
	if e.can.Pairs == nil || e.cluster.Sharing == core.Exclusive {
		return
	}
	byPairs, known := e.can.Pairs.PairsMeasured()
	if known {
		return
	}
	const give = "give a file of pairs with backend.config.co_location.model: table and co_location.table, or take a workload that brings one"
	if packs {
		e.note(fmt.Sprintf("no two jobs share devices: %q goes by pairs that were measured, and no table knows two of these jobs; %s", e.Allocation.ID, give))
	} else if byPairs {
		e.note("backend.config.co_location.model: table knows no two of these jobs, and co_location.unknown says how fast all are that share devices; " + give)
	}
}
