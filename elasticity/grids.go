package elasticity

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// limitsOf are the bounds of a batch that matter to a grid.
func limitsOf(b core.BatchSpec) core.BatchSpec {
	b.Requested = 0
	if b.MaxPerDevice == 0 { // a bound that does not bind
		b.MaxPerDevice = b.Max
	}
	return b
}

// grid is that of jobs with these limits.
func (p *goodputAgent) grid(limits core.BatchSpec) *goodput.Grid {
	if p.ruled != nil {
		return p.ruled.grid(limits, p.config.MostReplicas)
	}
	if p.grids[limits] == nil {
		made := goodput.NewGrid
		if p.everySample {
			made = goodput.NewOnePassGrid
		}
		p.grids[limits] = made(limits, p.config.MostReplicas)
	}
	return p.grids[limits]
}

// ungradedBatch is the total batch of a job that reports times but no gradient statistics, so that nobody knows what
// another batch is worth, or of one that is to keep its batch where gradients are not looked at: the one its user asked for. 0 for
// any other job.
func (p *goodputAgent) ungradedBatch(a *agent, j *core.Job) int {
	if p.ruled != nil {
		return 0
	}
	if p.everySample {
		if slices.Contains(p.config.FixedBatch, j.Application) {
			return j.Batch.Requested
		}
		return 0
	}
	if len(a.reported) == 0 || a.gradients != (core.Gradients{}) {
		return 0
	}
	p.noteUngraded(j)
	if j.Batch.Requested > 0 {
		return j.Batch.Requested
	}
	return j.Batch.Initial
}

// noteUngraded notes that a job reports no gradient statistics, once.
func (p *goodputAgent) noteUngraded(j *core.Job) {
	for int(j.ID) >= len(p.noted) {
		p.noted = append(p.noted, false)
	}
	if !p.noted[j.ID] {
		p.noted[j.ID] = true
		p.note(&p.ungraded, j, "a job reports no gradient statistics: it keeps its batch, and grows by its throughput")
	}
}
