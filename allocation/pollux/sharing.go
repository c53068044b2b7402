package pollux

import "github.com/quartet-sched/quartet/core"

// sharing is who shares devices with whom, where jobs may. The search counts whole devices, so jobs that share some are left out of it: they stay where they
// are, each of their devices counted once, until they share none. All of it is empty where devices are exclusive.
type sharing struct {
	shared []core.DeviceSet // by node: devices that several jobs hold
	stayed []core.DeviceSet // by node: devices of the jobs that stay
	owned  []core.DeviceSet // by node: those, and devices of the jobs that are searched for so far
}

// observe notes which devices several jobs hold.
func (s *sharing) observe(c *core.Cluster, candidates []*core.Candidate) {
	if s.shared = s.shared[:0]; c.Sharing == core.Exclusive {
		return
	}
	s.shared, s.owned = cleared(s.shared, len(c.Nodes)), cleared(s.owned, len(c.Nodes))
	for _, candidate := range candidates {
		for _, seat := range candidate.Seats {
			s.shared[seat.Node] |= s.owned[seat.Node] & seat.Devices
			s.owned[seat.Node] |= seat.Devices
		}
	}
}

// possible reports whether jobs may share devices.
func (s *sharing) possible() bool { return len(s.shared) > 0 }

// begin notes which devices the jobs that stay hold.
func (s *sharing) begin(stays func(*core.Candidate) bool, candidates []*core.Candidate) {
	s.stayed, s.owned = cleared(s.stayed, len(s.shared)), cleared(s.owned, len(s.shared))
	for _, c := range candidates {
		if stays(c) {
			for _, seat := range c.Seats {
				s.stayed[seat.Node] |= seat.Devices
			}
		}
	}
	copy(s.owned, s.stayed)
}

// own is what is left of seats without devices of jobs that stay or were asked for before: no device is counted for two jobs.
func (s *sharing) own(seats []core.Seat) []core.Seat {
	left := make([]core.Seat, 0, len(seats))
	for _, seat := range seats {
		if seat.Devices &^= s.owned[seat.Node]; seat.Devices != 0 {
			s.owned[seat.Node] |= seat.Devices
			left = append(left, seat)
		}
	}
	return left
}

// mustStay reports whether a job is left where it is: it is pinned, or shares devices that are optimised and can go on as it is.
func (p *allocator) mustStay(cluster *core.Cluster, c *core.Candidate) bool {
	if c.MustStay(cluster, c.Response) {
		return true
	}
	if !p.sharing.possible() || c.Held < c.Response.MinReplicas || c.Held > c.Response.MaxReplicas {
		return false
	}
	shares := false
	for _, s := range c.Seats {
		n := &cluster.Nodes[s.Node]
		if s.Devices&^n.Usable() != 0 || !p.optimises(n.Accelerator) {
			return false
		}
		shares = shares || s.Devices&p.sharing.shared[s.Node] != 0
	}
	return shares
}

// occupy takes what is free of the seats of a job that stays.
func (p *allocator) occupy(seats []core.Seat) {
	if !p.sharing.possible() {
		p.ledger.Occupy(seats)
		return
	}
	for _, s := range seats {
		s.Devices &= p.ledger.FreeDevices(s.Node)
		p.ledger.Occupy([]core.Seat{s})
	}
}

// cleared is a slice of n empty sets, in the memory of another.
func cleared(sets []core.DeviceSet, n int) []core.DeviceSet {
	return append(sets[:0], make([]core.DeviceSet, n)...)
}
