package placement

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// seater is what placers share: the free devices of a round, and the answer as it grows. Its buffers are reused.
type seater struct {
	ledger   core.Ledger
	free     []int  // free devices by accelerator type
	idle     []int  // free before any is taken, by accelerator type
	nodes    []int  // nodes by accelerator type, whatever their health, but for those that are gone
	closed   []bool // by accelerator type: an earlier job that does not fit keeps its turn there
	rest     []int  // indices of the grants that need new seats
	seats    []core.Seat
	placed   []core.Placement
	unseated []core.Verdict
	together []*core.JobSpec // scratch: of a group

	cluster       *core.Cluster // of which idle and nodes are
	healthChanges int
}

// choice takes n devices of one accelerator type for a job with s.take, of which that many are free, or none when it
// does not like their shape.
type choice func(s *seater, v *core.View, j *core.Job, t core.AcceleratorID, n int) bool

// seat is the walk of every placer but tailEviction, proposed, matching and buddy. seatAnew seats a grant on free devices, if it can.
func (s *seater) seat(v *core.View, grants []core.Grant, seatAnew func(*core.Grant) bool) core.Seating {
	s.begin(v)
	for i := 0; i < len(grants); i++ {
		g := &grants[i]
		switch {
		case g.Group != 0:
			i += s.stay(v, grants[i:i+core.GroupOf(grants, i)], i)
		case s.occupy(v, g):
			s.keep(v, g)
		default:
			s.rest = append(s.rest, i)
		}
	}
	for _, i := range s.rest {
		group := grants[i : i+core.GroupOf(grants, i)]
		if seatAnew(&group[0]) {
			s.join(v, group, 0)
			continue
		}
		for k := range group {
			s.refuse(v, &group[k], false)
			s.close(v, &group[k])
		}
	}
	return s.seating()
}

// stay leaves a group, whose first grant has an index, where one of its jobs runs, or has it wait for new seats. It returns how many more
// grants the group has.
func (s *seater) stay(v *core.View, group []core.Grant, first int) (more int) {
	if k := s.occupyOne(v, group); k >= 0 {
		s.keep(v, &group[k])
		s.join(v, group, k)
	} else {
		s.rest = append(s.rest, first)
	}
	return len(group) - 1
}

// occupyOne takes the devices that a job of a group holds, if they are what is granted and still usable: those of the first pinned
// one that has such, else of the first. It returns whose they are, -1 for none's.
func (s *seater) occupyOne(v *core.View, group []core.Grant) int {
	for k := range group {
		if v.Jobs[group[k].Job].Pinned && s.occupy(v, &group[k]) {
			return k
		}
	}
	for k := range group {
		if s.occupy(v, &group[k]) {
			return k
		}
	}
	return -1
}

// join seats the others of a group beside the one that was seated last, as long as their devices have the memory: first those that are there already.
func (s *seater) join(v *core.View, group []core.Grant, seated int) {
	if len(group) == 1 {
		return
	}
	seats := s.placed[len(s.placed)-1].Seats
	s.together = append(s.together[:0], v.Jobs[group[seated].Job].JobSpec)
	for _, there := range [...]bool{true, false} {
		for k := range group {
			if j := v.Jobs[group[k].Job]; k != seated && core.SameDevices(j.Seats, seats) == there {
				s.joinOne(v, &group[k], seats)
			}
		}
	}
}

// joinOne seats a grant beside those of s.together, or refuses it.
func (s *seater) joinOne(v *core.View, g *core.Grant, seats []core.Seat) {
	j := v.Jobs[g.Job]
	if core.SameDevices(j.Seats, seats) {
		seats = j.Seats // in the order in which it knows its replicas
	}
	if s.together = append(s.together, j.JobSpec); !within(v, g, seats) || !v.Cluster.FitOn(seats, s.together...) {
		s.together = s.together[:len(s.together)-1]
		s.refuse(v, g, false)
		verdict := &s.unseated[len(s.unseated)-1]
		verdict.Message = "it cannot be on the devices of the others of its group"
		if memory := s.memoryBeside(v, seats); within(v, g, seats) && len(s.together) < v.Cluster.MaxOwners && memory < j.DeviceMemoryGB {
			blameDeviceMemory(verdict, j.DeviceMemoryGB, memory)
			verdict.Message = "on the devices of its group device memory is short"
		}
		return
	}
	s.placed = append(s.placed, core.Placement{Job: j.ID, Seats: seats})
}

// memoryBeside is the memory in gigabytes that the jobs of s.together leave of a device of a type of these seats; of such devices the least memory counts.
func (s *seater) memoryBeside(v *core.View, seats []core.Seat) float64 {
	of := func(t core.AcceleratorID) bool {
		return slices.ContainsFunc(seats, func(seat core.Seat) bool { return v.Cluster.Nodes[seat.Node].Accelerator == t })
	}
	left := math.Inf(1)
	for i := range v.Cluster.Nodes {
		if n := &v.Cluster.Nodes[i]; n.Health != core.Gone && n.DeviceMemoryGB > 0 && n.DeviceMemoryGB < left && of(n.Accelerator) {
			left = n.DeviceMemoryGB
		}
	}
	for _, j := range s.together {
		left -= j.DeviceMemoryGB
	}
	return max(math.Round(left*1000)/1000, 0)
}

// close keeps the types that a blocking grant without seats could use from the jobs behind it.
func (s *seater) close(v *core.View, g *core.Grant) {
	for t := range s.closed {
		s.closed[t] = s.closed[t] || g.Blocking && eligible(v, v.Jobs[g.Job], g, core.AcceleratorID(t))
	}
}

// open reports whether a grant may have new seats on a type: it suits the job, and no earlier one keeps its turn there. A job
// that runs has had its turn.
func (s *seater) open(v *core.View, g *core.Grant, t core.AcceleratorID) bool {
	j := v.Jobs[g.Job]
	return eligible(v, j, g, t) && (!s.closed[t] || j.State == core.Running)
}

// Standing is for ever: a placer depends on grants and on the health of nodes only. Given the same grants again, all
// that it seated stays, and a grant that it refused finds no more devices free than it did then.
func (s *seater) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

// begin makes all devices of ready nodes free and forgets the last answer.
func (s *seater) begin(v *core.View) {
	s.rest, s.seats, s.placed, s.unseated = s.rest[:0], s.seats[:0], s.placed[:0], s.unseated[:0]
	s.ledger.ResetTo(v)
	if s.cluster != v.Cluster || s.healthChanges != v.HealthChanges {
		s.countNodes(v)
	}
	copy(s.free, s.idle)
	clear(s.closed)
}

// countNodes counts what there is of each accelerator type.
func (s *seater) countNodes(v *core.View) {
	s.cluster, s.healthChanges = v.Cluster, v.HealthChanges
	if types := len(v.Cluster.Accelerators); len(s.free) != types {
		s.free, s.idle, s.nodes, s.closed = make([]int, types), make([]int, types), make([]int, types), make([]bool, types)
	}
	clear(s.idle)
	clear(s.nodes)
	for i := range v.Cluster.Nodes {
		t := v.Cluster.Nodes[i].Accelerator
		s.idle[t] += s.ledger.Free(core.NodeID(i))
		if v.Cluster.Nodes[i].Health != core.Gone {
			s.nodes[t]++
		}
	}
}

func (s *seater) seating() core.Seating { return core.Seating{Placed: s.placed, Unseated: s.unseated} }

// occupy takes the devices that the granted job holds, if they are what is granted and still usable.
func (s *seater) occupy(v *core.View, g *core.Grant) bool {
	j := v.Jobs[g.Job]
	if j.Held != g.Replicas || j.Held == 0 {
		return false
	}
	if !within(v, g, j.Seats) || !s.ledger.Occupy(j.Seats) {
		return false
	}
	s.count(v, j.Seats, -1)
	return true
}

// vacate undoes occupy.
func (s *seater) vacate(v *core.View, g *core.Grant) {
	j := v.Jobs[g.Job]
	s.ledger.Release(j.Seats)
	s.count(v, j.Seats, +1)
}

// count adds seats to the free devices of their types, or takes them away.
func (s *seater) count(v *core.View, seats []core.Seat, sign int) {
	for _, seat := range seats {
		s.free[v.Cluster.Nodes[seat.Node].Accelerator] += sign * seat.Devices.Count()
	}
}

// keep answers a grant with the seats that its job holds.
func (s *seater) keep(v *core.View, g *core.Grant) {
	s.placed = append(s.placed, core.Placement{Job: g.Job, Seats: v.Jobs[g.Job].Seats})
}

// onLowestType seats a grant on free devices of the lowest type on which it finds a choice to its liking, and reports
// whether there is one.
func (s *seater) onLowestType(v *core.View, g *core.Grant, choose choice) bool {
	first := len(s.seats)
	for t := range s.free {
		if s.try(v, g, core.AcceleratorID(t), choose) {
			s.place(g, core.AcceleratorID(t), first)
			return true
		}
	}
	return s.acrossTypes(v, g, choose)
}

// onFewestNodes is onLowestType on the type where the choice takes the fewest nodes, the lowest of several.
func (s *seater) onFewestNodes(v *core.View, g *core.Grant, choose choice) bool {
	first, best := len(s.seats), core.AnyAccelerator
	for t := range s.free {
		next := len(s.seats)
		if !s.try(v, g, core.AcceleratorID(t), choose) {
			continue
		}
		if best != core.AnyAccelerator && len(s.seats)-next >= next-first {
			s.untake(next)
			continue
		}
		s.ledger.Release(s.seats[first:next])
		s.seats = slices.Delete(s.seats, first, next)
		if best = core.AcceleratorID(t); len(s.seats) == first+1 {
			break
		}
	}
	if best == core.AnyAccelerator {
		return s.acrossTypes(v, g, choose)
	}
	s.place(g, best, first)
	return true
}

// acrossTypes seats a grant that is too large for any one type on several, if its job mixes them.
func (s *seater) acrossTypes(v *core.View, g *core.Grant, choose choice) bool {
	j := v.Jobs[g.Job]
	if !j.MixesTypes {
		return false
	}
	alone := *j.JobSpec
	alone.MixesTypes = false
	return g.Replicas > v.Cluster.CapacityFor(&alone) && s.mix(v, g, choose)
}

// mix seats a grant on free devices of several types, lowest first.
func (s *seater) mix(v *core.View, g *core.Grant, choose choice) bool {
	j, first, left := v.Jobs[g.Job], len(s.seats), g.Replicas
	for t := range s.free {
		n := min(left, s.free[t])
		if n > 0 && s.open(v, g, core.AcceleratorID(t)) && choose(s, v, j, core.AcceleratorID(t), n) {
			left -= n
		}
	}
	if left > 0 {
		s.untake(first)
		return false
	}
	s.count(v, s.seats[first:], -1)
	s.placed = append(s.placed, core.Placement{Job: g.Job, Seats: s.seats[first:len(s.seats):len(s.seats)]})
	return true
}

// try takes devices of a type for a grant, if the type is open to it, has
// enough of them and the choice likes their shape.
func (s *seater) try(v *core.View, g *core.Grant, t core.AcceleratorID, choose choice) bool {
	return s.free[t] >= g.Replicas && s.open(v, g, t) && choose(s, v, v.Jobs[g.Job], t, g.Replicas)
}

// place answers a grant with the seats taken since there were first of them, all of a type.
func (s *seater) place(g *core.Grant, t core.AcceleratorID, first int) {
	s.free[t] -= g.Replicas
	s.placed = append(s.placed, core.Placement{Job: g.Job, Seats: s.seats[first:len(s.seats):len(s.seats)]})
}

// take seats up to n replicas on the free devices of a node and returns how many.
func (s *seater) take(node core.NodeID, n int) int {
	if n = min(n, s.ledger.Free(node)); n > 0 {
		s.seats = append(s.seats, s.ledger.Take(node, n))
	}
	return n
}

// untake gives back all seats taken since there were first of them.
func (s *seater) untake(first int) {
	s.ledger.Release(s.seats[first:])
	s.seats = s.seats[:first]
}

// refuse answers a grant with the reason why it has no seats. skipped says that an earlier grant kept its turn on every type.
func (s *seater) refuse(v *core.View, g *core.Grant, skipped bool) {
	reason, available, open := core.AcceleratorMissing, 0, 0
	for t := range s.free {
		if s.nodes[t] > 0 && eligible(v, v.Jobs[g.Job], g, core.AcceleratorID(t)) {
			reason, available = core.WaitingForDevices, max(available, s.free[t])
			if s.open(v, g, core.AcceleratorID(t)) {
				open = max(open, s.free[t])
			}
		}
	}
	if available >= g.Replicas {
		reason = core.Fragmented
		if skipped || open < g.Replicas {
			reason = core.BlockedByEarlier
		}
	}
	s.unseated = append(s.unseated, core.Verdict{
		Job: g.Job, Code: core.Defer, Reason: reason,
		Wanted: float64(g.Replicas), Available: float64(available), Unit: "devices",
	})
}

// eligible reports whether a grant may be seated on an accelerator type.
func eligible(v *core.View, j *core.Job, g *core.Grant, t core.AcceleratorID) bool {
	return allows(v, j, g, t) && (v.Cluster.Sharing != core.TimeSlice || v.Cluster.FitTogether(t, j.JobSpec))
}

// allows is eligible but for the memory of shared devices. It is small enough to cost no call: jobs that stay are asked about in every round.
func allows(v *core.View, j *core.Job, g *core.Grant, t core.AcceleratorID) bool {
	return (g.Accelerator == core.AnyAccelerator || g.Accelerator == t) && j.Accepts(v.Cluster, t)
}

// within reports whether seats on nodes of the cluster are of types that a grant
// allows, of one type unless its job mixes them.
func within(v *core.View, g *core.Grant, seats []core.Seat) bool {
	j := v.Jobs[g.Job]
	if v.Cluster.Sharing == core.TimeSlice && !v.Cluster.FitOn(seats, j.JobSpec) {
		return false
	}
	if len(v.Cluster.Accelerators) == 1 {
		return allows(v, j, g, 0)
	}
	first := v.Cluster.Nodes[seats[0].Node].Accelerator
	for _, seat := range seats {
		t := v.Cluster.Nodes[seat.Node].Accelerator
		if t != first && !j.MixesTypes || !allows(v, j, g, t) {
			return false
		}
	}
	return true
}
