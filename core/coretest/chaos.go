package coretest

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// chaos is every stage at once. It answers anything that the contract allows, and in a quiet round repeats itself, so
// that whatever changes then is the doing of the stage under test.
type chaos struct {
	t        *T
	quiet    bool
	verdicts []core.Verdict
	grants   []core.Grant
	refused  map[core.JobID]int // replicas that the round before did not seat
	refusing map[core.JobID]int // those of this round, however often it is asked
	round    int                // that refusing is of
	free     room
}

// Standing is for ever: time passes in quiet rounds only.
func (c *chaos) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

// Respond draws rigid and elastic ranges, with and without curves, which need not rise.
func (c *chaos) Respond(_ context.Context, _ *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses := make([]core.Response, 0, len(jobs))
	for _, j := range jobs {
		r := core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: unknown}
		if intRange(0, 3).Draw(c.t, "fix") == 0 {
			r.MinReplicas, r.MaxReplicas = j.Requested, j.Requested
		}
		for range intRange(0, 2).Draw(c.t, "curves") {
			r.Curves = append(r.Curves, c.drawCurve(r.MaxReplicas))
		}
		if len(r.Curves) > 0 && anyBool().Draw(c.t, "work known") {
			r.RemainingWork = sampledFrom([]float64{0, 3.5, 1e6}).Draw(c.t, "remaining")
		}
		responses = append(responses, r)
	}
	return responses, nil
}

func (c *chaos) drawCurve(replicas int) core.Curve {
	rate := sampledFrom([]float64{0, 0.5, 1, 1, 3, 700})
	var curve core.Curve
	rising := anyBool().Draw(c.t, "rising")
	for r := range replicas {
		if rising {
			curve.OneNode = append(curve.OneNode, float64(r+1))
			curve.ManyNodes = append(curve.ManyNodes, 0.7*float64(r+1))
			continue
		}
		curve.OneNode = append(curve.OneNode, rate.Draw(c.t, "rate on one node"))
		curve.ManyNodes = append(curve.ManyNodes, rate.Draw(c.t, "rate on many nodes"))
	}
	return curve
}

// Admit draws who is admitted, deferred and rejected.
func (c *chaos) Admit(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	if c.quiet {
		isWaiting := func(v core.Verdict) bool {
			return slices.ContainsFunc(waiting, func(j *core.Job) bool { return j.ID == v.Job })
		}
		c.verdicts = slices.DeleteFunc(c.verdicts, func(v core.Verdict) bool { return !isWaiting(v) })
		return c.verdicts, nil
	}
	c.verdicts = nil
	for _, j := range waiting {
		v := core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.PolicyDecision}
		switch intRange(0, 7).Draw(c.t, "admission") {
		case 0:
			v.Code = core.Reject
		case 1, 2:
		default:
			continue
		}
		c.verdicts = append(c.verdicts, v)
	}
	return c.verdicts, nil
}

// reviewingChaos also reviews jobs that report.
type reviewingChaos struct{ *chaos }

// Review draws who goes on, ends, and is held back.
func (c reviewingChaos) Review(_ context.Context, _ *core.View, reported []*core.Job) ([]core.Verdict, error) {
	if c.quiet {
		return nil, nil
	}
	var verdicts []core.Verdict
	for _, j := range reported {
		switch intRange(0, 3).Draw(c.t, "review") {
		case 0:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Pruned})
		case 1:
			if !j.Pinned {
				verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults})
			}
		}
	}
	return verdicts, nil
}

// Allocate draws grants for some candidates in any order, beyond the capacity, with proposals that nobody may be able to follow.
func (c *chaos) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if c.quiet {
		isCandidate := func(g core.Grant) bool {
			return slices.ContainsFunc(candidates, func(c core.Candidate) bool { return c.ID == g.Job })
		}
		c.grants = slices.DeleteFunc(c.grants, func(g core.Grant) bool { return !isCandidate(g) })
		return c.grants, nil
	}
	c.grants = nil
	for _, candidate := range permutation(candidates).Draw(c.t, "order") {
		if candidate.MustStay(v.Cluster, candidate.Response) {
			c.grants = append(c.grants, core.Grant{Job: candidate.ID, Accelerator: core.AnyAccelerator, Replicas: candidate.Held})
			continue
		}
		if intRange(0, 4).Draw(c.t, "no grant") == 0 {
			continue
		}
		c.grants = append(c.grants, c.drawGrant(v, candidate))
	}
	if v.Cluster.Sharing == core.TimeSlice {
		c.group(v, candidates)
	}
	return c.grants, nil
}

func (c *chaos) drawGrant(v *core.View, candidate core.Candidate) core.Grant {
	t, r := c.t, candidate.Response
	g := core.Grant{Job: candidate.ID, Accelerator: core.AnyAccelerator, Replicas: intRange(r.MinReplicas, r.MaxReplicas).Draw(t, "replicas")}
	if held := candidate.Held; held >= r.MinReplicas && held <= r.MaxReplicas && anyBool().Draw(t, "keep count") {
		g.Replicas = held
	}
	if types := runnable(v.Cluster, candidate.Job); len(types) > 0 && anyBool().Draw(t, "typed") {
		g.Accelerator = sampledFrom(types).Draw(t, "granted type")
	}
	g.Blocking = intRange(0, 7).Draw(t, "blocking") == 0
	switch intRange(0, 7).Draw(t, "propose") {
	case 0:
		g.Proposed = drawScattered(t, v.Cluster, g.Replicas)
	case 1, 2: // each for itself, so that two may want the same device
		c.free.reset(v.Cluster)
		nodes := permutation(v.Cluster.Nodes).Draw(t, "proposed order")
		g.Proposed = firstFit(&c.free, v.Cluster, nodes, candidate.Job, &g)
	}
	return g
}

// drawScattered draws that many devices of any nodes, whatever their health and type, in any order.
func drawScattered(t *T, c *core.Cluster, replicas int) []core.Seat {
	var devices []core.Seat
	for i := range c.Nodes {
		for d := range c.Nodes[i].Devices {
			devices = append(devices, core.Seat{Node: c.Nodes[i].ID, Devices: 1 << d})
		}
	}
	if len(devices) < replicas {
		return nil
	}
	return permutation(devices).Draw(t, "proposed devices")[:replicas]
}

// Place draws legal seats: jobs stay, move, are refused or evicted. In a quiet round they stay, what was refused is
// refused again, and only what was not asked for before is new. What a blocking grant keeps from starting is refused, too.
func (c *chaos) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	if v.Cluster.Sharing == core.TimeSlice && !c.free.beside {
		return c.placeGroups(v, grants), nil
	}
	c.free.reset(v.Cluster)
	var s core.Seating
	kept := make(map[core.JobID]bool)
	for i := range grants {
		g := &grants[i]
		if j := v.Job(g.Job); canStay(v.Cluster, j, g) && (c.quiet || j.Pinned || intRange(0, 4).Draw(c.t, "move") > 0) {
			kept[g.Job] = c.free.keep(j)
		}
	}
	refused, turns := c.refusals(v), make(turns, len(v.Cluster.Accelerators))
	for i := range grants {
		g := &grants[i]
		j := v.Job(g.Job)
		if kept[g.Job] {
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: j.Seats})
			continue
		}
		refuse := c.refused[g.Job] == g.Replicas
		if !c.quiet {
			refuse = intRange(0, 7).Draw(c.t, "refuse") == 0
		}
		if !refuse {
			seats := c.seat(v.Cluster, j, g, turns)
			if seats != nil && c.free.slices && core.SameSeats(seats, j.Seats) {
				c.free.release(j, seats) // it would keep its slices, which others may have by now
				seats = nil
			}
			if seats != nil {
				s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
				continue
			}
		}
		refused[g.Job] = g.Replicas
		turns.refuse(v.Cluster, j, g)
		s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.Fragmented})
	}
	return s, nil
}

// refusals are those of the round so far.
func (c *chaos) refusals(v *core.View) map[core.JobID]int {
	if c.round != v.Round || c.refusing == nil {
		c.refused, c.refusing, c.round = c.refusing, map[core.JobID]int{}, v.Round
	}
	return c.refusing
}

// seat follows a proposal that can be followed, and otherwise takes what is free, in any order unless it is quiet. A job that does
// not run yet waits where an earlier one keeps its turn.
func (c *chaos) seat(cluster *core.Cluster, j *core.Job, g *core.Grant, kept turns) []core.Seat {
	waits := func(node core.NodeID) bool { return j.State != core.Running && kept[cluster.Nodes[node].Accelerator] }
	waitsAt := func(seat core.Seat) bool { return waits(seat.Node) }
	if proposalFault(cluster, j, g) == "" && !slices.ContainsFunc(g.Proposed, waitsAt) && c.free.occupy(j, g.Proposed) {
		return slices.Clone(g.Proposed)
	}
	nodes := cluster.Nodes
	if !c.quiet {
		nodes = permutation(nodes).Draw(c.t, "node order")
	}
	open := slices.DeleteFunc(slices.Clone(nodes), func(n core.Node) bool { return waits(n.ID) })
	return firstFit(&c.free, cluster, open, j, g)
}

// Tune draws batch settings for some placements.
func (c *chaos) Tune(_ context.Context, _ *core.View, placements []core.Placement) ([]core.Tuning, error) {
	var tunings []core.Tuning
	for _, p := range placements {
		if !c.quiet && intRange(0, 3).Draw(c.t, "tune") == 0 {
			tunings = append(tunings, core.Tuning{Job: p.Job, BatchPerDevice: intRange(1, 64).Draw(c.t, "batch"), LearningRateFactor: 1})
		}
	}
	return tunings, nil
}

// ReviewBySteps ends those of the jobs whose loss was reported beyond step 4, and holds back those beyond step 2: a reviewer that two programs can be.
func ReviewBySteps(reported []*core.Job) (verdicts []core.Verdict) {
	for _, j := range reported {
		switch p, told := j.Series("loss").Latest(); {
		case !told:
		case p.Step > 4:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Converged})
		case p.Step > 2:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults})
		}
	}
	return verdicts
}
