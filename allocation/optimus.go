package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
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
			"Needs an elasticity that tells rate curves and the work left: without a curve a job gets its least number only, without the work left the declared one stands in. " +
			"The publication fits both online; here they come from an oracle, in the form of the Pollux artifact. A job stops at its first gain that is not positive, which a curve that is not concave can make too early. " +
			"O((candidates + devices) log candidates) a round.",
		Source:       "Optimus, EuroSys'18; Pollux artifact, OSDI'21",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, core.None{}, func(core.None, core.Settings) (core.Allocator, error) {
		return &optimus{standing: core.Standing{UntilSeconds: math.Inf(1)}}, nil
	})
}

type optimus struct {
	capacity queue.Capacity
	shares   []share // by index among the candidates
	gains    gainHeap
	ranks    []queue.Rank
	grants   []core.Grant
	standing core.Standing
}

// share is what a candidate has got so far.
type share struct {
	replicas  int
	most      int
	remaining float64
}

func (p *optimus) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	perNode := v.Cluster.LargestNode()
	left := p.giveLeast(v, candidates)
	p.gains = p.gains[:0]
	for i := range candidates {
		p.gains.add(gain{worth: p.gain(&candidates[i], &p.shares[i], perNode), index: int32(i)})
	}
	p.gains.heapify()
	for ; left > 0 && len(p.gains) > 0; left-- {
		i := p.gains[0].index
		p.shares[i].replicas++
		p.gains.replaceTop(p.gain(&candidates[i], &p.shares[i], perNode))
	}
	return p.grantAscending(candidates), nil
}

// giveLeast gives pinned jobs what they hold and the others their least numbers of replicas, and returns how many devices are left.
func (p *optimus) giveLeast(v *core.View, candidates []core.Candidate) int {
	p.capacity.CountIn(v)
	pinned := queue.Pinned(v, candidates)
	left := v.Devices - pinned
	p.shares, p.standing = p.shares[:0], core.Standing{UntilSeconds: math.Inf(1)}
	for i := range candidates {
		c := &candidates[i]
		if pinned > 0 && queue.Stays(v, c) {
			p.shares = append(p.shares, share{replicas: c.Held, most: c.Held})
			continue
		}
		if queue.MayStay(v, c) {
			p.standing.UntilSeconds = v.NowSeconds
		}
		s := share{most: p.capacity.Limit(c, v.Cluster, c.Response.MaxReplicas), remaining: c.Response.RemainingWork}
		if math.IsNaN(s.remaining) && c.Response.MaxReplicas > c.Response.MinReplicas {
			s.remaining, p.standing.UntilSeconds = c.RemainingWork(v.NowSeconds), v.NowSeconds
		}
		if least := c.Response.MinReplicas; least <= left {
			s.replicas = least
			left -= least
		}
		p.shares = append(p.shares, s)
	}
	return left
}

// gain is by how many seconds one more replica brings the end of a job nearer; 0 when it cannot use one.
func (p *optimus) gain(c *core.Candidate, s *share, perNode int) float64 {
	k := s.replicas
	if k == 0 || k >= s.most {
		return 0
	}
	rate, next := c.Response.Rate(core.AnyAccelerator, k, perNode), c.Response.Rate(core.AnyAccelerator, k+1, perNode)
	if rate <= 0 || next <= 0 {
		return 0
	}
	return (1/rate - 1/next) * s.remaining
}

func (p *optimus) grantAscending(candidates []core.Candidate) []core.Grant {
	p.ranks = p.ranks[:0]
	for i := range candidates {
		if n := p.shares[i].replicas; n > 0 {
			p.ranks = append(p.ranks, queue.Rank{Key: float64(n), Job: candidates[i].ID, Index: int32(i)})
		}
	}
	queue.SortRanks(p.ranks)
	p.grants = p.grants[:0]
	for _, r := range p.ranks {
		p.grants = append(p.grants, core.Grant{Job: r.Job, Accelerator: core.AnyAccelerator, Replicas: p.shares[r.Index].replicas})
	}
	return p.grants
}

// Standing is for ever when every gain came from the responses, which change by events only, and now when a declared
// work left stood in, which shrinks as the job runs.
func (p *optimus) Standing() core.Standing { return p.standing }

// gain is what more replicas are worth to a candidate.
type gain struct {
	worth float64
	index int32
}

// gainHeap holds positive gains, the largest first, ties by index.
type gainHeap []gain

func (h gainHeap) before(a, b int) bool {
	return h[a].worth > h[b].worth || h[a].worth == h[b].worth && h[a].index < h[b].index
}

// add appends a gain, if it is positive, without keeping the order: heapify follows.
func (h *gainHeap) add(g gain) {
	if g.worth > 0 {
		*h = append(*h, g)
	}
}

func (h gainHeap) heapify() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// replaceTop gives the first candidate its next gain, or drops it when that is not positive.
func (h *gainHeap) replaceTop(worth float64) {
	gains := *h
	if worth > 0 {
		gains[0].worth = worth
	} else {
		last := len(gains) - 1
		gains[0] = gains[last]
		*h = gains[:last]
	}
	h.sink(0)
}

func (h gainHeap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.before(child+1, child) {
			child++
		}
		if !h.before(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
