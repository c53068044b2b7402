package gavel

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
)

// mechanism is the allocator that every policy becomes part of.
//
// A job is the more urgent on a type the larger its share of it is against the part it received of all the time given
// there since the shares were computed. Each type takes the most urgent jobs that fit, and what is left goes to others,
// so that no device idles while a job could use it, unless the policy is strict.
type mechanism struct {
	config Rounds
	policy policy
	rand   *rand.Rand

	roster  roster
	problem problem
	nodes   []int // devices of the largest node, by type
	due     bool  // the shares are out of date
	reset   float64
	queue   queue
}

func newMechanism(c Rounds, p policy, s core.Settings) *mechanism {
	return &mechanism{config: c, policy: p, rand: s.Rand}
}

func (p *mechanism) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	resized := p.count(v.Cluster)
	changed := p.roster.update(p, v, candidates)
	p.due = p.due || resized || changed
	elapsed := v.NowSeconds - p.reset
	if p.due && (elapsed >= p.config.RecomputeInterval.Seconds() || p.reset == 0) {
		if err := p.recompute(ctx, v); err != nil {
			return nil, err
		}
	}
	return p.choose(), nil
}

// count counts the devices of ready nodes, and reports whether there are now more or fewer of a type.
func (p *mechanism) count(c *core.Cluster) bool {
	types, before := len(c.Accelerators), p.problem.capacity
	p.problem.capacity, p.nodes, p.problem.devices = make([]float64, types), make([]int, types), 0
	changed := len(before) != types
	for i := range c.Nodes {
		n := &c.Nodes[i]
		usable := n.Usable().Count()
		p.problem.capacity[n.Accelerator] += float64(usable)
		p.problem.devices += float64(usable)
		p.nodes[n.Accelerator] = max(p.nodes[n.Accelerator], n.Devices)
	}
	for t := range p.problem.capacity {
		changed = changed || p.problem.capacity[t] != before[t]
	}
	return changed
}

// recompute settles what the jobs were short of, and asks the policy for new shares.
func (p *mechanism) recompute(ctx context.Context, v *core.View) error {
	elapsed, credit := v.NowSeconds-p.reset, v.IntervalSeconds/2
	p.problem.now, p.problem.jobs = v.NowSeconds, p.problem.jobs[:0]
	for _, m := range p.roster.members {
		for t := range m.x {
			m.deficit[t] += m.x[t]*elapsed - (m.seconds[t] - credit)
			if !p.config.KeepAccounts {
				m.seconds[t] = credit
			}
		}
		if m.runs() {
			p.problem.jobs = append(p.problem.jobs, m)
		}
	}
	p.due, p.reset = false, v.NowSeconds
	if err := p.policy.divide(ctx, &p.problem); err != nil {
		return fmt.Errorf("divide time among %d jobs: %w", len(p.problem.jobs), err)
	}
	for _, m := range p.problem.jobs {
		m.shared = true
	}
	return nil
}
