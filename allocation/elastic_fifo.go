package allocation

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/elastic"
)

// NewElasticFIFO gives jobs their least numbers of devices in order of submission, and then all of them the rest in turns.
//
// Source: the elastic FIFO of Voda. In JobID order each job gets its least number of replicas if so many devices are left; one that
// does not fit lets those behind it by. Then those that have some get one device after the other in turns, in the same order, up to
// their most. A job that runs has no precedence: when a job before it fits at last, it may lose its devices. Curves are not compared:
// a fifth device is given though it lies on another node and slows the job down. Grants come in the order of the turns.
//
// Deviations: the released code hands single devices also to jobs that got nothing for lack of their least number; here they wait.
// A number with which a job cannot run, by its curve, is passed over. O(candidates + devices).
func NewElasticFIFO() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "elastic_fifo",
		Summary: "first submitted, first served with the least devices, and the rest in turns",
		Description: "Gives jobs their least number of devices in submission order; one that does not fit lets others by. Those that have some then get one device after the other in turns, up to their most. " +
			"Needs an elasticity that lets jobs run on several numbers of devices; how fast they are on each makes no difference. O(candidates + devices) a round.",
		Source: "Voda, elastic FIFO",
	}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
		return &elasticFIFO{elastic.NewShares()}, nil
	})
}

type elasticFIFO struct{ elastic.Shares }

// Allocate depends on neither the time nor on who runs, pins aside.
func (p *elasticFIFO) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.Begin(v, candidates)
	for i := range candidates {
		p.Give(int32(i), p.Of[i].Least)
	}
	p.GrowInTurns(candidates)
	return p.Settle(v, candidates), nil
}
