package market

import "slices"

// moves is the cost of holding so many workers by type, for an agent that holds others.
func (a *agent) moves(held []int) float64 {
	if a.move == 0 || slices.Equal(a.holds, held) {
		return 0
	}
	return a.move
}

// returns is the exchange, by what is given and taken, that leads an agent back to what it holds; -1 for none.
func (a *agent) returns(held []int) int {
	if a.holds == nil {
		return -1
	}
	gives, takes := len(held), len(held)
	for t, n := range held {
		switch {
		case n == a.holds[t]:
		case n == a.holds[t]+1 && gives == len(held):
			gives = t
		case n == a.holds[t]-1 && takes == len(held):
			takes = t
		default:
			return -1
		}
	}
	return gives*(len(held)+1) + takes
}

// stay loads the assignment that leaves the agents what they hold, and gives the others their least: of what idles, and
// then of those that hold most above theirs. It is false when there is none, or nobody holds anything.
func (p *problem) stay(e *exchanger) bool {
	s, size, holding := p.newSeats(), make([]int, len(p.agents)), false
	for i := range p.agents {
		if a := &p.agents[i]; a.holds != nil && s.take(i, a.holds) {
			_, size[i] = speedOf(a.rate, a.holds)
			holding = true
		}
	}
	if !holding {
		return false
	}
	for i := range p.agents {
		for size[i] < p.agents[i].least {
			if s.add(i, 1) {
				size[i]++
				continue
			}
			richest := -1
			for j, n := range size {
				if above := n - p.agents[j].least; above > 0 && (richest < 0 || above > size[richest]-p.agents[richest].least) {
					richest = j
				}
			}
			if richest < 0 {
				return false
			}
			s.drop(richest)
			size[richest]--
		}
	}
	e.load(s.held)
	return true
}
