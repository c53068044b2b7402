package gpufraction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Config configures New.
type Config struct {
	// Premium is the part (0 to 1) of the requested device time that premium jobs are guaranteed.
	Premium float64 `config:"premium" doc:"part of the device time they request that premium jobs are guaranteed" min:"0" max:"1"`
	// Standard is that part for standard jobs, at most Premium.
	Standard float64 `config:"standard" doc:"that of standard jobs, at most that of premium ones" min:"0" max:"1"`
	// Basic is that part for basic jobs and those without a tier, at most Standard.
	Basic float64 `config:"basic" doc:"that of basic jobs and of those without a tier, at most that of standard ones" min:"0" max:"1"`
	// Window is the time up to now over which the part is taken.
	Window time.Duration `config:"window" doc:"time up to now over which the part is taken; the life of a job that is younger" min:"1s"`
	// Turn is how much more than it must a job makes up before it gives way.
	Turn time.Duration `config:"turn" doc:"a job that was behind makes up this much more than it must before it gives way, and keeps its devices until another of its tier is this much further behind; larger means fewer preemptions and coarser turns" min:"0s"`
}

// Validate checks that no tier is guaranteed more than one that is served before it.
func (c Config) Validate() error {
	var problems []error
	if c.Standard > c.Premium {
		problems = append(problems, fmt.Errorf("standard: must be at most premium, %v, got %v", c.Premium, c.Standard))
	}
	if c.Basic > c.Standard {
		problems = append(problems, fmt.Errorf("basic: must be at most standard, %v, got %v", c.Standard, c.Basic))
	}
	return errors.Join(problems...)
}

func (c Config) guarantees() core.Guarantees {
	return core.Guarantees{c.Premium, c.Standard, c.Basic}
}

// LeastTurn is what a job makes up before it gives way, of one that asks for one device.
func (c Config) LeastTurn() (seconds float64, setting string, turns bool) {
	return c.Turn.Seconds(), "turn", true
}

// New guarantees each job the part of the device time it requests that its tier promises.
//
// Source: the service levels of Singularity (Shukla et al., 2022, arXiv 2202.07848), whose scheduler is not published: the rule here is
// reasoned from its description. The attainment of a job is the integral over the window of min(held, requested)/requested, in seconds
// at its full demand, and its surplus that less what it is guaranteed. Jobs with a deficit are served first, by tier and then by
// surplus, least first; then those that run keep their devices, and those that wait get what is left, both by tier and surplus, so
// that the victims are those of the lowest tier with the largest surplus. What nobody requests goes, device by device, to jobs that
// can use more than they request.
//
// Deviations: a job that may fall behind before the next round counts as behind. One that did is served as one until it is ahead by half of what it could ever be, or by turn where that is less,
// and jobs of one tier take turns of that length; otherwise two that can only share their devices would change places in every round. Where
// devices are short, jobs shrink to their least number before they lose all. Deficits are compared in seconds, not as parts, so
// that young jobs do not go up and down. Devices of all types count alike. O(jobs log jobs + devices) a round.
func New() core.Factory[core.Allocator] {
	usual := core.UsualGuarantees()
	return core.NewFactory(core.Info{
		Type:    "gpu_fraction",
		Summary: "tiers of jobs with a guaranteed part of the device time they request",
		Description: "Guarantees jobs a part of the device time they request, by tier, over a sliding window. Jobs that are behind their guarantee, or may be before the next round, come first, by tier and by how far they are behind; " +
			"then those that run keep what they have, and what is left goes to anyone, elastic jobs beyond their request included. Who gives way is of the lowest tier, and the furthest ahead. " +
			"Guarantees that ask for more devices than there are cannot all be kept: those of higher tiers are. O(jobs log jobs + devices) a round.",
		Source: "the service levels of Singularity, arXiv 2202.07848",
	}, Config{
		Premium: usual[0], Standard: usual[1], Basic: usual[2], Window: time.Hour, Turn: 6 * time.Minute,
	}, func(c Config, _ core.Settings) (core.Allocator, error) {
		return &gpuFraction{
			guarantees: c.guarantees(), window: c.Window.Seconds(), turn: c.Turn.Seconds(),
			Shares: elastic.NewShares(),
		}, nil
	})
}

type gpuFraction struct {
	elastic.Shares

	guarantees   core.Guarantees
	window, turn float64
	interval     float64      // of rounds
	attained     []attainment // by JobID
	present      []core.JobID // in the last round
	claims       []claim
}

var _ core.Guarantor = (*gpuFraction)(nil)

// Guarantees are those of the config.
func (p *gpuFraction) Guarantees() core.Guarantees { return p.guarantees }

// The classes of claims, in the order in which they are served.
const (
	claimsGuarantee = iota // it fell behind
	claimsHeld             // it runs
	claimsSpare            // it waits
)

// claim is the place of a candidate in the order.
type claim struct {
	class, tier int
	key         float64
	surplus     float64
	index       int32
	wanted      int // replicas, as requested
}

func (p *gpuFraction) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.Begin(v, candidates)
	p.interval = v.IntervalSeconds
	if err := p.rank(v, candidates); err != nil {
		return nil, err
	}
	p.each(claimsGuarantee, func(k *claim) { p.raise(candidates, k, k.wanted) })
	p.each(claimsHeld, func(k *claim) { p.raise(candidates, k, p.Of[k.index].Least) })
	p.each(claimsHeld, func(k *claim) { p.raise(candidates, k, min(candidates[k.index].Held, k.wanted)) })
	p.each(claimsHeld, func(k *claim) { p.raise(candidates, k, k.wanted) })
	p.each(claimsSpare, func(k *claim) { p.raise(candidates, k, k.wanted) })
	for i := range p.claims { // what was spare before goes where it was
		p.raise(candidates, &p.claims[i], candidates[p.claims[i].index].Held)
	}
	p.GrowInTurns(candidates)
	grants := p.Settle(v, candidates)
	p.Stands.IfSeated = len(grants)
	p.Stands.UntilSeconds = min(p.Stands.UntilSeconds, p.changes(v.NowSeconds, candidates))
	if v.Cluster.Sharing != core.Exclusive && p.resizes(candidates) {
		p.Stands.UntilSeconds = v.NowSeconds // the device-seconds of a part do not tell what came before and what after
	}
	return grants, nil
}

// resizes reports whether some candidate is to have another number of devices than it holds.
func (p *gpuFraction) resizes(candidates []core.Candidate) bool {
	for i := range candidates {
		if p.Of[i].Replicas != candidates[i].Held {
			return true
		}
	}
	return false
}

// resolution of a surplus that is held against a threshold, in seconds: it is summed in as many steps as there were rounds, and is to be the same
// however many those were.
const resolution = 1.0 / (1 << 20)

// rank takes in what the candidates had, and puts them in order.
func (p *gpuFraction) rank(v *core.View, candidates []core.Candidate) error {
	p.forget(v)
	p.claims = p.claims[:0]
	for i := range candidates {
		c := &candidates[i]
		p.present = append(p.present, c.ID)
		tier := core.TierRank(c.Tier)
		if tier < 0 {
			return fmt.Errorf("job %q is of unknown tier %q; valid values: %s", c.Name, c.Tier, strings.Join(core.Tiers(), ", "))
		}
		p.attained = queue.Grown(p.attained, c.ID)
		a := &p.attained[c.ID]
		a.see(c.Job, p.demand(c, int32(i)), v.NowSeconds, p.window)
		k := claim{class: claimsSpare, tier: tier, index: int32(i)}
		k.surplus = a.surplus(v.NowSeconds, p.window, p.guarantees[tier])
		k.wanted = p.fit(c, k.index, p.demand(c, k.index))
		k.key = k.surplus
		a.behind = p.isBehind(a.behind, math.Round(k.surplus/resolution)*resolution, tier)
		switch {
		case a.behind:
			if k.class = claimsGuarantee; c.Held > 0 {
				k.key -= p.turn
			}
		case c.Held > 0:
			k.class = claimsHeld
		}
		p.claims = append(p.claims, k)
	}
	slices.SortFunc(p.claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.tier, b.tier), cmp.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
	})
	return nil
}

// forget drops what is known of the jobs that ended.
func (p *gpuFraction) forget(v *core.View) {
	for _, id := range p.present {
		if v.Job(id) == nil {
			p.attained[id] = attainment{}
		}
	}
	p.present = p.present[:0]
}

// isBehind reports whether a job is served as one behind its guarantee: from when it may fall behind before the next round until it
// has made up for it, and somewhat more.
func (p *gpuFraction) isBehind(was bool, surplus float64, tier int) bool {
	switch {
	case p.guarantees[tier] == 0:
		return false
	case was:
		return surplus < p.enough(tier)
	default:
		return surplus < p.interval
	}
}

// enough is the surplus with which a job that fell behind gives way. Where it can never have as much as a round may cost it, it never does.
func (p *gpuFraction) enough(tier int) float64 {
	most := (1 - p.guarantees[tier]) * p.window
	return p.interval + max(min(p.turn, (most-p.interval)/2), 0)
}

// each does something for the claims of a class, in order.
func (p *gpuFraction) each(class int, do func(*claim)) {
	for i := range p.claims {
		if k := &p.claims[i]; k.class == class {
			do(k)
		}
	}
}

// demand is what a candidate requests, as far as the cluster has so many devices.
func (p *gpuFraction) demand(c *core.Candidate, i int32) int {
	return min(queue.Requested(c), p.Of[i].Most)
}

// fit is the largest number of replicas up to n that a candidate can run with; 0 for none.
func (p *gpuFraction) fit(c *core.Candidate, i int32, n int) int {
	k := &p.Of[i]
	for n = min(n, k.Most); n >= k.Least; n-- {
		if !k.Known || c.Response.Rate(core.AnyAccelerator, n, p.PerNode) > 0 {
			return n
		}
	}
	return 0
}

// raise gives a candidate n replicas, or as many as the devices left allow.
func (p *gpuFraction) raise(candidates []core.Candidate, c *claim, n int) {
	k := &p.Of[c.index]
	if n <= k.Replicas || p.Left == 0 {
		return
	}
	if n = p.fit(&candidates[c.index], c.index, min(n, k.Replicas+p.Left)); n <= k.Replicas {
		return
	}
	if k.Replicas == 0 {
		p.Given = append(p.Given, c.index)
	}
	p.Left -= n - k.Replicas
	k.Replicas = n
}

// changes is the moment from which another answer may come of the same jobs: when one falls behind its guarantee, or has made up for
// it. Up to then it depends on the order only what those get who are behind, and only if not all of them get what they request.
func (p *gpuFraction) changes(now float64, candidates []core.Candidate) float64 {
	first := math.Inf(1)
	for i := range p.claims {
		k := &p.claims[i]
		c, n := &candidates[k.index], p.Of[k.index].Replicas
		if k.class == claimsGuarantee && n < k.wanted {
			return now
		}
		if guaranteed := p.guarantees[k.tier]; guaranteed > 0 {
			rate := partOf(float64(n), p.demand(c, k.index))
			s := slide{window: p.window, guaranteed: guaranteed, now: now, surplus: k.surplus, rate: rate}
			if k.class == claimsGuarantee {
				first = min(first, p.attained[c.ID].rises(s, p.enough(k.tier)))
			} else {
				first = min(first, p.attained[c.ID].falls(s, p.interval))
			}
		}
	}
	return first - queue.EarlySeconds
}

// Precedes is true: a job may take the devices of those behind it.
func (p *gpuFraction) Precedes() bool { return true }
