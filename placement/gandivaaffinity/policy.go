package gandivaaffinity

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// Config configures New.
type Config struct {
	// Migrate moves a running job from several nodes to one as soon as one has room.
	Migrate bool `config:"migrate" doc:"move a running job from several nodes to one as soon as one has room"`
	// Defragment moves running jobs out of the way of one that no node has room for.
	Defragment bool `config:"defragment" doc:"where no node has room for a job, and all together have, move those of the node with most free devices to others"`
	// Spread seats a job on several nodes rather than let it wait for one.
	Spread bool `config:"spread" doc:"seat a job on several nodes rather than have it wait for one"`
}

// New seats jobs on nodes with jobs of their size, and moves running ones for the sake of others.
//
// The affinity of a node is the size, in replicas, of the jobs on it. A job that fits on one node goes, of those with room for it, to one of its own affinity, or else
// to an idle one, or else to any other; of several to that with the least demand for each device, and of these to the lowest. A job that ran before goes back to the
// devices that it had, if they are free; one that gets more or fewer devices stays on its node, if that has room. A job that fits on no node is seated like consolidated.
//
// Migration: each round, running jobs on several nodes that would fit on one are moved there, by the same rules, once there is one with room. Defragmentation: for a job
// that finds no node with room, the node with most free devices is cleared of as many jobs, small ones first, as other nodes have room for; the next one is tried where they have not.
// Only after that it is spread. Pinned jobs are not moved.
//
// Source: Xiao et al., Gandiva, OSDI'18, from descriptions; there a node without a job keeps no affinity either, and when to defragment is not published. Who shares devices is
// the allocation's matter. O(nodes) for each new seating, O(nodes × jobs) for one that defragments.
func New() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "gandiva_affinity",
		Sharing: []core.Sharing{core.TimeSlice},
		Summary: "on nodes with jobs of the same size; moves running jobs to one node, and out of the way",
		Description: "Of nodes with room, one whose jobs are of the same size, then an idle one, then any, the one with the least demand. Jobs that return get the devices they had. " +
			"Running jobs are moved from several nodes to one, and out of the way of a job that no node has room for. O(nodes) for each new seating, O(nodes × jobs) for one that moves others.",
		Source: "Xiao et al., Gandiva, OSDI'18",
	}, Config{Migrate: true, Defragment: true, Spread: true}, func(c Config, _ core.Settings) (core.Placer, error) {
		return &gandivaAffinity{Config: c, last: map[core.JobID][]core.Seat{}}, nil
	})
}

type gandivaAffinity struct {
	seating.Seater
	Config
	last      map[core.JobID][]core.Seat // what jobs were seated on last, other than where they stayed
	residents []resident
	hosts     []host // by node
	moves     []move // scratch: of a defragmentation
	order     []int32
	moved     bool // a job has other seats than before this round
}

// resident is a group of grants that is seated.
type resident struct {
	grants   []core.Grant
	of       int // which of them has these seats; the others join it
	seats    []core.Seat
	replicas int
	stays    bool // where it was
	movable  bool // runs, and nobody is pinned
}

// host is what is on a node.
type host struct {
	demand   int // replicas of all jobs, those that share devices counted each
	affinity int // the size of its jobs: 0 for none, several for jobs of several sizes
}

const several = -1

// move is where a resident was.
type move struct {
	resident int32
	seats    []core.Seat
	stays    bool
}

func (p *gandivaAffinity) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	p.Begin(v)
	p.residents, p.moved = p.residents[:0], false
	for i := 0; i < len(grants); {
		group := grants[i : i+core.GroupOf(grants, i)]
		if k := p.OccupyOne(v, group); k >= 0 {
			p.residents = append(p.residents, resident{group, k, v.Jobs[group[k].Job].Seats, group[k].Replicas, true, !pinned(v, group)})
		} else {
			p.Rest = append(p.Rest, i)
		}
		i += len(group)
	}
	if len(p.Rest) > 0 || p.Migrate && slices.ContainsFunc(p.residents, func(r resident) bool { return len(r.seats) > 1 }) {
		p.arrange(v, grants)
	}
	for i := range p.residents {
		r := &p.residents[i]
		p.Placed = append(p.Placed, core.Placement{Job: r.grants[r.of].Job, Seats: r.seats})
		if !r.stays {
			p.moved = true
			p.last[r.grants[r.of].Job] = slices.Clone(r.seats)
		}
		joined := len(p.Placed)
		p.Join(v, r.grants, r.of)
		for _, with := range p.Placed[joined:] {
			if j := v.Jobs[with.Job]; !core.SameSeats(j.Seats, with.Seats) {
				p.moved = true
				p.last[with.Job] = slices.Clone(with.Seats)
			}
		}
	}
	p.forget(v)
	return p.Seating(), nil
}

// Standing is for ever, as that of every seater, unless somebody has other seats than before: then the next round may find better ones, or room for others.
func (p *gandivaAffinity) Standing() core.Standing {
	s := p.Seater.Standing()
	if p.moved {
		s.UntilSeconds = 0
	}
	return s
}

func pinned(v *core.View, group []core.Grant) bool {
	return slices.ContainsFunc(group, func(g core.Grant) bool { return v.Jobs[g.Job].Pinned })
}

// forget drops what is known of jobs that ended.
func (p *gandivaAffinity) forget(v *core.View) {
	if len(p.last) <= len(v.Active) {
		return
	}
	for id := range p.last {
		if v.Job(id) == nil {
			delete(p.last, id)
		}
	}
}

// arrange seats those who do not stay: first those that get other devices of their node, and last those that need new ones, after
// those that can be moved to one node.
func (p *gandivaAffinity) arrange(v *core.View, grants []core.Grant) {
	p.survey(v)
	left := p.Rest[:0]
	for _, i := range p.Rest {
		group := grants[i : i+core.GroupOf(grants, i)]
		if k, seats := p.resize(v, group); k >= 0 {
			p.settle(v, group, k, seats)
		} else {
			left = append(left, i)
		}
	}
	p.Rest = left
	if p.Migrate {
		p.migrate(v)
	}
	for _, i := range p.Rest {
		group := grants[i : i+core.GroupOf(grants, i)]
		if k, seats := p.seatAnew(v, group); k >= 0 {
			p.settle(v, group, k, seats)
			continue
		}
		for k := range group {
			p.Refuse(v, &group[k], false)
			p.Close(v, &group[k])
		}
	}
}

// survey counts who is on which node.
func (p *gandivaAffinity) survey(v *core.View) {
	p.hosts = append(p.hosts[:0], make([]host, len(v.Cluster.Nodes))...)
	for i := range p.residents {
		p.lodge(&p.residents[i])
	}
}

// lodge counts a resident in.
func (p *gandivaAffinity) lodge(r *resident) {
	for _, s := range r.seats {
		h := &p.hosts[s.Node]
		h.demand += len(r.grants) * s.Devices.Count()
		if h.affinity != 0 && h.affinity != r.replicas {
			h.affinity = several
		} else {
			h.affinity = r.replicas
		}
	}
}

// settle makes a group a resident on seats that were taken for it.
func (p *gandivaAffinity) settle(v *core.View, group []core.Grant, of int, seats []core.Seat) {
	p.Count(v, seats, -1)
	p.residents = append(p.residents, resident{grants: group, of: of, seats: seats, replicas: group[of].Replicas})
	p.lodge(&p.residents[len(p.residents)-1])
}

// resize takes more or fewer devices of its node for a job that runs on one, or none if there is no room. It returns whose they are, -1 for none's.
func (p *gandivaAffinity) resize(v *core.View, group []core.Grant) (int, []core.Seat) {
	for k := range group {
		g, j := &group[k], v.Jobs[group[k].Job]
		if len(j.Seats) != 1 || j.Held == g.Replicas || !seating.Within(v, g, j.Seats) {
			continue
		}
		node := j.Seats[0].Node
		free := p.Ledger.FreeDevices(node)
		if free.Count() < g.Replicas {
			continue
		}
		devices := (j.Seats[0].Devices & free).Lowest(g.Replicas)
		devices |= (free &^ devices).Lowest(g.Replicas - devices.Count())
		return k, p.occupySeats([]core.Seat{{Node: node, Devices: devices}})
	}
	return -1, nil
}

// occupySeats takes devices that are free.
func (p *gandivaAffinity) occupySeats(seats []core.Seat) []core.Seat {
	p.Ledger.Occupy(seats)
	return seats
}

// seatAnew takes devices for a group, and returns of which job they are, -1 for none's.
func (p *gandivaAffinity) seatAnew(v *core.View, group []core.Grant) (int, []core.Seat) {
	g := &group[0]
	if k, seats := p.comeBack(v, group, true); k >= 0 {
		return k, seats
	}
	if node := p.best(v, group, g.Replicas, -1); node >= 0 {
		return 0, []core.Seat{p.Ledger.Take(node, g.Replicas)}
	}
	if p.Defragment {
		if node := p.clear(v, group, g.Replicas); node >= 0 {
			return 0, []core.Seat{p.Ledger.Take(node, g.Replicas)}
		}
	}
	if !p.Spread && p.fitsOne(v, g) {
		return -1, nil
	}
	if k, seats := p.comeBack(v, group, false); k >= 0 {
		return k, seats
	}
	if !p.OnFewestNodes(v, g, seating.Consolidated) {
		return -1, nil
	}
	seats := p.Placed[len(p.Placed)-1].Seats
	p.Placed = p.Placed[:len(p.Placed)-1]
	p.Count(v, seats, +1) // settle counts them
	return 0, seats
}

// gone reports whether seats are of a node that the cluster does not have, as after a restore.
func gone(v *core.View, seats []core.Seat) bool {
	return slices.ContainsFunc(seats, func(s core.Seat) bool { return s.Node < 0 || int(s.Node) >= len(v.Cluster.Nodes) })
}

// comeBack takes what a job of a group had before, on one node or on several, if it is free.
func (p *gandivaAffinity) comeBack(v *core.View, group []core.Grant, oneNode bool) (int, []core.Seat) {
	for k := range group {
		g, seats := &group[k], p.last[group[k].Job]
		if len(seats) == 0 || (len(seats) == 1) != oneNode || core.Replicas(seats) != g.Replicas || gone(v, seats) || !seating.Within(v, g, seats) {
			continue
		}
		closed := slices.ContainsFunc(seats, func(s core.Seat) bool { return !p.Open(v, g, v.Cluster.Nodes[s.Node].Accelerator) })
		reserved := slices.ContainsFunc(seats, func(s core.Seat) bool { return s.Devices&p.Ledger.Reserved(s.Node) != 0 })
		if !closed && !reserved && p.Ledger.Occupy(seats) {
			return k, seats
		}
	}
	return -1, nil
}

// fitsOne reports whether a node that a grant could use would have room for it, if it were idle.
func (p *gandivaAffinity) fitsOne(v *core.View, g *core.Grant) bool {
	return slices.ContainsFunc(v.Cluster.Nodes, func(n core.Node) bool {
		return n.Usable().Count() >= g.Replicas && seating.Eligible(v, v.Jobs[g.Job], g, n.Accelerator)
	})
}

// best is the node with room for a group, other than one; -1 for none.
func (p *gandivaAffinity) best(v *core.View, group []core.Grant, replicas int, other core.NodeID) core.NodeID {
	best, rank := core.NodeID(-1), math.MaxInt
	for i := range v.Cluster.Nodes {
		n, h := &v.Cluster.Nodes[i], &p.hosts[i]
		if n.ID == other || p.Ledger.Free(n.ID) < replicas || !p.opens(v, group, n.Accelerator) {
			continue
		}
		r := 2
		switch h.affinity {
		case replicas:
			r = 0
		case 0:
			r = 1
		}
		if best < 0 || r < rank || r == rank && h.demand*v.Cluster.Nodes[best].Devices < p.hosts[best].demand*n.Devices {
			best, rank = n.ID, r
		}
	}
	return best
}

// opens reports whether a group may have new seats on a type.
func (p *gandivaAffinity) opens(v *core.View, group []core.Grant, t core.AcceleratorID) bool {
	for k := range group {
		if !p.Open(v, &group[k], t) {
			return false
		}
	}
	return true
}

// migrate moves residents that are on several nodes to one.
func (p *gandivaAffinity) migrate(v *core.View) {
	for i := range p.residents {
		r := &p.residents[i]
		if !r.movable || len(r.seats) == 1 {
			continue
		}
		before := move{int32(i), r.seats, r.stays}
		p.vacateSeats(v, r)
		if node := p.best(v, r.grants, r.replicas, -1); node >= 0 {
			p.moveTo(v, r, []core.Seat{p.Ledger.Take(node, r.replicas)})
			p.moved = true
			continue
		}
		p.undo(v, before)
	}
}

// vacateSeats takes a resident off its seats.
func (p *gandivaAffinity) vacateSeats(v *core.View, r *resident) {
	p.Ledger.Release(r.seats)
	p.Count(v, r.seats, +1)
	r.seats = nil
	p.survey(v)
}

// moveTo puts a resident without seats on some that were taken for it.
func (p *gandivaAffinity) moveTo(v *core.View, r *resident, seats []core.Seat) {
	p.Count(v, seats, -1)
	r.seats, r.stays = seats, false
	p.lodge(r)
}

// undo puts a resident without seats back.
func (p *gandivaAffinity) undo(v *core.View, m move) {
	r := &p.residents[m.resident]
	p.moveTo(v, r, p.occupySeats(m.seats))
	r.stays = m.stays
}

// clear moves residents off a node until it has room for a group, and returns the node; -1, and everybody is where he was, if there is none.
func (p *gandivaAffinity) clear(v *core.View, group []core.Grant, replicas int) core.NodeID {
	p.order = p.order[:0]
	free := 0
	for i := range v.Cluster.Nodes {
		if n := &v.Cluster.Nodes[i]; p.opens(v, group, n.Accelerator) {
			free += p.Ledger.Free(n.ID)
			if n.Usable().Count() >= replicas {
				p.order = append(p.order, int32(i))
			}
		}
	}
	if free < replicas {
		return -1
	}
	slices.SortStableFunc(p.order, func(a, b int32) int { return p.Ledger.Free(core.NodeID(b)) - p.Ledger.Free(core.NodeID(a)) })
	for _, i := range p.order {
		if p.clearNode(v, core.NodeID(i), replicas) {
			p.moved = true
			return core.NodeID(i)
		}
	}
	return -1
}

// clearNode moves the smallest residents of a node elsewhere until so many devices are free. It reports false, and moves nobody, if that cannot be.
func (p *gandivaAffinity) clearNode(v *core.View, node core.NodeID, replicas int) bool {
	p.moves = p.moves[:0]
	for p.Ledger.Free(node) < replicas {
		smallest := -1
		for i := range p.residents {
			r := &p.residents[i]
			if r.movable && r.stays && len(r.seats) == 1 && r.seats[0].Node == node && (smallest < 0 || r.replicas < p.residents[smallest].replicas) {
				smallest = i
			}
		}
		target := core.NodeID(-1)
		if smallest >= 0 {
			target = p.best(v, p.residents[smallest].grants, p.residents[smallest].replicas, node)
		}
		if target < 0 {
			for len(p.moves) > 0 {
				m := p.moves[len(p.moves)-1]
				p.moves = p.moves[:len(p.moves)-1]
				p.vacateSeats(v, &p.residents[m.resident])
				p.undo(v, m)
			}
			return false
		}
		r := &p.residents[smallest]
		p.moves = append(p.moves, move{int32(smallest), r.seats, r.stays})
		p.vacateSeats(v, r)
		p.moveTo(v, r, []core.Seat{p.Ledger.Take(target, r.replicas)})
	}
	return true
}
