package core

import "slices"

// DeviceKeeper is implemented by a backend on which a job may go on with devices that it keeps while it gets or gives others. Where KeepsDevices is true, a job
// that stays on a node has as many as it can of the devices that it holds there already: which ones a placer names on a node makes no difference to it, as all of
// them are of one type. What a placer says of nodes, and of how many devices of each, stays. Absent, seats are what the placer says.
type DeviceKeeper interface {
	// KeepsDevices reports whether a job that stays on a node keeps devices that it holds there.
	KeepsDevices() bool
}

// share is what a placement has of a node.
type share struct {
	placement, seat int
	held            DeviceSet // of the node, by the job
}

// keepDevices lets jobs that stay on a node keep their devices there. Seats of the placer are copied where they change. It leaves a node alone on which the
// placer's answer makes no sense. O(placements + seats log seats).
func (s *state) keepDevices(placed []Placement) {
	shares, moves, valid := s.sharesOf(placed)
	if !valid {
		return // it is the placer's fault, which the check tells
	}
	copied := map[int]bool{}
	for node, list := range shares { // each by itself: their order makes no difference
		if !moves[node] || int(node) >= len(s.view.Cluster.Nodes) || node < 0 {
			continue
		}
		sets := s.settle(s.view.Cluster.Nodes[node].Usable(), s.view.ReservedOn(node), list, placed)
		for i, set := range sets {
			p := &placed[list[i].placement]
			if !copied[list[i].placement] {
				p.Seats, copied[list[i].placement] = slices.Clone(p.Seats), true
			}
			p.Seats[list[i].seat].Devices = set
		}
	}
	for i := range copied {
		p := &placed[i]
		if j := s.view.Jobs[p.Job]; j.State == Running && SameDevices(j.Seats, p.Seats) {
			p.Seats = j.Seats // it stays, in its order
		}
	}
}

// sharesOf lists what placements have of each node, and where a job that stays gets other devices. Placements of jobs that do not exist are not valid.
func (s *state) sharesOf(placed []Placement) (shares map[NodeID][]share, moves map[NodeID]bool, valid bool) {
	shares, moves = map[NodeID][]share{}, map[NodeID]bool{}
	for i := range placed {
		if placed[i].Job < 0 || int(placed[i].Job) >= len(s.view.Jobs) || s.view.Jobs[placed[i].Job] == nil {
			return nil, nil, false
		}
		j := s.view.Jobs[placed[i].Job]
		for k, seat := range placed[i].Seats {
			at := share{placement: i, seat: k, held: heldOn(j, seat.Node)}
			shares[seat.Node] = append(shares[seat.Node], at)
			moves[seat.Node] = moves[seat.Node] || at.held != 0 && at.held != seat.Devices
		}
	}
	return shares, moves, true
}

// settle divides the usable devices of a node anew among its shares, in their order, those that are reserved last; nil when they were not divided before.
func (s *state) settle(usable, reserved DeviceSet, list []share, placed []Placement) []DeviceSet {
	free := usable
	for _, at := range list {
		d := placed[at.placement].Seats[at.seat].Devices
		if d == 0 || d&^free != 0 {
			return nil
		}
		free &^= d
	}
	free = usable
	sets := make([]DeviceSet, len(list))
	for i, at := range list {
		sets[i] = (at.held & free).Lowest(placed[at.placement].Seats[at.seat].Devices.Count())
		free &^= sets[i]
	}
	for i, at := range list {
		n := placed[at.placement].Seats[at.seat].Devices.Count()
		sets[i] |= (free &^ reserved).Lowest(n - sets[i].Count())
		sets[i] |= (free &^ sets[i]).Lowest(n - sets[i].Count())
		free &^= sets[i]
	}
	return sets
}

// heldOn is what a running job holds of a node.
func heldOn(j *Job, node NodeID) (d DeviceSet) {
	if j.State == Running {
		d = devicesOn(j.Seats, node)
	}
	return d
}
