package pollux

import (
	"cmp"
	"slices"
)

// pairLimit is the number of jobs up to which each is compared with each other one, and groupWidth how far apart, as a
// part of the least, the services are of which the mean stands for all beyond it. That is off by some 1e-6 of a job.
const (
	pairLimit  = 512
	groupWidth = 1.0 / 64
)

// weighByAttained weighs a job by how many have received more service than it, counted smoothly. O(jobs log jobs) for many.
func (p *allocator) weighByAttained() {
	groups := p.groups[:0]
	for i := range p.jobs {
		groups = append(groups, group{p.jobs[i].attained + p.config.AttainedScale, 1})
	}
	if len(groups) > pairLimit {
		slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.mean, b.mean) })
		groups = merge(groups)
	}
	p.groups = groups
	for i := range p.jobs {
		j := &p.jobs[i]
		service := j.attained + p.config.AttainedScale
		j.weight = 0
		for _, g := range groups {
			j.weight += g.jobs * (g.mean / (g.mean + service))
		}
	}
}

// group is jobs that received much the same service.
type group struct{ mean, jobs float64 }

// merge joins groups, in ascending order, that are close.
func merge(groups []group) []group {
	merged := groups[:0]
	for first := 0; first < len(groups); {
		sum, jobs, limit := 0.0, 0.0, groups[first].mean*(1+groupWidth)
		for first < len(groups) && groups[first].mean <= limit {
			sum += groups[first].mean * groups[first].jobs
			jobs += groups[first].jobs
			first++
		}
		merged = append(merged, group{sum / jobs, jobs})
	}
	return merged
}
