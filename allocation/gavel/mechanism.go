package gavel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// mechanism is the allocator that every policy becomes part of.
//
// A job is the more urgent on a type the larger its share of it is against the part it received of all the time given
// there since the shares were computed. Each type takes the most urgent jobs that fit, and what is left goes to
// others, so that no device idles while a job could use it, unless the policy is strict. Pinned jobs and their
// devices are left out of it all; a job whose lease runs keeps its type, lest it be moved again before it has run for
// its restart.
type mechanism struct {
	config Rounds
	policy policy
	rand   *rand.Rand

	jobTable jobTable
	problem  problem
	devices  []float64 // of ready nodes and not of pinned jobs, by accelerator type
	total    float64   // sum of devices
	pinned   core.Once
	before   []float64 // devices in the round before
	nodes    []int     // devices of the largest node, by accelerator type
	due      bool      // the shares are out of date
	reset    float64
	queue    queue
	pairs    *pairs // nil where no jobs share devices
}

func newMechanism(c Rounds, p policy, s core.Settings) *mechanism {
	return &mechanism{config: c, policy: p, rand: s.Rand}
}

func (p *mechanism) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.queue.grants = p.queue.grants[:0]
	resized := p.count(v, candidates)
	changed := p.jobTable.update(p, v, candidates)
	if p.pairs != nil {
		p.pairs.charge(p.jobTable.members, len(p.devices), v.IntervalSeconds/2, changed)
	}
	p.due = p.due || resized || changed
	elapsed := v.NowSeconds - p.reset
	if p.due && (elapsed >= p.config.RecomputeInterval.Seconds() || p.reset == 0) { // at 0 s all is new, as published
		if err := p.recompute(ctx, v); err != nil {
			return nil, err
		}
	}
	if p.pairs != nil {
		return p.choosePairs(), nil
	}
	return p.choose(), nil
}

// count counts the devices of ready nodes, less those that pinned jobs keep, and reports whether there are now more
// or fewer of a type.
func (p *mechanism) count(v *core.View, candidates []core.Candidate) bool {
	c := v.Cluster
	p.devices, p.before = append(p.before[:0], make([]float64, len(c.Accelerators))...), p.devices
	p.nodes, p.total = append(p.nodes[:0], make([]int, len(c.Accelerators))...), 0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		usable := float64(n.Usable().Count())
		p.devices[n.Accelerator] += usable
		p.total += usable
		if n.Health != core.Gone {
			sound := n.Devices
			if n.Unusable != 0 {
				sound -= n.Unusable.Count()
			}
			p.nodes[n.Accelerator] = max(p.nodes[n.Accelerator], sound)
		}
	}
	p.pinned.Reset(c)
	for i := range candidates {
		if j := &candidates[i]; j.MustStay(c, j.Response) {
			for _, s := range j.Seats {
				devices := float64(p.pinned.Count(s))
				p.devices[c.Nodes[s.Node].Accelerator] -= devices
				p.total -= devices
			}
			p.queue.grants = append(p.queue.grants, core.Grant{Job: j.ID, Accelerator: core.AnyAccelerator, Replicas: j.Held})
		}
	}
	return !slices.Equal(p.devices, p.before)
}

// recompute settles what the jobs were short of, and asks the policy for new shares.
func (p *mechanism) recompute(ctx context.Context, v *core.View) error {
	elapsed := v.NowSeconds - p.reset
	p.problem.now, p.problem.capacity, p.problem.devices = v.NowSeconds, append(p.problem.capacity[:0], p.devices...), p.total
	if p.config.TypeBlind {
		p.problem.capacity = append(p.problem.capacity[:0], p.total)
	}
	p.problem.jobs = p.problem.jobs[:0]
	p.problem.cluster, p.problem.pairs = v.Cluster, p.pairs
	if p.pairs != nil {
		p.pairs.settle(p.config, elapsed, v.IntervalSeconds)
		p.pairs.shares = p.pairs.shares[:0]
	}
	for _, m := range p.jobTable.members {
		p.settle(m, elapsed, v.IntervalSeconds)
		clear(m.share)
		if m.runs() {
			p.problem.jobs = append(p.problem.jobs, m)
		} else {
			m.shared = false
		}
	}
	p.due, p.reset = false, v.NowSeconds
	if err := p.policy.divide(ctx, &p.problem); err != nil {
		return fmt.Errorf("divide time among %d jobs: %w", len(p.problem.jobs), err)
	}
	if p.pairs != nil {
		p.pairs.take(p.problem.jobs, len(p.devices), v.IntervalSeconds/2)
	}
	for _, m := range p.problem.jobs {
		m.shared = true
		if !p.config.TypeBlind {
			copy(m.share, m.x)
			continue
		}
		open := 0.0 // devices of types that the job can run on
		for t, speed := range m.speed {
			if speed > 0 {
				open += p.devices[t]
			}
		}
		for t, speed := range m.speed {
			if speed > 0 {
				m.share[t] = m.x[0] * p.devices[t] / open
			}
		}
	}
	return nil
}

// settle closes the account of the shares so far. What a job is short of, or ahead, never needs to exceed a round: it
// is served before. More comes of devices that nobody wanted, or of grants that could not be seated, and is nobody's
// loss.
func (p *mechanism) settle(m *member, elapsed, interval float64) {
	settleAccounts(p.config.Accounts, m.share, m.seconds, m.deficit, elapsed, interval)
}

func settleAccounts(how string, share, seconds, deficit []float64, elapsed, interval float64) {
	if how == kept {
		return
	}
	credit := interval / 2
	for t, part := range share {
		deficit[t] += part*elapsed - (seconds[t] - credit)
		if seconds[t] = credit; how == settled {
			deficit[t] = min(max(deficit[t], -interval), interval)
		}
	}
}

// AskedOnce is true: shares of time are paid off by being asked.
func (p *mechanism) AskedOnce() bool { return true }
