package placement

import (
	"cmp"
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// NewProposed seats a grant where the allocator proposes, for allocators that decide on devices too.
//
// A proposal is followed when its devices are free, of one type that the job can run on, as many as granted, and in one
// seat a node. Otherwise the job keeps the devices it holds, if they suit the grant, or is seated like consolidated; a
// verdict says so when that fails too. A pinned job keeps the devices it holds whatever is proposed. A proposal that differs from what a job holds moves it, but not to devices of a
// type on which an earlier job that could not be seated keeps its turn. O(nodes × nodes taken)
// for a grant without a usable proposal.
func NewProposed() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "proposed",
		Sharing: []core.Sharing{core.TimeSlice},
		Summary: "follows the seating that the allocator proposes",
		Description: "For allocators that decide number and place together. A grant without a legal proposal keeps its devices or is seated like consolidated; a pinned job that runs keeps them anyway. " +
			"O(nodes × nodes taken) for such a grant.",
	}, core.None{}, func(core.None, core.Settings) (core.Placer, error) { return &proposed{}, nil })
}

type proposed struct{ seating.Seater }

func (p *proposed) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	p.Begin(v)
	for i := 0; i < len(grants); {
		group := grants[i : i+core.GroupOf(grants, i)]
		if k := p.stays(v, group); k >= 0 {
			p.Keep(v, &group[k])
			p.Join(v, group, k)
		} else {
			p.Rest = append(p.Rest, i)
		}
		i += len(group)
	}
	for _, i := range p.Rest {
		group := grants[i : i+core.GroupOf(grants, i)]
		g := &group[0]
		if p.follow(v, g) || p.remain(v, g) || p.OnFewestNodes(v, g, seating.Consolidated) {
			p.Join(v, group, 0)
			continue
		}
		for k := range group {
			p.Refuse(v, &group[k], false)
			if len(g.Proposed) > 0 {
				p.Unseated[len(p.Unseated)-1].Message = "the proposed seating cannot be followed"
			}
			p.Close(v, &group[k])
		}
	}
	return p.Seating(), nil
}

// stays takes the devices of a job of a group that is where it belongs, and returns whose they are; -1 for none's. A group goes by what is
// proposed for its first.
func (p *proposed) stays(v *core.View, group []core.Grant) int {
	if len(group) > 1 && len(group[0].Proposed) == 0 {
		return p.OccupyOne(v, group)
	}
	for _, pinned := range [...]bool{true, false} {
		for k := range group {
			g, j := &group[k], v.Jobs[group[k].Job]
			belongs := len(g.Proposed) == 0 && len(group) == 1 || j.Pinned || core.SameSeats(group[0].Proposed, j.Seats)
			if j.Pinned == pinned && belongs && p.Occupy(v, g) {
				return k
			}
		}
	}
	return -1
}

// follow seats a grant on the proposed devices, if they are legal and no earlier job keeps its turn there. That holds for jobs
// that run, too: one that was started elsewhere would otherwise be moved in the next round.
func (p *proposed) follow(v *core.View, g *core.Grant) bool {
	if len(g.Proposed) == 0 || core.Replicas(g.Proposed) != g.Replicas {
		return false
	}
	for _, seat := range g.Proposed {
		if seat.Node < 0 || int(seat.Node) >= len(v.Cluster.Nodes) || seat.Devices == 0 || seat.Devices&p.Ledger.Reserved(seat.Node) != 0 || p.Closed[v.Cluster.Nodes[seat.Node].Accelerator] {
			return false
		}
	}
	if nodeTwice(g.Proposed) || !seating.Within(v, g, g.Proposed) || !p.Ledger.Occupy(g.Proposed) {
		return false
	}
	p.Count(v, g.Proposed, -1)
	p.Placed = append(p.Placed, core.Placement{Job: g.Job, Seats: g.Proposed})
	return true
}

// nodeTwice reports whether two seats are on one node: a job has at most one there, for its nodes are counted by its seats.
func nodeTwice(seats []core.Seat) bool {
	ascending := func(a, b core.Seat) int { return cmp.Compare(a.Node, b.Node) }
	if !slices.IsSortedFunc(seats, ascending) {
		seats = slices.SortedFunc(slices.Values(seats), ascending)
	}
	for i := range seats[1:] {
		if seats[i].Node == seats[i+1].Node {
			return true
		}
	}
	return false
}

// remain leaves a job where it is, when its proposal cannot be followed.
func (p *proposed) remain(v *core.View, g *core.Grant) bool {
	if !p.Occupy(v, g) {
		return false
	}
	p.Keep(v, g)
	return true
}
