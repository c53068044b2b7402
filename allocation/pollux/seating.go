package pollux

import (
	"cmp"
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
func (p *allocator) grant(v *core.View) []core.Grant {
	p.grants, p.seats = p.grants[:0], p.seats[:0]
	p.ledger.Reset(v.Cluster)
	p.unmix(v.Cluster)
	for _, c := range p.pinned {
		p.ledger.Occupy(c.Seats)
		p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Held, Proposed: c.Seats})
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; j.held > 0 && slices.Equal(p.plan.rows[i], p.jobs[i].row) {
			p.ledger.Occupy(j.seats)
			p.grants = append(p.grants, core.Grant{Job: j.id, Accelerator: core.AnyAccelerator, Replicas: j.held, Proposed: j.seats})
		}
	}
	p.seatChanged()
	p.grants = append(p.grants, p.homeless...)
	p.grantOthers(v)
	return p.grants
}

// unmix leaves every job the nodes of one type, that of most of its replicas, the lowest of several. If these are fewer
// than the job needs, it is granted its least, wherever that fits.
func (p *allocator) unmix(c *core.Cluster) {
	p.homeless = p.homeless[:0]
	if p.accelerator != core.AnyAccelerator {
		return
	}
	replicas := make([]int, len(p.byType))
	for i, row := range p.plan.rows {
		clear(replicas)
		most := core.AcceleratorID(0)
		for _, s := range row {
			replicas[c.Nodes[s.node].Accelerator] += int(s.replicas)
		}
		for t, n := range replicas {
			if n > replicas[most] {
				most = core.AcceleratorID(t)
			}
		}
		row = slices.DeleteFunc(slices.Clone(row), func(s share) bool { return c.Nodes[s.node].Accelerator != most })
		if j := &p.jobs[i]; len(row) > 0 && replicas[most] < j.least {
			row = nil
			p.homeless = append(p.homeless, core.Grant{Job: j.id, Accelerator: core.AnyAccelerator, Replicas: j.least})
		}
		p.plan.rows[i] = row
	}
}

// grantOthers serves the jobs that cannot run on the type that is optimised, on the types left: those that run first,
// then in the order of priority.
func (p *allocator) grantOthers(v *core.View) {
	p.order = p.order[:0]
	for i := range p.jobs {
		if !p.canRun(v.Cluster, p.jobs[i].candidate.Job) {
			p.order = append(p.order, i)
		}
	}
	slices.SortFunc(p.order, func(a, b int) int {
		x, y := &p.jobs[a], &p.jobs[b]
		return cmp.Or(cmp.Compare(min(y.held, 1), min(x.held, 1)), cmp.Compare(x.rank, y.rank))
	})
	for _, i := range p.order {
		j := &p.jobs[i]
		r := j.candidate.Response
		n := min(max(j.candidate.Requested, r.MinReplicas), r.MaxReplicas)
		if j.held >= r.MinReplicas && j.held <= r.MaxReplicas {
			n = j.held
		}
		for t := range p.byType {
			accelerator := core.AcceleratorID(t)
			if accelerator == p.accelerator || !j.candidate.CanRunOn(v.Cluster, accelerator) || p.byType[t] < r.MinReplicas {
				continue
			}
			n = max(min(n, p.byType[t]), r.MinReplicas)
			p.byType[t] -= n
			p.grants = append(p.grants, core.Grant{Job: j.id, Accelerator: accelerator, Replicas: n})
			break
		}
	}
}
