package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/elastic"
)

// NewOptimus gives devices, one at a time, to the job whose end they bring nearest.
//
// Source: Optimus (EuroSys'18) with an oracle, in the form of the Pollux artifact. Every job first gets its least
// number of replicas in JobID order while devices remain; then the device goes to the job with the largest gain,
// (step time at k − step time at k+1) × steps left, ties in JobID order, until no gain is positive. A job stops at its
// first gain that is not positive, which a curve that is not concave can make too early. Grants come in ascending order
// of replicas, ties in JobID order: that is the order of seating. A job without a curve gets its least number only.
// Where elasticity does not know the work left, the declared one stands in. O((candidates + devices) log candidates).
func NewOptimus() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "optimus",
		Summary: "greedy marginal gain in remaining time, one device at a time",
		Description: "Gives each job its least number of replicas in submission order, then one device at a time to the job whose remaining time it shortens most. " +
			"Needs an elasticity that gives rate curves and the work left: without a curve a job gets its least number only, without the work left the declared one stands in. " +
			"The publication fits both online; here they come from an oracle, in the form of the Pollux artifact. A job stops at its first gain that is not positive, which a curve that is not concave can make too early. " +
			"O((candidates + devices) log candidates) a round.",
		Source:       "Optimus, EuroSys'18; Pollux artifact, OSDI'21",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
		return &optimus{Claims: elastic.NewClaims()}, nil
	})
}

type optimus struct {
	elastic.Claims

	gains elastic.Gains
}

func (p *optimus) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	perNode := v.Cluster.LargestNode()
	left := p.giveLeast(v, candidates)
	p.gains = p.gains[:0]
	for i := range candidates {
		p.gains.Add(elastic.Gain{Worth: p.gain(&candidates[i], &p.Of[i], perNode), Index: int32(i)})
	}
	p.gains.Heapify()
	for ; left > 0 && len(p.gains) > 0; left-- {
		i := p.gains[0].Index
		p.Of[i].Replicas++
		p.gains.ReplaceTop(p.gain(&candidates[i], &p.Of[i], perNode))
	}
	return p.Grants(candidates), nil
}

// giveLeast gives the candidates that are not pinned their least numbers of replicas, and returns how many devices are left.
func (p *optimus) giveLeast(v *core.View, candidates []core.Candidate) int {
	left := p.Open(v, candidates, func(c *core.Candidate) (work float64, stands bool) {
		if c.Response.MaxReplicas > c.Response.MinReplicas {
			return c.RemainingWork(v.NowSeconds), false
		}
		return math.NaN(), true // it gets its least number, however much is left
	})
	for i := range candidates {
		if least := candidates[i].Response.MinReplicas; !p.Of[i].Pinned && least <= left {
			p.Of[i].Replicas = least
			left -= least
		}
	}
	return left
}

// gain returns by how many seconds one more replica brings the end of a job nearer; 0 when it cannot use one.
func (p *optimus) gain(c *core.Candidate, claim *elastic.Claim, perNode int) float64 {
	k := claim.Replicas
	if k == 0 || k >= claim.Most {
		return 0
	}
	rate, next := c.Response.Rate(core.AnyAccelerator, k, perNode), c.Response.Rate(core.AnyAccelerator, k+1, perNode)
	if rate <= 0 || next <= 0 {
		return 0
	}
	return (1/rate - 1/next) * claim.Work
}
