package market

// Seats tell which sizes the types can hold at once: agents hold workers of any type they can run on, and change type
// where that makes room.
type seats struct {
	agents []agent
	held   [][]int
	left   []int
	giver  []int // of each type reached: the agent that would take a worker of it, -1 when not reached
	via    []int // and the type it would give up for it, -1 when it is the one that asks
	queue  []int
}

func (p *problem) newSeats() *seats {
	s := &seats{agents: p.agents, left: append([]int(nil), p.count...), held: table(len(p.agents), len(p.count))}
	s.giver, s.via = make([]int, len(p.count)), make([]int, len(p.count))
	return s
}

func table(rows, columns int) [][]int {
	cells := make([]int, rows*columns)
	out := make([][]int, rows)
	for i := range out {
		out[i] = cells[i*columns : (i+1)*columns : (i+1)*columns]
	}
	return out
}

// add gives an agent so many more workers, all or none, and reports whether it did.
func (s *seats) add(agent, workers int) bool {
	for given := range workers {
		if s.addOne(agent) {
			continue
		}
		for range given { // whatever the agent holds now, its own go back
			for t, n := range s.held[agent] {
				if n > 0 {
					s.held[agent][t]--
					s.left[t]++
					break
				}
			}
		}
		return false
	}
	return true
}

// addOne finds a shortest chain of changes that ends in a free worker.
func (s *seats) addOne(agent int) bool {
	for t := range s.giver {
		s.giver[t] = -1
	}
	s.queue = s.queue[:0]
	s.reach(agent, -1)
	for at := 0; at < len(s.queue); at++ {
		t := s.queue[at]
		if s.left[t] > 0 {
			s.left[t]--
			for {
				s.held[s.giver[t]][t]++
				if s.via[t] < 0 {
					return true
				}
				s.held[s.giver[t]][s.via[t]]--
				t = s.via[t]
			}
		}
		for j := range s.agents {
			if s.held[j][t] > 0 {
				s.reach(j, t)
			}
		}
	}
	return false
}

func (s *seats) reach(agent, via int) {
	for t, rate := range s.agents[agent].rate {
		if rate > 0 && s.giver[t] < 0 {
			s.giver[t], s.via[t] = agent, via
			s.queue = append(s.queue, t)
		}
	}
}
