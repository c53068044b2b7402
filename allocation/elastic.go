package allocation

import (
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// The steps by which a greedy policy may raise the number of devices of a job.
const (
	oneByOne  = "one"
	nextLevel = "next_level"
)

// StepsConfig configures by how many devices a greedy policy raises a job at once.
type StepsConfig struct {
	Steps string `config:"steps" doc:"what a job is offered next: one is a single device, and a job that it does not speed up gets no more; next_level is the next number of devices that speeds it up, say beyond the border of a node" enum:"one|next_level"`
}

// next is the number of replicas that a job with n is to be offered, most at most, and its rate with them; 0 when no step speeds it
// up, and when its rate with n is unknown.
func (c StepsConfig) next(r *core.Response, n, most, perNode int) (replicas int, rate float64) {
	now := r.Rate(core.AnyAccelerator, n, perNode)
	if c.Steps == oneByOne {
		most = min(most, n+1)
	}
	for k := n + 1; k <= most && now > 0; k++ {
		if rate := r.Rate(core.AnyAccelerator, k, perNode); rate > now {
			return k, rate
		}
	}
	return 0, 0
}

// unitRate is the rate on one device, by which speed-ups are measured. Where a job cannot run on one, it is that of one of the least
// devices on which it can; 0 when nothing is known.
func unitRate(r *core.Response, least, perNode int) float64 {
	if rate := r.Rate(core.AnyAccelerator, 1, perNode); rate > 0 {
		return rate
	}
	return r.Rate(core.AnyAccelerator, least, perNode) / float64(least)
}

// stakes are what the candidates of a round got so far, with what elastic_fifo, elastic_srtf and elastic_tiresias have in common: a
// job gets nothing, or its least number of devices and more.
type stakes struct {
	capacity queue.Capacity
	perNode  int
	left     int     // devices that nobody got
	of       []stake // by index among the candidates
	given    []int32 // those that got some and are not pinned, in that order, by index among the candidates
	ring     []int32 // those of them that may grow
	grants   []core.Grant
	standing core.Standing
}

// stake is what a candidate got so far.
type stake struct {
	replicas    int
	least, most int  // equal to replicas for one that is pinned
	known       bool // there is a curve that tells a rate, and it cannot run on numbers without one
}

// begin gives pinned jobs what they hold, and the others nothing.
func (s *stakes) begin(v *core.View, candidates []core.Candidate) {
	s.capacity.CountIn(v)
	s.perNode, s.left = v.Cluster.LargestNode(), v.Devices
	s.of, s.given, s.grants = s.of[:0], s.given[:0], s.grants[:0]
	s.standing = core.Standing{UntilSeconds: math.Inf(1)}
	for i := range candidates {
		c := &candidates[i]
		if queue.Stays(v, c) {
			s.of = append(s.of, stake{replicas: c.Held, least: c.Held, most: c.Held})
			s.left -= c.Held
			s.grant(c, c.Held)
			continue
		}
		k := stake{most: s.capacity.Limit(c, v.Cluster, c.Response.MaxReplicas), known: true}
		if k.least = k.runnable(c.Response, c.Response.MinReplicas, s.perNode); k.least == 0 {
			k.known, k.least = false, c.Response.MinReplicas
		}
		s.of = append(s.of, k)
	}
}

// runnable is the first number of replicas from n on with which a job can run; 0 for none.
func (k *stake) runnable(r *core.Response, n, perNode int) int {
	for ; n <= k.most; n++ {
		if !k.known || r.Rate(core.AnyAccelerator, n, perNode) > 0 {
			return n
		}
	}
	return 0
}

// requested is what a candidate asks for, within what it can use.
func requested(c *core.Candidate) int {
	return min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas)
}

// give gives a candidate that has nothing n replicas, within what it can run with, if so many devices are left.
func (s *stakes) give(i int32, n int) {
	k := &s.of[i]
	if n = max(min(n, k.most), k.least); k.replicas == 0 && n <= s.left {
		k.replicas = n
		s.left -= n
		s.given = append(s.given, i)
	}
}

// growInTurns gives those that have some one device after the other, in the order in which they got the first, as long as devices are
// left. Who cannot run with one more takes as many as it takes to run.
func (s *stakes) growInTurns(candidates []core.Candidate) {
	s.ring = append(s.ring[:0], s.given...)
	for s.left > 0 && len(s.ring) > 0 {
		grown := s.ring[:0]
		for _, i := range s.ring {
			k := &s.of[i]
			next := k.runnable(candidates[i].Response, k.replicas+1, s.perNode)
			if next == 0 || next-k.replicas > s.left {
				continue
			}
			s.left -= next - k.replicas
			k.replicas = next
			grown = append(grown, i)
		}
		s.ring = grown
	}
}

// settle grants everyone what he got: pinned ones first, and then in the order of the first devices. The answer does not
// stand when a pinned job is among them: once it runs, what it got comes before everything else.
func (s *stakes) settle(v *core.View, candidates []core.Candidate) []core.Grant {
	for _, i := range s.given {
		c := &candidates[i]
		s.grant(c, s.of[i].replicas)
		if c.Pinned {
			s.standing.UntilSeconds = v.NowSeconds
		}
	}
	return s.grants
}

func (s *stakes) grant(c *core.Candidate, replicas int) {
	s.grants = append(s.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: replicas})
}

// Standing is that of the last answer.
func (s *stakes) Standing() core.Standing { return s.standing }
