package cells

import (
	"math/bits"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Lodge notes that a guest uses devices. Nobody else does. A guest that cannot be sent away keeps all tenants from them; see Stay.
func (v *Clusters) Lodge(seats []core.Seat) { v.lodge(seats, true) }

// Depart notes that a guest left devices.
func (v *Clusters) Depart(seats []core.Seat) { v.lodge(seats, false) }

func (v *Clusters) lodge(seats []core.Seat, used bool) {
	for _, seat := range seats {
		k := &v.chains[v.nodes[seat.Node].Accelerator]
		k.each(seat, func(d ID) { k.lodge(d, used) })
	}
}

// Stay says whether a guest's devices are kept from all tenants.
func (v *Clusters) Stay(seats []core.Seat, stays bool) {
	for _, seat := range seats {
		k := &v.chains[v.nodes[seat.Node].Accelerator]
		k.each(seat, func(d ID) { k.withhold(d, stays) })
	}
}

// Host takes devices that nobody uses for a guest, as far as possible from those of tenants, and appends them to seats: on one
// node if there is one with so many, and first of free cells of the highest level. It reports false, and takes nothing, when there
// are not so many. O(nodes).
func (v *Clusters) Host(t core.AcceleratorID, n int, seats []core.Seat) ([]core.Seat, bool) {
	h := hosting{chain: &v.chains[t], free: v.chosen[:0]}
	if h.unused(v, t) < n {
		return seats, false
	}
	h.find(v, t, n)
	v.chosen = h.free
	begin := len(seats)
	for _, d := range h.free {
		h.lodge(d, true)
		seat, at := h.seats[d], begin
		for at < len(seats) && seats[at].Node != seat.Node {
			at++
		}
		if at == len(seats) {
			seats = append(seats, seat)
		} else {
			seats[at].Devices |= seat.Devices
		}
	}
	return seats, true
}

// Unused is how many sound devices of an accelerator type nobody uses.
func (v *Clusters) Unused(t core.AcceleratorID) int {
	h := hosting{chain: &v.chains[t]}
	return h.unused(v, t)
}

// hosting is the search for devices of one guest.
type hosting struct {
	*chain
	free []ID
}

// unused counts what nobody uses: what is idle and has no guest.
func (h *hosting) unused(v *Clusters, t core.AcceleratorID) int {
	n := 0
	for level, head := range h.heads {
		for c := head; c != None; c = h.cells[c].next {
			n += h.levels[level].Devices - int(h.cells[c].guests)
		}
	}
	for i := range v.Config.Tenants {
		for _, c := range v.virtual(Tenant(i), t).bound {
			n += h.room(c)
		}
	}
	return n
}

// room is how many devices of a cell nobody uses. Those of guests that stay are not idle.
func (h *hosting) room(c ID) int {
	if x := &h.cells[c]; x.bad == 0 {
		return int(x.idle - x.guests)
	}
	n := 0
	for d, end := h.devices(c); d < end; d++ {
		if x := &h.cells[d]; x.idle > 0 && x.guests == 0 {
			n++
		}
	}
	return n
}

func (h *hosting) find(v *Clusters, t core.AcceleratorID, n int) {
	best := None
	for level := len(h.heads) - 1; level >= 0 && best == None; level-- { // the farthest
		for c := h.heads[level]; c != None; c = h.cells[c].next {
			best = h.tightest(c, n, best)
		}
	}
	for i := 0; i < len(v.Config.Tenants) && best == None; i++ {
		for _, c := range v.virtual(Tenant(i), t).bound {
			best = h.tightest(c, n, best)
		}
	}
	if best != None {
		h.take(best, n)
		return
	}
	for _, v := range slices.Backward(h.heads) {
		for c := v; c != None; c = h.cells[c].next {
			h.take(c, n)
		}
	}
	for i := range v.Config.Tenants {
		for _, c := range v.virtual(Tenant(i), t).bound {
			h.take(c, n)
		}
	}
}

// tightest is the cell in c, none larger than a node, with the fewest unused devices of those with n.
func (h *hosting) tightest(c ID, n int, best ID) ID {
	room := h.room(c)
	if room < n {
		return best
	}
	if int(h.cells[c].level) <= h.node {
		if best == None || room < h.room(best) {
			return c
		}
		return best
	}
	first, end := h.children(c)
	for child := first; child < end; child++ {
		best = h.tightest(child, n, best)
	}
	return best
}

// take adds unused devices of a cell, the lowest first, until there are n in all.
func (h *hosting) take(c ID, n int) {
	for d, end := h.devices(c); d < end && len(h.free) < n; d++ {
		if x := &h.cells[d]; x.idle > 0 && x.guests == 0 {
			h.free = append(h.free, d)
		}
	}
}

// OpportunisticSeats appends the devices of seats that guests use, as seats.
func (v *Clusters) OpportunisticSeats(seats []core.Seat, into []core.Seat) []core.Seat {
	for _, seat := range seats {
		k := &v.chains[v.nodes[seat.Node].Accelerator]
		used := core.DeviceSet(0)
		for rest := seat.Devices; rest != 0; rest &= rest - 1 {
			d := bits.TrailingZeros64(uint64(rest))
			if k.cells[k.device(seat.Node, d)].guests > 0 {
				used |= 1 << d
			}
		}
		if used != 0 {
			into = append(into, core.Seat{Node: seat.Node, Devices: used})
		}
	}
	return into
}
