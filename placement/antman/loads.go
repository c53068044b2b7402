package antman

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// antManShare is how much a job counts on its devices.
type antManShare struct {
	seats []core.Seat
	part  float64
}

// subtract takes those off the sums that left their devices since the last round.
func (p *antMan) subtract(v *core.View, devices int) {
	for len(p.sums) < devices {
		p.sums = append(p.sums, 0)
	}
	p.left = p.left[:0]
	for id, had := range p.on {
		if j := v.Job(id); j == nil || !core.SameSeats(j.Seats, had.seats) {
			p.left = append(p.left, id)
		}
	}
	slices.Sort(p.left)
	for _, id := range p.left {
		p.sum(id, antManShare{})
	}
}

// sum has the sums be those with a job on other seats than before.
func (p *antMan) sum(id core.JobID, has antManShare) {
	had := p.on[id]
	if core.SameSeats(had.seats, has.seats) {
		return
	}
	add := func(seats []core.Seat, part float64) {
		for _, s := range seats {
			for rest := s.Devices; rest != 0; rest &= rest - 1 {
				p.sums[p.hosts[s.Node]+rest.First()] += part
			}
		}
	}
	add(had.seats, -had.part)
	add(has.seats, has.part)
	if has.seats == nil {
		delete(p.on, id)
		return
	}
	if p.on == nil {
		p.on = make(map[core.JobID]antManShare)
	}
	p.on[id] = antManShare{slices.Clone(has.seats), has.part}
}
