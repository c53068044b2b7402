package coretest

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// plain is every stage at once, in the simplest form: everyone is admitted, rigid, granted in order of submission and
// seated on the first free devices. What runs stays.
type plain struct{}

// Respond makes every job rigid.
func (plain) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses := make([]core.Response, 0, len(jobs))
	for _, j := range jobs {
		responses = append(responses, Rigid(j))
	}
	return responses, nil
}

// Admit admits everyone.
func (plain) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) { return nil, nil }

// Allocate grants every candidate the least it can run with.
func (plain) Allocate(_ context.Context, _ *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	grants := make([]core.Grant, 0, len(candidates))
	for _, c := range candidates {
		grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Response.MinReplicas})
	}
	return grants, nil
}

// Place keeps what runs and takes the first free devices for the rest.
func (plain) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	all := grants
	grants = firsts(all)
	var s core.Seating
	var free room
	free.reset(v.Cluster)
	stays := make([]bool, len(grants))
	for i := range grants {
		j := v.Job(grants[i].Job)
		stays[i] = canStay(v.Cluster, j, &grants[i]) && free.keep(j)
	}
	no := core.Verdict{Code: core.Defer, Reason: core.WaitingForDevices}
	for i := range grants {
		g := &grants[i]
		j := v.Job(g.Job)
		var seats []core.Seat
		switch {
		case stays[i]:
			seats = j.Seats
		case no.Reason == core.WaitingForDevices:
			seats = firstFit(&free, v.Cluster, v.Cluster.Nodes, j, g)
		}
		if seats != nil {
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
			continue
		}
		no.Job = g.Job
		s.Unseated = append(s.Unseated, no)
		if g.Blocking {
			no.Reason = core.BlockedByEarlier
		}
	}
	return beside(all, s), nil
}

// Tune leaves everything as it is.
func (plain) Tune(context.Context, *core.View, []core.Placement) ([]core.Tuning, error) {
	return nil, nil
}

// firstFit takes the first free devices of the first type with enough of them, visiting nodes in the order given. It
// returns nil, and takes nothing, when there are none.
func firstFit(free *room, c *core.Cluster, nodes []core.Node, j *core.Job, g *core.Grant) []core.Seat {
	for _, t := range runnable(c, j) {
		if g.Accelerator != core.AnyAccelerator && g.Accelerator != t {
			continue
		}
		var seats []core.Seat
		missing := g.Replicas
		for i := range nodes {
			if n := &nodes[i]; n.Accelerator == t && missing > 0 {
				if seat := free.take(j, n.ID, missing); seat.Devices != 0 {
					seats, missing = append(seats, seat), missing-seat.Devices.Count()
				}
			}
		}
		if missing == 0 {
			return seats
		}
		free.release(j, seats)
	}
	return nil
}

// runnable lists the accelerator types that a job can run on.
func runnable(c *core.Cluster, j *core.Job) []core.AcceleratorID {
	var types []core.AcceleratorID
	for t := range c.Accelerators {
		if j.Accepts(c, core.AcceleratorID(t)) && hasMemory(c, j, core.AcceleratorID(t)) {
			types = append(types, core.AcceleratorID(t))
		}
	}
	return types
}

// firsts is the grants of jobs without a group, and the first of each group.
func firsts(grants []core.Grant) []core.Grant {
	var first []core.Grant
	for i := 0; i < len(grants); i += core.GroupOf(grants, i) {
		first = append(first, grants[i])
	}
	return first
}

// beside answers for the others of each group: they are where the first is, or nowhere.
func beside(grants []core.Grant, s core.Seating) core.Seating {
	at := map[core.JobID][]core.Seat{}
	for _, p := range s.Placed {
		at[p.Job] = p.Seats
	}
	for i := 0; i < len(grants); {
		n := core.GroupOf(grants, i)
		for _, g := range grants[i+1 : i+n] {
			if seats, seated := at[grants[i].Job]; seated {
				s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
			} else {
				s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			}
		}
		i += n
	}
	return s
}
