package sia

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// seats gives the jobs of a round their devices.
type seats struct {
	ledger core.Ledger
	taken  []core.DeviceSet // by node: devices of jobs that stay and were not seated yet
	order  []pick
	nodes  []core.NodeID
	all    []core.Seat
}

// pick is a job with the configuration chosen for it.
type pick struct {
	job         *core.Candidate
	accelerator core.AcceleratorID
	devices     int
	stays       bool // the configuration is that it has
}

// seat turns the choice into grants with seats, larger jobs first. A job that stays keeps its devices if no larger one
// had to take them.
func (p *allocator) seat(v *core.View, candidates []core.Candidate, picks []int) []core.Grant {
	s := &p.seats
	s.ledger.ResetTo(v)
	s.taken = append(s.taken[:0], make([]core.DeviceSet, len(v.Cluster.Nodes))...)
	s.order, s.all, p.grants = s.order[:0], s.all[:0], p.grants[:0]
	for i, choice := range picks {
		c := &candidates[i]
		if c.MustStay(v.Cluster, c.Response) {
			s.ledger.Occupy(c.Seats)
			p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Held, Proposed: c.Seats})
		}
		if choice < 0 {
			continue
		}
		chosen := p.menus[i].Choices[choice]
		k := pick{job: c, accelerator: core.AcceleratorID(chosen.Type), devices: chosen.Devices}
		k.stays = c.Held == k.devices && typeOf(v.Cluster, c.Seats) == k.accelerator && p.usable(v.Cluster, c.Seats)
		if k.stays {
			s.mark(c.Seats, true)
		}
		s.order = append(s.order, k)
	}
	slices.SortStableFunc(s.order, func(a, b pick) int {
		return cmp.Or(cmp.Compare(b.devices, a.devices), cmp.Compare(bit(b.stays), bit(a.stays)))
	})
	for i := range s.order {
		k := &s.order[i]
		if k.stays {
			s.mark(k.job.Seats, false)
		}
		proposed := k.job.Seats
		if !k.stays || !s.ledger.Occupy(k.job.Seats) {
			proposed = s.place(v.Cluster, k)
		}
		p.grants = append(p.grants, core.Grant{Job: k.job.ID, Accelerator: k.accelerator, Replicas: k.devices, Proposed: proposed})
	}
	return p.grants
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mark notes devices as those of a job that stays, or no longer.
func (s *seats) mark(seats []core.Seat, stays bool) {
	for _, seat := range seats {
		if stays {
			s.taken[seat.Node] |= seat.Devices
		} else {
			s.taken[seat.Node] &^= seat.Devices
		}
	}
}

// place finds devices for a job, of which there are enough: whole nodes as far as it fills them, then the node that the
// rest fits best, in either case those first where it is least in the way of jobs that stay; then whatever is free.
func (s *seats) place(c *core.Cluster, k *pick) []core.Seat {
	first, left := len(s.all), k.devices
	s.nodes = s.nodes[:0]
	for i := range c.Nodes {
		if n := core.NodeID(i); c.Nodes[i].Accelerator == k.accelerator && s.ledger.Free(n) > 0 {
			s.nodes = append(s.nodes, n)
		}
	}
	slices.SortStableFunc(s.nodes, func(a, b core.NodeID) int { return cmp.Compare(s.taken[a].Count(), s.taken[b].Count()) })
	for _, n := range s.nodes {
		if free := s.ledger.FreeDevices(n); free == c.Nodes[n].Usable() && free.Count() <= left {
			left -= s.take(n, left)
		}
	}
	for left > 0 {
		n, found := s.tightest(left)
		if !found {
			n = slices.MaxFunc(s.nodes, func(a, b core.NodeID) int { return cmp.Compare(s.ledger.Free(a), s.ledger.Free(b)) })
		}
		left -= s.take(n, left)
	}
	seats := s.all[first:len(s.all):len(s.all)]
	slices.SortFunc(seats, func(a, b core.Seat) int { return cmp.Compare(a.Node, b.Node) })
	return seats
}

// tightest is the node with room for so many devices where fewest of them are those of jobs that stay, and then fewest
// idle; false if no node has the room.
func (s *seats) tightest(wanted int) (best core.NodeID, found bool) {
	var least [2]int
	for _, n := range s.nodes {
		free := s.ledger.FreeDevices(n)
		idle := (free &^ s.taken[n]).Count()
		if cost := [2]int{max(wanted-idle, 0), idle}; free.Count() >= wanted && (!found || slices.Compare(cost[:], least[:]) < 0) {
			best, least, found = n, cost, true
		}
	}
	return best, found
}

// take takes up to n devices of a node, those of jobs that stay last, and returns how many.
func (s *seats) take(n core.NodeID, wanted int) int {
	free := s.ledger.FreeDevices(n)
	devices := (free &^ s.taken[n]).Lowest(wanted)
	devices |= (free & s.taken[n]).Lowest(wanted - devices.Count())
	seat := core.Seat{Node: n, Devices: devices}
	s.ledger.Occupy([]core.Seat{seat})
	s.all = append(s.all, seat)
	return devices.Count()
}
