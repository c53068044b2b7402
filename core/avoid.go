package core

import (
	"cmp"
	"slices"
)

// avoid gives jobs that would get devices on which they failed others: free ones of the node, as many on another node, of their type first, or those of a job that
// starts in this round and can have theirs instead. Where there are none a job gets what the placer chose. It comes after the placer, so that placers need not know
// of it, and leaves alone jobs that take turns or have slices of devices.
func (s *state) avoid(plan *Plan) {
	if len(s.retries.failedOn) == 0 || s.view.Cluster.Sharing == TimeSlice || s.view.Cluster.Sharing == Mig {
		return
	}
	a := avoidance{state: s, plan: plan}
	for i := range plan.Placements {
		if failed := s.retries.failedOn[plan.Placements[i].Job]; failed != nil {
			a.reseat(i, failed)
		}
	}
}

// avoidance is the placements of a round while jobs get others than those on which they failed.
type avoidance struct {
	*state
	plan     *Plan
	stopping map[NodeID]DeviceSet // of jobs that run and have no placement: nil as long as nobody asked
	copied   map[int]bool         // placements whose seats are not the placer's any more
}

// reseat finds other devices for the seats of a placement that have some on which the job failed.
func (a *avoidance) reseat(i int, failed []Seat) {
	j := a.view.Jobs[a.plan.Placements[i].Job]
	for k := range a.plan.Placements[i].Seats {
		bad := func() DeviceSet {
			seat := a.plan.Placements[i].Seats[k]
			return seat.Devices & devicesOn(failed, seat.Node) &^ heldOn(j, seat.Node)
		}
		if bad() != 0 && !a.take(i, k, bad(), failed) {
			a.swap(i, k, bad, failed)
		}
	}
}

// take gives a seat free devices instead of those that are bad.
func (a *avoidance) take(i, k int, bad DeviceSet, failed []Seat) bool {
	p := &a.plan.Placements[i]
	j, was := a.view.Jobs[p.Job], p.Seats[k]
	one := *p
	try := func(to Seat) bool {
		one.Seats = []Seat{to}
		return to.Devices.Count() == was.Devices.Count() && a.occupancy.occupy(j, &one)
	}
	a.occupancy.free(j, p.Resources, p.Seats[k:k+1])
	good := was.Devices &^ bad
	more := a.freeFor(j, p.Resources, was.Node) &^ devicesOn(failed, was.Node) &^ good
	to := Seat{Node: was.Node, Devices: good | more.Lowest(bad.Count())}
	if try(to) {
		a.own(i)[k] = to
		return true
	}
	for _, n := range a.others(i, was, failed) {
		to := Seat{Node: n, Devices: (a.freeFor(j, p.Resources, n) &^ devicesOn(failed, n)).Lowest(was.Devices.Count())}
		if try(to) {
			a.own(i)[k] = to
			return true
		}
	}
	one.Seats = []Seat{was}
	_ = a.occupancy.occupy(j, &one) // it was there a moment ago
	return false
}

// others lists the nodes on which the job of a placement may have a whole seat instead: those of the same type first, then those of its rack, then those with the
// fewest devices left.
func (a *avoidance) others(i int, seat Seat, failed []Seat) (nodes []NodeID) {
	p := &a.plan.Placements[i]
	c, j := a.view.Cluster, a.view.Jobs[p.Job]
	anyType := !a.blocked && len(p.Seats) == 1 && a.plan.Grants[a.marks[p.Job].grant].Accelerator == AnyAccelerator
	from := &c.Nodes[seat.Node]
	free := map[NodeID]int{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Accelerator != from.Accelerator && !(anyType && j.Accepts(c, n.Accelerator)) || n.Usable() == 0 || devicesOn(p.Seats, n.ID) != 0 {
			continue
		}
		devices := a.freeFor(j, p.Resources, n.ID)
		if free[n.ID] = devices.Count(); (devices &^ devicesOn(failed, n.ID)).Count() >= seat.Devices.Count() {
			nodes = append(nodes, n.ID)
		}
	}
	away := func(n NodeID) (far int) {
		if c.Nodes[n].Accelerator != from.Accelerator {
			far = 2
		}
		if c.Nodes[n].Rack != from.Rack {
			far++
		}
		return far
	}
	slices.SortFunc(nodes, func(x, y NodeID) int {
		return cmp.Or(away(x)-away(y), free[x]-free[y], cmp.Compare(x, y))
	})
	return nodes
}

// swap exchanges devices with jobs that start in this round: single ones on the node, or a whole seat of another node. Nobody gets devices on which it failed.
func (a *avoidance) swap(i, k int, bad func() DeviceSet, failed []Seat) {
	if a.view.Cluster.CountsShares() {
		return // others may not fit there
	}
	for o := range a.plan.Placements {
		other := &a.plan.Placements[o]
		if o == i || a.view.Jobs[other.Job].State != Waiting {
			continue
		}
		for l := range other.Seats {
			mine, theirs := a.plan.Placements[i].Seats[k], other.Seats[l]
			theirFailed := a.retries.failedOn[other.Job]
			if mine.Node == theirs.Node {
				give, get := bad()&^devicesOn(theirFailed, mine.Node), theirs.Devices&^devicesOn(failed, mine.Node)
				n := min(give.Count(), get.Count())
				give, get = give.Lowest(n), get.Lowest(n)
				a.own(i)[k].Devices ^= give | get
				a.own(o)[l].Devices ^= give | get
			} else if a.mayTrade(i, o, mine, theirs) && theirs.Devices&devicesOn(failed, theirs.Node) == 0 && mine.Devices&devicesOn(theirFailed, mine.Node) == 0 {
				a.own(i)[k], a.own(o)[l] = theirs, mine
			}
			if bad() == 0 {
				return
			}
		}
	}
}

// mayTrade reports whether two seats of different nodes are as good for one job as for the other, and neither then has two on a node.
func (a *avoidance) mayTrade(i, o int, mine, theirs Seat) bool {
	c, at := a.view.Cluster, a.plan.Placements
	return c.Nodes[mine.Node].Accelerator == c.Nodes[theirs.Node].Accelerator && mine.Devices.Count() == theirs.Devices.Count() &&
		a.view.Jobs[at[i].Job].Tenant == a.view.Jobs[at[o].Job].Tenant &&
		devicesOn(at[i].Seats, theirs.Node) == 0 && devicesOn(at[o].Seats, mine.Node) == 0
}

// own is the seats of a placement, to change: until now they may have been the placer's.
func (a *avoidance) own(i int) []Seat {
	if !a.copied[i] {
		if a.copied == nil {
			a.copied = map[int]bool{}
			a.plan.Placements = slices.Clone(a.plan.Placements)
		}
		a.plan.Placements[i].Seats, a.copied[i] = slices.Clone(a.plan.Placements[i].Seats), true
	}
	return a.plan.Placements[i].Seats
}

// freeFor is the devices of a node that a job can have, without those that are reserved, and those of jobs that are to stop: they may run on after all.
func (a *avoidance) freeFor(j *Job, each *Resources, n NodeID) (free DeviceSet) {
	o, others := &a.occupancy, a.ofStopping(n)|a.view.ReservedOn(n)
	if o.shares == nil {
		return o.ledger.FreeDevices(n) &^ others
	}
	spec := o.giving(j, each)
	for _, device := range o.shares.Usable(n).List() {
		if o.shares.FitsOn(spec, n, device) {
			free |= 1 << device
		}
	}
	return free &^ others
}

// ofStopping is the devices of a node that jobs hold which run and have no placement.
func (a *avoidance) ofStopping(n NodeID) DeviceSet {
	if a.stopping == nil {
		a.stopping = map[NodeID]DeviceSet{}
		for _, j := range a.running {
			if a.marks[j.ID].placed != a.view.Round {
				for _, s := range j.Seats {
					a.stopping[s.Node] |= s.Devices
				}
			}
		}
	}
	return a.stopping[n]
}
