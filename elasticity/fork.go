package elasticity

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim/losscurve"
)

// The models of a job are as of when it was asked about last, and what jobs begin with is as of then, too: no Snapshotter tells either.

var (
	_ core.Forker = (*goodputAgent)(nil)
	_ core.Forker = (*lossGain)(nil)
)

// Fork goes on with the same jobs and the same history, which it never writes. O(jobs submitted so far + applications): what is known of a job is copied by
// whoever learns more of it first.
func (p *goodputAgent) Fork(*rand.Rand) any { return p.fork() }

func (p *goodputAgent) fork() *goodputAgent {
	for _, a := range p.agents {
		if a != nil && a.owner == p {
			a.owner = nil
		}
	}
	f := &goodputAgent{
		config: p.config, everySample: p.everySample, ruled: p.ruled, id: p.id, differ: p.differ, standing: p.standing,
		grids: maps.Clone(p.grids), truths: maps.Clone(p.truths), tables: maps.Clone(p.tables), latest: maps.Clone(p.latest),
		silent: slices.Clone(p.silent), handed: maps.Clone(p.handed), agents: slices.Clone(p.agents), rigid: p.rigid.fork(),
		settled: true, endsTold: true,
	}
	f.config.HistoryFrozen = true
	if p.pool != nil {
		f.pool = p.pool.fork()
	}
	return f
}

// Fork goes on with what the jobs do with devices: what they gain is known from their reports.
func (p *lossGain) Fork(*rand.Rand) any {
	return &lossGain{
		goodputAgent: p.fork(), settings: p.settings, fitter: losscurve.Fitter{Decay: p.fitter.Decay}, constant: p.constant.fork(), perNode: p.perNode,
	}
}

func (p *fixed) fork() fixed {
	return fixed{
		elastic: p.elastic, oracle: p.oracle, proportional: p.proportional, inherits: p.inherits,
		measured: maps.Clone(p.measured), linear: maps.Clone(p.linear), types: p.types,
	}
}

// fork is a pool that knows the same.
func (p *pool) fork() *pool {
	f := *p
	f.borrowed, f.fresh, f.live, f.proofs = maps.Clone(p.borrowed), maps.Clone(p.fresh), maps.Clone(p.live), maps.Clone(p.proofs)
	f.work.applications = maps.Clone(p.work.applications)
	return &f
}

// own is what is known of a job, to be changed.
func (p *goodputAgent) own(id core.JobID) *agent {
	a := p.agents[id]
	if a.owner == p {
		return a
	}
	c := *a
	c.owner, c.reported, c.seen, c.models = p, slices.Clone(a.reported), slices.Clone(a.seen), slices.Clone(a.models)
	for t := range c.models {
		if curves := c.models[t].curves; curves != nil {
			c.models[t].curves = curves.Clone()
		}
	}
	p.agents[id] = &c
	return &c
}

// hasNews reports whether there is something to learn of a job.
func (p *goodputAgent) hasNews(a *agent, v *core.View, j *core.Job) bool {
	return !slices.Equal(a.reported, j.Measured) || len(a.reported) > 0 && j.Gradients != a.gradients || a.allowed != allowedOf(v.Cluster, j) ||
		p.ruled != nil && p.ruled.epoch(j, v.NowSeconds) > a.batch.Epoch
}
