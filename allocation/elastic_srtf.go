package allocation

import (
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// ElasticSRTFConfig configures NewElasticSRTF.
type ElasticSRTFConfig struct {
	// StepTimes reads the true step times and steps left of a profiled job where elasticity gives no curve.
	StepTimes bool `config:"step_times" doc:"read the true step times and steps left of a profiled job without a curve from elasticity; a real backend has none: there the declared work counts as seconds"`
}

// Capabilities are those that reading step times needs, besides the work left.
func (c ElasticSRTFConfig) Capabilities() []core.Capability {
	return queue.StepTimeCapabilities(c.StepTimes)
}

// NewElasticSRTF gives jobs their least numbers of devices by the time they have left, and then all of them the rest in turns.
//
// Source: the elastic SRTF of Voda: elastic_fifo with another order. The time left is that on the requested replicas, so that what a
// job is given does not change its place. It is known as to srtf: the work left over the rate where elasticity gives both, otherwise
// the steps left times the step time for a profiled job, unless step_times is off, and the declared seconds left. Jobs of unknown
// length come last, ties in JobID order. A shorter job takes the devices of a longer one that runs.
//
// Deviations: those of elastic_fifo. Voda measures the time left; here an oracle or the elasticity gives it.
// O(candidates + devices) when few change places.
func NewElasticSRTF() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "elastic_srtf",
		Summary: "shortest remaining time first with the least devices, and the rest in turns",
		Description: "Gives jobs their least number of devices by the seconds they still need on the replicas they request; one that does not fit lets others by, and ties go to the job submitted first. " +
			"Those that have some then get one device after the other in turns, up to their most. " +
			"The seconds are the work left over the rate where elasticity gives both; otherwise the steps left times the step time for a profiled job, unless step_times is off, and the declared work left, taken as seconds. " +
			"Jobs of unknown length come last. O(candidates + devices) a round when few change places.",
		Source:       "Voda, elastic SRTF",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, ElasticSRTFConfig{StepTimes: true}, func(c ElasticSRTFConfig, _ core.Settings) (core.Allocator, error) {
		return &elasticSRTF{steps: c.StepTimes, Shares: elastic.NewShares()}, nil
	})
}

type elasticSRTF struct {
	elastic.Shares

	steps bool
	order queue.Order
}

func (p *elasticSRTF) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.Begin(v, candidates)
	left := func(c *core.Candidate) (seconds float64, declared bool) {
		return queue.RemainingSeconds(c, v.NowSeconds, p.Limit(v, c, queue.Requested(c)), p.PerNode, p.steps)
	}
	ranks := p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 {
		seconds, _ := left(c)
		return seconds
	})
	p.GiveInOrder(ranks, func(_ int32, k *elastic.Share) int { return k.Least })
	p.GrowInTurns(candidates)
	grants := p.Settle(v, candidates)
	shrinks := func(c core.Candidate) bool { // as it runs
		_, declared := left(&c)
		return declared
	}
	if p.anyoneShort() && slices.ContainsFunc(candidates, shrinks) {
		p.Stands.UntilSeconds = v.NowSeconds // jobs change places as time passes
	}
	return grants, nil
}

// anyoneShort reports whether some candidate could use more than it got.
func (p *elasticSRTF) anyoneShort() bool {
	return slices.ContainsFunc(p.Of, func(k elastic.Share) bool { return k.Replicas < k.Most })
}

// Precedes is true: a job may take the devices of those behind it.
func (p *elasticSRTF) Precedes() bool { return true }
