package elastic

import (
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Shares counts the devices that each candidate of a round got so far. A job gets nothing, or its least number of replicas or more.
// elastic_fifo, elastic_srtf, elastic_tiresias, edf and gpu_fraction are built on it. Create one with NewShares.
type Shares struct {
	PerNode int           // devices of the largest node
	Left    int           // devices that nobody got
	Of      []Share       // by index among the candidates
	Given   []int32       // candidates that got devices and are not pinned, in that order, by index
	Stands  core.Standing // how long the answer of this round stands; a policy may shorten it after Settle

	capacity queue.Capacity
	ring     []int32 // the given ones that may grow
	grants   []core.Grant
}

// Share is what one candidate got so far.
type Share struct {
	Replicas int  // granted so far
	Least    int  // fewest replicas that it can run with; what it holds if it is pinned
	Most     int  // most replicas that it can use; what it holds if it is pinned
	Known    bool // its curve has a rate, and it cannot run on a number of replicas without one
}

// NewShares creates the shares of a policy that was not asked yet, whose empty answer stands for ever.
func NewShares() Shares { return Shares{Stands: core.Standing{UntilSeconds: math.Inf(1)}} }

// Begin gives pinned jobs what they hold, and the others nothing.
func (s *Shares) Begin(v *core.View, candidates []core.Candidate) {
	s.capacity.CountIn(v)
	s.PerNode, s.Left = v.Cluster.LargestNode(), v.Devices
	s.Of, s.Given, s.grants = s.Of[:0], s.Given[:0], s.grants[:0]
	s.Stands = core.Standing{UntilSeconds: math.Inf(1)}
	for i := range candidates {
		c := &candidates[i]
		if queue.Stays(v, c) {
			s.Of = append(s.Of, Share{Replicas: c.Held, Least: c.Held, Most: c.Held})
			s.Left -= c.Held
			s.grant(c, c.Held)
			continue
		}
		k := Share{Most: s.capacity.Limit(c, v.Cluster, c.Response.MaxReplicas), Known: true}
		if k.Least = k.Runnable(c.Response, c.Response.MinReplicas, s.PerNode); k.Least == 0 {
			k.Known, k.Least = false, c.Response.MinReplicas
		}
		s.Of = append(s.Of, k)
	}
}

// Limit returns how many of n replicas ready nodes could give a candidate.
func (s *Shares) Limit(v *core.View, c *core.Candidate, n int) int {
	return s.capacity.Limit(c, v.Cluster, n)
}

// Runnable returns the first number of replicas from n on with which a job can run; 0 for none.
func (k *Share) Runnable(r *core.Response, n, perNode int) int {
	for ; n <= k.Most; n++ {
		if !k.Known || r.Rate(core.AnyAccelerator, n, perNode) > 0 {
			return n
		}
	}
	return 0
}

// Give gives a candidate that has nothing n replicas, within what it can run with, if so many devices are left.
func (s *Shares) Give(i int32, n int) {
	k := &s.Of[i]
	if n = max(min(n, k.Most), k.Least); k.Replicas == 0 && n <= s.Left {
		k.Replicas = n
		s.Left -= n
		s.Given = append(s.Given, i)
	}
}

// GiveInOrder visits ranked candidates in their order and gives each that has nothing as many replicas as wanted says.
func (s *Shares) GiveInOrder(ranks []queue.Rank, wanted func(index int32, share *Share) int) {
	for _, r := range ranks {
		if s.Left == 0 {
			return
		}
		if k := &s.Of[r.Index]; k.Replicas == 0 {
			s.Give(r.Index, wanted(r.Index, k))
		}
	}
}

// GrowInTurns gives the candidates that have devices one more after the other, in the order in which they got the first, as long as
// devices are left. A job that cannot run with one more takes as many as it needs to run.
func (s *Shares) GrowInTurns(candidates []core.Candidate) {
	s.ring = append(s.ring[:0], s.Given...)
	for s.Left > 0 && len(s.ring) > 0 {
		grown := s.ring[:0]
		for _, i := range s.ring {
			k := &s.Of[i]
			next := k.Runnable(candidates[i].Response, k.Replicas+1, s.PerNode)
			if next == 0 || next-k.Replicas > s.Left {
				continue
			}
			s.Left -= next - k.Replicas
			k.Replicas = next
			grown = append(grown, i)
		}
		s.ring = grown
	}
}

// Settle grants each candidate its share: pinned ones first, then the others in the order in which they got devices. The answer does
// not stand when a waiting pinned job is among them: once it runs, its share comes before everything else.
func (s *Shares) Settle(v *core.View, candidates []core.Candidate) []core.Grant {
	for _, i := range s.Given {
		c := &candidates[i]
		s.grant(c, s.Of[i].Replicas)
		if c.Pinned {
			s.Stands.UntilSeconds = v.NowSeconds
		}
	}
	return s.grants
}

func (s *Shares) grant(c *core.Candidate, replicas int) {
	s.grants = append(s.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: replicas})
}

// Standing returns how long the last answer stands.
func (s *Shares) Standing() core.Standing { return s.Stands }
