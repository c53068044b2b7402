package matching

import "github.com/quartet-sched/quartet/core"

// seating turns counts into devices.
type seating struct {
	ledger core.Ledger
	seats  []core.Seat
}

func (s *seating) begin(v *core.View) {
	s.ledger.ResetTo(v)
	s.seats = s.seats[:0]
}

// keep leaves a job its seats.
func (s *seating) keep(seats []core.Seat) { s.ledger.Occupy(seats) }

// byType seats so many replicas on each type: on nodes where the job sits already, then on the fewest nodes.
func (s *seating) byType(v *core.View, c *core.Candidate, counts []int) []core.Seat {
	first := len(s.seats)
	for t, n := range counts {
		s.take(v, c, n, func(accelerator core.AcceleratorID) bool { return int(accelerator) == t })
	}
	return s.seats[first:len(s.seats):len(s.seats)]
}

// anyType seats replicas on any types, as many as there are devices for; a job that does not mix them on the lowest
// that has enough. It is nil for a job that gets too few.
func (s *seating) anyType(v *core.View, c *core.Candidate, n int) []core.Seat {
	first := len(s.seats)
	canRun := func(t core.AcceleratorID) bool { return c.CanRunOn(v.Cluster, t) }
	if c.MixesTypes {
		s.take(v, c, n, canRun)
	}
	for t := core.AcceleratorID(0); !c.MixesTypes && int(t) < len(v.Cluster.Accelerators); t++ {
		if canRun(t) && s.take(v, c, n, func(other core.AcceleratorID) bool { return other == t }) >= c.Response.MinReplicas {
			break
		}
		s.give(first)
	}
	if core.Replicas(s.seats[first:]) < c.Response.MinReplicas {
		s.give(first)
	}
	return s.seats[first:len(s.seats):len(s.seats)]
}

// give undoes what was taken since there were first seats.
func (s *seating) give(first int) {
	s.ledger.Release(s.seats[first:])
	s.seats = s.seats[:first]
}

// take takes up to n devices of some types and returns how many.
func (s *seating) take(v *core.View, c *core.Candidate, n int, suits func(core.AcceleratorID) bool) int {
	taken := 0
	from := func(node core.NodeID) {
		if k := min(n-taken, s.ledger.Free(node)); k > 0 {
			s.seats = append(s.seats, s.ledger.Take(node, k))
			taken += k
		}
	}
	for _, seat := range c.Seats {
		if suits(v.Cluster.Nodes[seat.Node].Accelerator) {
			from(seat.Node)
		}
	}
	for taken < n {
		node := s.tightest(v, n-taken, suits)
		if node < 0 {
			break
		}
		from(node)
	}
	return taken
}

// tightest is the node with the fewest free devices that still hold n, or, when none does, the one with the most.
func (s *seating) tightest(v *core.View, n int, suits func(core.AcceleratorID) bool) core.NodeID {
	best, bestFree := core.NodeID(-1), 0
	for i := range v.Cluster.Nodes {
		free := s.ledger.Free(core.NodeID(i))
		if free == 0 || !suits(v.Cluster.Nodes[i].Accelerator) {
			continue
		}
		if free >= n && (bestFree < n || free < bestFree) || bestFree < n && free > bestFree {
			best, bestFree = core.NodeID(i), free
		}
	}
	return best
}
