package seating

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Seater is what placers share: the free devices of a round, and the answer as it grows. Its buffers are reused.
type Seater struct {
	// Ledger counts the free devices of each node.
	Ledger core.Ledger
	Free   []int  // free devices by accelerator type
	idle   []int  // free before any is taken, by accelerator type
	Nodes  []int  // nodes by accelerator type, whatever their health, but for those that are gone
	Closed []bool // by accelerator type: an earlier job that does not fit keeps its turn there
	Rest   []int  // indices of the grants that need new seats
	// Seats are those taken in this round.
	Seats []core.Seat
	// Placed are the grants that are seated.
	Placed []core.Placement
	// Unseated are the grants that are refused, with the reason.
	Unseated []core.Verdict
	together []*core.JobSpec // scratch: of a group

	cluster       *core.Cluster // of which idle and nodes are
	healthChanges int
}

// Choice takes n devices of one accelerator type for a job with Seater.Take, of which that many are free, or none when it
// does not like their shape.
type Choice func(s *Seater, v *core.View, j *core.Job, t core.AcceleratorID, n int) bool

// SeatAll is the walk of most placers. seatAnew seats a grant on free devices, if it can.
func (s *Seater) SeatAll(v *core.View, grants []core.Grant, seatAnew func(*core.Grant) bool) core.Seating {
	s.Begin(v)
	for i := 0; i < len(grants); i++ {
		g := &grants[i]
		switch {
		case g.Group != 0:
			i += s.stay(v, grants[i:i+core.GroupOf(grants, i)], i)
		case s.Occupy(v, g):
			s.Keep(v, g)
		default:
			s.Rest = append(s.Rest, i)
		}
	}
	for _, i := range s.Rest {
		group := grants[i : i+core.GroupOf(grants, i)]
		if seatAnew(&group[0]) {
			s.Join(v, group, 0)
			continue
		}
		for k := range group {
			s.Refuse(v, &group[k], false)
			s.Close(v, &group[k])
		}
	}
	return s.Seating()
}

// stay leaves a group, whose first grant has an index, where one of its jobs runs, or has it wait for new seats. It returns how many more
// grants the group has.
func (s *Seater) stay(v *core.View, group []core.Grant, first int) (more int) {
	if k := s.OccupyOne(v, group); k >= 0 {
		s.Keep(v, &group[k])
		s.Join(v, group, k)
	} else {
		s.Rest = append(s.Rest, first)
	}
	return len(group) - 1
}

// OccupyOne takes the devices that a job of a group holds, if they are what is granted and still usable: those of the first pinned
// one that has such, else of the first. It returns whose they are, -1 for none's.
func (s *Seater) OccupyOne(v *core.View, group []core.Grant) int {
	for k := range group {
		if v.Jobs[group[k].Job].Pinned && s.Occupy(v, &group[k]) {
			return k
		}
	}
	for k := range group {
		if s.Occupy(v, &group[k]) {
			return k
		}
	}
	return -1
}

// Join seats the others of a group beside the one that was seated last, as long as their devices have the memory: first those that are there already.
func (s *Seater) Join(v *core.View, group []core.Grant, seated int) {
	if len(group) == 1 {
		return
	}
	seats := s.Placed[len(s.Placed)-1].Seats
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
func (s *Seater) joinOne(v *core.View, g *core.Grant, seats []core.Seat) {
	j := v.Jobs[g.Job]
	if core.SameDevices(j.Seats, seats) {
		seats = j.Seats // in the order in which it knows its replicas
	}
	if s.together = append(s.together, j.JobSpec); !Within(v, g, seats) || !v.Cluster.FitOn(seats, s.together...) {
		s.together = s.together[:len(s.together)-1]
		s.Refuse(v, g, false)
		verdict := &s.Unseated[len(s.Unseated)-1]
		verdict.Message = "it cannot be on the devices of the others of its group"
		if memory := s.memoryBeside(v, seats); Within(v, g, seats) && len(s.together) < v.Cluster.MaxOwners && memory < j.DeviceMemoryGB {
			BlameDeviceMemory(verdict, j.DeviceMemoryGB, memory)
			verdict.Message = "on the devices of its group device memory is short"
		}
		return
	}
	s.Placed = append(s.Placed, core.Placement{Job: j.ID, Seats: seats})
}

// memoryBeside is the memory in gigabytes that the jobs of s.together leave of a device of a type of these seats; of such devices the least memory counts.
func (s *Seater) memoryBeside(v *core.View, seats []core.Seat) float64 {
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

// Close keeps the types that a blocking grant without seats could use from the jobs behind it.
func (s *Seater) Close(v *core.View, g *core.Grant) {
	for t := range s.Closed {
		s.Closed[t] = s.Closed[t] || g.Blocking && Eligible(v, v.Jobs[g.Job], g, core.AcceleratorID(t))
	}
}

// Open reports whether a grant may have new seats on a type: it suits the job, and no earlier one keeps its turn there. A job
// that runs has had its turn.
func (s *Seater) Open(v *core.View, g *core.Grant, t core.AcceleratorID) bool {
	j := v.Jobs[g.Job]
	return Eligible(v, j, g, t) && (!s.Closed[t] || j.State == core.Running)
}

// Standing is for ever: a placer depends on grants and on the health of nodes only. Given the same grants again, all
// that it seated stays, and a grant that it refused finds no more devices free than it did then.
func (s *Seater) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

// Begin makes all devices of ready nodes free but for those that are reserved, on which jobs may only stay, and forgets the last answer.
func (s *Seater) Begin(v *core.View) {
	s.Rest, s.Seats, s.Placed, s.Unseated = s.Rest[:0], s.Seats[:0], s.Placed[:0], s.Unseated[:0]
	s.Ledger.ResetTo(v)
	if s.cluster != v.Cluster || s.healthChanges != v.HealthChanges {
		s.countNodes(v)
	}
	copy(s.Free, s.idle)
	clear(s.Closed)
	for _, r := range v.Reserved {
		s.Free[v.Cluster.Nodes[r.Node].Accelerator] -= (r.Devices & s.Ledger.FreeDevices(r.Node)).Count()
	}
	s.Ledger.Reserve(v.Reserved)
}

// KeepsReserved is true: Begin takes what is reserved out of what is free.
func (s *Seater) KeepsReserved() bool { return true }

// countNodes counts what there is of each accelerator type.
func (s *Seater) countNodes(v *core.View) {
	s.cluster, s.healthChanges = v.Cluster, v.HealthChanges
	if types := len(v.Cluster.Accelerators); len(s.Free) != types {
		s.Free, s.idle, s.Nodes, s.Closed = make([]int, types), make([]int, types), make([]int, types), make([]bool, types)
	}
	clear(s.idle)
	clear(s.Nodes)
	for i := range v.Cluster.Nodes {
		t := v.Cluster.Nodes[i].Accelerator
		s.idle[t] += s.Ledger.Free(core.NodeID(i))
		if v.Cluster.Nodes[i].Health != core.Gone {
			s.Nodes[t]++
		}
	}
}

// Seating is the answer so far.
func (s *Seater) Seating() core.Seating { return core.Seating{Placed: s.Placed, Unseated: s.Unseated} }

// Occupy takes the devices that the granted job holds, if they are what is granted and still usable.
func (s *Seater) Occupy(v *core.View, g *core.Grant) bool {
	j := v.Jobs[g.Job]
	if j.Held != g.Replicas || j.Held == 0 {
		return false
	}
	if !Within(v, g, j.Seats) || !s.Ledger.Occupy(j.Seats) {
		return false
	}
	s.Count(v, j.Seats, -1)
	return true
}

// Vacate undoes occupy.
func (s *Seater) Vacate(v *core.View, g *core.Grant) {
	j := v.Jobs[g.Job]
	s.Ledger.Release(j.Seats)
	s.Count(v, j.Seats, +1)
}

// Count adds seats to the free devices of their types, or takes them away, but for those that are reserved.
func (s *Seater) Count(v *core.View, seats []core.Seat, sign int) {
	for _, seat := range seats {
		s.Free[v.Cluster.Nodes[seat.Node].Accelerator] += sign * (seat.Devices &^ s.Ledger.Reserved(seat.Node)).Count()
	}
}

// Keep answers a grant with the seats that its job holds.
func (s *Seater) Keep(v *core.View, g *core.Grant) {
	s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: v.Jobs[g.Job].Seats})
}

// OnLowestType seats a grant on free devices of the lowest type on which it finds a choice to its liking, and reports
// whether there is one.
func (s *Seater) OnLowestType(v *core.View, g *core.Grant, choose Choice) bool {
	first := len(s.Seats)
	for t := range s.Free {
		if s.try(v, g, core.AcceleratorID(t), choose) {
			s.place(g, core.AcceleratorID(t), first)
			return true
		}
	}
	return s.AcrossTypes(v, g, choose)
}

// OnFewestNodes is onLowestType on the type where the choice takes the fewest nodes, the lowest of several.
func (s *Seater) OnFewestNodes(v *core.View, g *core.Grant, choose Choice) bool {
	first, best := len(s.Seats), core.AnyAccelerator
	for t := range s.Free {
		next := len(s.Seats)
		if !s.try(v, g, core.AcceleratorID(t), choose) {
			continue
		}
		if best != core.AnyAccelerator && len(s.Seats)-next >= next-first {
			s.Untake(next)
			continue
		}
		s.Ledger.Release(s.Seats[first:next])
		s.Seats = slices.Delete(s.Seats, first, next)
		if best = core.AcceleratorID(t); len(s.Seats) == first+1 {
			break
		}
	}
	if best == core.AnyAccelerator {
		return s.AcrossTypes(v, g, choose)
	}
	s.place(g, best, first)
	return true
}

// AcrossTypes seats a grant that is too large for any one type on several, if its job mixes them.
func (s *Seater) AcrossTypes(v *core.View, g *core.Grant, choose Choice) bool {
	j := v.Jobs[g.Job]
	if !j.MixesTypes {
		return false
	}
	alone := *j.JobSpec
	alone.MixesTypes = false
	return g.Replicas > v.Cluster.CapacityFor(&alone) && s.Mix(v, g, choose)
}

// Mix seats a grant on free devices of several types, lowest first.
func (s *Seater) Mix(v *core.View, g *core.Grant, choose Choice) bool {
	j, first, left := v.Jobs[g.Job], len(s.Seats), g.Replicas
	for t := range s.Free {
		n := min(left, s.Free[t])
		if n > 0 && s.Open(v, g, core.AcceleratorID(t)) && choose(s, v, j, core.AcceleratorID(t), n) {
			left -= n
		}
	}
	if left > 0 {
		s.Untake(first)
		return false
	}
	s.Count(v, s.Seats[first:], -1)
	s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: s.Seats[first:len(s.Seats):len(s.Seats)]})
	return true
}

// try takes devices of a type for a grant, if the type is open to it, has
// enough of them and the choice likes their shape.
func (s *Seater) try(v *core.View, g *core.Grant, t core.AcceleratorID, choose Choice) bool {
	return s.Free[t] >= g.Replicas && s.Open(v, g, t) && choose(s, v, v.Jobs[g.Job], t, g.Replicas)
}

// place answers a grant with the seats taken since there were first of them, all of a type.
func (s *Seater) place(g *core.Grant, t core.AcceleratorID, first int) {
	s.Free[t] -= g.Replicas
	s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: s.Seats[first:len(s.Seats):len(s.Seats)]})
}

// Take seats up to n replicas on the free devices of a node and returns how many.
func (s *Seater) Take(node core.NodeID, n int) int {
	if n = min(n, s.Ledger.Free(node)); n > 0 {
		s.Seats = append(s.Seats, s.Ledger.Take(node, n))
	}
	return n
}

// Untake gives back all seats taken since there were first of them.
func (s *Seater) Untake(first int) {
	s.Ledger.Release(s.Seats[first:])
	s.Seats = s.Seats[:first]
}

// Refuse answers a grant with the reason why it has no seats. skipped says that an earlier grant kept its turn on every type.
func (s *Seater) Refuse(v *core.View, g *core.Grant, skipped bool) {
	reason, available, open := core.AcceleratorMissing, 0, 0
	for t := range s.Free {
		if s.Nodes[t] > 0 && Eligible(v, v.Jobs[g.Job], g, core.AcceleratorID(t)) {
			reason, available = core.WaitingForDevices, max(available, s.Free[t])
			if s.Open(v, g, core.AcceleratorID(t)) {
				open = max(open, s.Free[t])
			}
		}
	}
	if available >= g.Replicas {
		reason = core.Fragmented
		if skipped || open < g.Replicas {
			reason = core.BlockedByEarlier
		}
	}
	s.Unseated = append(s.Unseated, core.Verdict{
		Job: g.Job, Code: core.Defer, Reason: reason,
		Wanted: float64(g.Replicas), Available: float64(available), Unit: "devices",
	})
}

// Eligible reports whether a grant may be seated on an accelerator type.
func Eligible(v *core.View, j *core.Job, g *core.Grant, t core.AcceleratorID) bool {
	return allows(v, j, g, t) && (v.Cluster.Sharing != core.TimeSlice || v.Cluster.FitTogether(t, j.JobSpec))
}

// allows is Eligible but for the memory of shared devices. It is small enough to cost no call: jobs that stay are asked about in every round.
func allows(v *core.View, j *core.Job, g *core.Grant, t core.AcceleratorID) bool {
	return (g.Accelerator == core.AnyAccelerator || g.Accelerator == t) && j.Accepts(v.Cluster, t)
}

// Within reports whether seats on nodes of the cluster are of types that a grant
// allows, of one type unless its job mixes them.
func Within(v *core.View, g *core.Grant, seats []core.Seat) bool {
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
