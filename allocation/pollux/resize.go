package pollux

import (
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Resize says that a job which keeps a device goes on while its other devices change, and what that costs it. The search
// counts on it for every row that shares a node with the one held: the grant then keeps as many devices of that node as
// both rows have. The counts are found as if any row could share a node, which keeps their cost a lower bound; what a
// seating really costs is in its rows.
type Resize struct {
	// InPlace says that a job that keeps one of its devices is not restarted.
	InPlace bool `config:"in_place" doc:"a job that keeps one of its devices is not restarted; say so of the simulator too"`
	// Overhead is what a job is charged for a change in place, at most the restart overhead.
	Overhead time.Duration `config:"overhead" doc:"what it is charged then, at most restart_overhead; with restart age, what is past is charged in full, as the restart is not observed" min:"0s"`
}

// price sets what a job's rows cost.
func (p *allocator) price(j *job) {
	j.costs = p.costsAt(j, j.move)
	j.resized = j.costs
	if j.easy {
		j.resized = p.costsAt(j, j.resize)
	}
	j.stays = math.Inf(1)
	if j.held == 0 || j.held >= j.least && j.held <= j.most && p.holds(j.row) {
		j.stays = p.cost(j, j.speed(j.row)*j.keep)
	}
}

// costsAt are the costs of k replicas on one node, on many, after a change that leaves a part of the speed.
func (p *allocator) costsAt(j *job, factor float64) (costs [2][]float64) {
	for shape, values := range [2][]float64{j.one, j.many} {
		costs[shape] = p.numbers.cut(len(values))
		for k, value := range values {
			costs[shape][k] = p.cost(j, value*factor)
			if k > 0 && k < j.least {
				costs[shape][k] = math.Inf(1)
			}
		}
	}
	return costs
}

// meet reports whether two rows share a node.
func meet(a, b []share) bool {
	return slices.ContainsFunc(a, func(at share) bool { return sits(b, at.node) })
}

// meetsAfter reports whether the job's row on the occupancy, with so many replicas on a node, shares a node with the one held.
func (j *job) meetsAfter(row []share, n, replicas int32) bool {
	return replicas > 0 && sits(j.row, n) ||
		slices.ContainsFunc(row, func(at share) bool { return at.node != n && sits(j.row, at.node) })
}

// seatChanged proposes seats for the jobs whose rows change: first what they keep of their devices, then the lowest
// free ones.
func (p *allocator) seatChanged() {
	first := len(p.grants)
	for i := range p.jobs {
		j, row := &p.jobs[i], p.plan.rows[i]
		if !j.changes(row) {
			continue
		}
		from := len(p.seats)
		for _, at := range row {
			p.seats = append(p.seats, j.kept(at))
		}
		seats := p.seats[from:len(p.seats):len(p.seats)]
		p.ledger.Occupy(seats)
		p.grants = append(p.grants, core.Grant{Job: j.id, Accelerator: core.AnyAccelerator, Replicas: replicasOf(row), Proposed: seats})
	}
	for i := range p.jobs {
		if !p.jobs[i].changes(p.plan.rows[i]) {
			continue
		}
		for at, s := range p.plan.rows[i] {
			seat := &p.grants[first].Proposed[at]
			seat.Devices |= p.ledger.Take(seat.Node, int(s.replicas)-seat.Devices.Count()).Devices
		}
		first++
	}
}

// changes reports whether a row is not the one held, nor none.
func (j *job) changes(row []share) bool {
	return len(row) > 0 && !(j.held > 0 && slices.Equal(row, j.row))
}

// kept is what a job keeps of its devices on a node.
func (j *job) kept(at share) core.Seat {
	for _, s := range j.seats {
		if s.Node == core.NodeID(at.node) {
			return core.Seat{Node: s.Node, Devices: s.Devices.Lowest(int(at.replicas))}
		}
	}
	return core.Seat{Node: core.NodeID(at.node)}
}
