package pollux

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// share is a number of replicas on a node.
type share struct {
	node     int32
	replicas int32
}

// seating says for each job on which nodes it has how many replicas, nodes ascending, and what that costs.
type seating struct {
	rows   [][]share // by job
	cost   float64
	shares arena[share]
}

func (s *seating) reset(jobs int) {
	s.rows = slices.Grow(s.rows[:0], jobs)[:jobs]
	clear(s.rows)
	s.shares = s.shares[:0]
}

// keep copies a row.
func (s *seating) keep(row []share) []share {
	kept := s.shares.cut(len(row))
	copy(kept, row)
	return kept
}

// arena is memory that is cut into slices, all of which are given up together when it is emptied.
type arena[T any] []T

// cut returns a slice of n zero values.
func (a *arena[T]) cut(n int) []T {
	first := len(*a)
	*a = slices.Grow(*a, n)[:first+n]
	piece := (*a)[first : first+n : first+n]
	clear(piece)
	return piece
}

// rowOf is what a job holds.
func (p *allocator) rowOf(j *job) []share {
	row := p.shares.cut(len(j.seats))
	for i, s := range j.seats {
		row[i] = share{int32(s.Node), int32(s.Devices.Count())}
	}
	slices.SortFunc(row, func(a, b share) int { return int(a.node - b.node) })
	return row
}

func replicasOf(row []share) int {
	n := 0
	for _, s := range row {
		n += int(s.replicas)
	}
	return n
}

// speed is a job's value on a row that it can have, before the restart.
func (j *job) speed(row []share) float64 {
	if len(row) > 1 {
		return j.many[replicasOf(row)]
	}
	return j.one[replicasOf(row)]
}

// factor is the part of a job's speed on a row that a restart leaves.
func (j *job) factor(row []share) float64 {
	switch {
	case slices.Equal(row, j.row):
		return j.keep
	case j.easy && meet(row, j.row):
		return j.resize
	default:
		return j.move
	}
}

// costOf is a job's part of the objective on a row.
func (j *job) costOf(row []share) float64 {
	if slices.Equal(row, j.row) {
		return j.stays
	}
	costs := &j.costs
	if j.easy && meet(row, j.row) {
		costs = &j.resized
	}
	return costs[min(len(row)/2, 1)][replicasOf(row)]
}

// canStay reports whether the job can keep its seats.
func (j *job) canStay() bool { return !math.IsInf(j.stays, 1) }

// grant turns the plan into grants, each with its seats: those that stay are left as they are.
func (p *allocator) grant(v *core.View) {
	first := len(p.grants)
	p.unmix(v.Cluster)
	for _, c := range p.pinned {
		p.occupy(c.Seats)
		p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Held, Proposed: c.Seats})
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; j.held > 0 && slices.Equal(p.plan.rows[i], p.jobs[i].row) {
			p.ledger.Occupy(j.seats)
			p.grants = append(p.grants, core.Grant{Job: j.id, Accelerator: core.AnyAccelerator, Replicas: j.held, Proposed: j.seats})
		}
	}
	p.seatChanged()
	clear(p.granted)
	for _, g := range p.grants[first:] {
		p.granted[g.Job] = true
	}
	p.left = slices.DeleteFunc(p.left, func(c *core.Candidate) bool { return p.granted[c.ID] })
}

// sound reports whether no device of some seats is unusable on a node that is ready.
func (p *allocator) sound(c *core.Cluster, seats []core.Seat) bool {
	for _, s := range seats {
		if n := &c.Nodes[s.Node]; n.Health == core.Ready && s.Devices&n.Unusable != 0 {
			return false
		}
	}
	return true
}

// soundOf is what is left of seats without the devices that are unusable: the search then sees a job that holds so much.
func (p *allocator) soundOf(c *core.Cluster, seats []core.Seat) []core.Seat {
	left := make([]core.Seat, 0, len(seats))
	for _, s := range seats {
		if n := &c.Nodes[s.Node]; n.Health == core.Ready {
			s.Devices &^= n.Unusable
		}
		if s.Devices != 0 {
			left = append(left, s)
		}
	}
	return left
}
