package pollux

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// rankJobs numbers the jobs in the published order of priority: less attained service first, then earlier submission.
func (p *allocator) rankJobs() {
	p.order = p.order[:0]
	for i := range p.jobs {
		p.order = append(p.order, i)
	}
	slices.SortFunc(p.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.jobs[a].attained, p.jobs[b].attained), cmp.Compare(p.jobs[a].id, p.jobs[b].id))
	})
	for rank, i := range p.order {
		p.jobs[i].rank = rank
	}
}

// weigh sets the weights of the jobs.
func (p *allocator) weigh(v *core.View) {
	switch p.config.Weights {
	case "remaining":
		p.weighByRemaining(v)
	case "attained":
		p.weighByAttained()
	}
	p.liftLight()
	p.liftWaiting(v)
	mean := 0.0
	for i := range p.jobs {
		mean += p.jobs[i].weight / float64(len(p.jobs))
	}
	p.weight = 0
	for i := range p.jobs {
		p.jobs[i].weight /= mean
		p.weight += p.jobs[i].weight
	}
}

// weighByRemaining weighs a job by how many have more work left than it: in systems that serve short jobs first, so many
// wait for it.
func (p *allocator) weighByRemaining(v *core.View) {
	left := make([]float64, len(p.jobs))
	for i := range p.jobs {
		c := p.jobs[i].candidate
		one := rate(c.Response, p.accelerator, 1, false)
		if left[i] = c.Response.RemainingWork; math.IsNaN(left[i]) {
			left[i] = c.WorkDone(v.NowSeconds) // of a job that does not tell, as much is expected as it has done
		}
		if left[i] = max(left[i], 1); one > 0 {
			left[i] /= one
		}
	}
	p.order = p.order[:0]
	for i := range p.jobs {
		p.order = append(p.order, i)
	}
	slices.SortFunc(p.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(left[b], left[a]), cmp.Compare(p.jobs[a].rank, p.jobs[b].rank))
	})
	for position, i := range p.order {
		p.jobs[i].weight = math.Pow((float64(position)+p.config.RankOffset)/float64(len(p.jobs)), p.config.RankPower)
	}
}

// liftLight holds the weights above the floor.
func (p *allocator) liftLight() {
	heaviest := 0.0
	for i := range p.jobs {
		heaviest = max(heaviest, p.jobs[i].weight)
	}
	for i := range p.jobs {
		p.jobs[i].weight = max(p.jobs[i].weight, p.config.WeightFloor*heaviest)
	}
}

// liftWaiting bounds every wait: the weight of a job without devices grows with the square of its wait, and beyond that of
// all others.
//
// Let n jobs that can run on one device share d devices, each use up to m of them, and lose at most r times what one
// device gains it. Then no job waits longer than √r·max(floor, q) + q, with q the time of ⌈n/⌈d/m⌉⌉ rounds. For a job
// that waited √r times the floor takes a device from whoever ran before; a round that leaves it out gives them all to at
// least ⌈d/m⌉ others that waited 1/√r times as long as it, which is at least q, and so can do that once in a time of q.
func (p *allocator) liftWaiting(v *core.View) {
	floor := p.config.WaitingFloor.Seconds()
	if floor == 0 {
		return
	}
	heaviest := 0.0
	for i := range p.jobs {
		heaviest = max(heaviest, p.jobs[i].weight)
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; j.held == 0 {
			waited := (v.NowSeconds - j.candidate.LastChange) / floor
			j.weight = max(j.weight, heaviest*waited*waited)
		}
	}
}
