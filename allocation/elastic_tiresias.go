package allocation

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/feedback"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// ElasticTiresiasConfig configures NewElasticTiresias.
type ElasticTiresiasConfig struct {
	feedback.QueuesConfig
	elastic.StepsConfig
	// CompactAbove is how many jobs may be left without devices before those behind the first queue are held to their least number.
	CompactAbove int `config:"compact_above" doc:"when more jobs than this are left without devices, those of all queues but the first are held to their least number" min:"0"`
}

// NewElasticTiresias serves jobs by discretised attained service, and divides by speed-ups what that leaves.
//
// Source: Elastic-Tiresias (Wu et al., TPDS'21), as in Voda. First the queues of Tiresias are served in order, each in the order of
// joining: a job gets what it requests if so many devices are left, and one that does not fit lets those behind it by. If more jobs
// than compact_above are left without, those of all queues but the first give up what is above their least number. Then the devices
// left go, step by step, where the gain is the largest: S(k+1)−S(k) for a job with k devices, S being the rate over that on one, and
// S(n)/n by the device for a waiting one and its least number n. Ties go to the job that is served before. Grants come in the order of
// the queues for those that are served, and after them in that of joining.
//
// Deviations: where one more device does not speed a job up, the next number that does is offered, its gain by the device; with steps
// one no more is, as in the publication. Gains that are not positive are not taken. A job without a curve waits with a gain of 1, as if
// it were perfectly elastic, and gets no more than it requests. Queues are those of tiresias, and so are their defaults; service counts
// requested replicas, so that nobody sinks faster for devices that were left over. Voda has one threshold at 3,600 device-seconds and a
// promote_factor of 8. O((candidates + devices) log candidates).
func NewElasticTiresias() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "elastic_tiresias",
		Summary: "Tiresias for what jobs request, compaction when many wait, and speed-ups for the rest",
		Description: "Serves the queues of tiresias with what jobs request. When more than compact_above jobs are left without devices, those of all queues but the first are held to their least number. " +
			"What is left goes by the largest gain in speed-up: a device more for one that has some, its least number by the device for one that has none. " +
			"Needs an elasticity that gives rate curves; a job without one gets no more than it requests. O((candidates + devices) log candidates) a round.",
		Source: "Elastic-Tiresias, Wu et al., TPDS'21; Voda",
	}, ElasticTiresiasConfig{
		QueuesConfig: feedback.Usual(), StepsConfig: elastic.StepsConfig{Steps: elastic.NextLevel}, CompactAbove: 10,
	}, func(c ElasticTiresiasConfig, _ core.Settings) (core.Allocator, error) {
		return &elasticTiresias{
			Queues: feedback.New(c.QueuesConfig), steps: c.StepsConfig, compactAbove: c.CompactAbove,
			Shares: elastic.NewShares(),
		}, nil
	})
}

type elasticTiresias struct {
	feedback.Queues
	elastic.Shares

	steps        elastic.StepsConfig
	compactAbove int
	order        []int32 // candidates in the order of the queues, by index
	offers       []offer // by place in that order
	gains        elastic.Gains
}

// offer is what a candidate may get next.
type offer struct {
	unit     float64 // rate on one device; 0 when unknown
	replicas int     // in place of those that it has
}

func (p *elasticTiresias) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.Requeue(v.NowSeconds, candidates)
	p.Begin(v, candidates)
	p.serve(candidates)
	p.compact()
	p.divide(candidates)
	grants := p.Settle(v, candidates)
	p.Stands.UntilSeconds = min(p.Stands.UntilSeconds, p.NextChange(v.NowSeconds, candidates, grants))
	return grants, nil
}

// serve gives candidates what they request, in the order of the queues.
func (p *elasticTiresias) serve(candidates []core.Candidate) {
	p.order = p.order[:0]
	for _, ids := range p.Lists {
		for _, id := range ids {
			i := p.Slot(id)
			p.order = append(p.order, i)
			p.Give(i, p.demand(&candidates[i], &p.Of[i]))
		}
	}
}

// demand is the number of replicas that a candidate requests; the next one above where it cannot run so, by its curve, and its least
// where there is none.
func (p *elasticTiresias) demand(c *core.Candidate, k *elastic.Share) int {
	return k.Runnable(c.Response, min(queue.Requested(c), k.Most), p.PerNode)
}

// compact takes back what jobs behind the first queue have above their least numbers, when too many others have nothing.
func (p *elasticTiresias) compact() {
	waiting := 0
	for i := range p.Of {
		if p.Of[i].Replicas == 0 {
			waiting++
		}
	}
	if waiting <= p.compactAbove {
		return
	}
	for _, i := range p.order[len(p.Lists[0]):] {
		if k := &p.Of[i]; k.Replicas > k.Least {
			p.Left += k.Replicas - k.Least
			k.Replicas = k.Least
		}
	}
}

// divide gives the devices left to those that gain most by them, step by step.
func (p *elasticTiresias) divide(candidates []core.Candidate) {
	p.offers, p.gains = p.offers[:0], p.gains[:0]
	for place, i := range p.order {
		c := &candidates[i]
		o := offer{unit: elastic.UnitRate(c.Response, p.Of[i].Least, p.PerNode)}
		worth := p.offer(c, &p.Of[i], &o)
		p.offers = append(p.offers, o)
		p.gains.Add(elastic.Gain{Worth: worth, Index: int32(place)})
	}
	p.gains.Heapify()
	for p.Left > 0 && len(p.gains) > 0 {
		place := p.gains[0].Index
		i, o := p.order[place], &p.offers[place]
		k := &p.Of[i]
		switch {
		case o.replicas-k.Replicas > p.Left: // so it never fits
			p.gains.ReplaceTop(0)
			continue
		case k.Replicas == 0:
			p.Give(i, o.replicas)
		default:
			p.Left -= o.replicas - k.Replicas
			k.Replicas = o.replicas
		}
		p.gains.ReplaceTop(p.offer(&candidates[i], k, o))
	}
}

// offer works out what a candidate may get next, and returns its gain in speed-up by the device; 0 for one that wants no more.
func (p *elasticTiresias) offer(c *core.Candidate, k *elastic.Share, o *offer) float64 {
	if k.Replicas == 0 {
		if o.replicas = k.Least; o.unit == 0 {
			return 1
		}
		return c.Response.Rate(core.AnyAccelerator, k.Least, p.PerNode) / o.unit / float64(k.Least)
	}
	next, rate := p.steps.Next(c.Response, k.Replicas, k.Most, p.PerNode)
	if next == 0 {
		return 0
	}
	gained := rate - c.Response.Rate(core.AnyAccelerator, k.Replicas, p.PerNode)
	o.replicas = next
	return gained / o.unit / float64(next-k.Replicas)
}
