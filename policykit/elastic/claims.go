package elastic

import (
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Claims counts the replicas of each candidate while a policy hands out one device after the other by what they gain: afs and optimus
// are built on it. Create one with NewClaims.
type Claims struct {
	Of     []Claim       // by index among the candidates
	Stands core.Standing // how long the answer of this round stands: for ever, unless a declared work left stood in

	capacity queue.Capacity
	ranks    []queue.Rank
	grants   []core.Grant
}

// Claim is what one candidate got so far.
type Claim struct {
	Replicas int     // granted so far
	Most     int     // most replicas that it can use; what it holds if it is pinned
	Work     float64 // left, in the unit of its curve
	Pinned   bool    // it has what it holds, and gets no more
}

// NewClaims creates the claims of a policy that was not asked yet, whose empty answer stands for ever.
func NewClaims() Claims { return Claims{Stands: core.Standing{UntilSeconds: math.Inf(1)}} }

// Open gives pinned candidates what they hold and the others nothing, and returns how many devices are left. Where elasticity does not
// know the work left of a job, declared is asked for it: it returns false when the answer may use what it returned and must not stand.
func (p *Claims) Open(v *core.View, candidates []core.Candidate, declared func(*core.Candidate) (work float64, stands bool)) (left int) {
	p.capacity.CountIn(v)
	pinned := queue.Pinned(v, candidates)
	p.Of, p.Stands = p.Of[:0], core.Standing{UntilSeconds: math.Inf(1)}
	for i := range candidates {
		c := &candidates[i]
		if pinned > 0 && queue.Stays(v, c) {
			p.Of = append(p.Of, Claim{Replicas: c.Held, Most: c.Held, Pinned: true})
			continue
		}
		k := Claim{Most: p.capacity.Limit(c, v.Cluster, c.Response.MaxReplicas), Work: c.Response.RemainingWork}
		stands := true
		if math.IsNaN(k.Work) {
			k.Work, stands = declared(c)
		}
		if !stands || queue.MayStay(v, c) {
			p.Stands.UntilSeconds = v.NowSeconds
		}
		p.Of = append(p.Of, k)
	}
	return v.Devices - pinned
}

// Grants grants each candidate what it got, in ascending order of replicas, ties in JobID order: that is the order of seating.
func (p *Claims) Grants(candidates []core.Candidate) []core.Grant {
	p.ranks = p.ranks[:0]
	for i := range candidates {
		if n := p.Of[i].Replicas; n > 0 {
			p.ranks = append(p.ranks, queue.Rank{Key: float64(n), Job: candidates[i].ID, Index: int32(i)})
		}
	}
	queue.SortRanks(p.ranks)
	p.grants = p.grants[:0]
	for _, r := range p.ranks {
		p.grants = append(p.grants, core.Grant{Job: r.Job, Accelerator: core.AnyAccelerator, Replicas: p.Of[r.Index].Replicas})
	}
	return p.grants
}

// Standing returns how long the last answer stands: for ever when the work left came from the responses, which change by events only,
// and now when a declared work left stood in, which shrinks as the job runs.
func (p *Claims) Standing() core.Standing { return p.Stands }
