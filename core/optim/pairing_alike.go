package optim

import (
	"context"
	"slices"
)

// SolveAlike pairs vertices of which many are alike: the weight between two depends on their classes alone, numbered from 0; it is called once for each two
// classes c <= d. Otherwise it is as Solve, and as exact. Large graphs begin at the best fractional pairing of the classes, a
// transport problem, so that trees grow from a few odd vertices only, and of alike pairs only a few take part: where prices prove that more would
// make no difference, the others stay as they are. Weights are below 2^50.
func (m *Pairing) SolveAlike(class []int32, classes int, weight func(c, d int) int64) (mates []int32, total int64) {
	m.alike = grown(m.alike, classes*classes)
	for c := range classes {
		for d := c; d < classes; d++ {
			w := max(weight(c, d), 0)
			m.alike[c*classes+d], m.alike[d*classes+c] = w, w
		}
	}
	m.ships = m.ships[:0]
	started := len(class) > fewVertices && m.ship(class, classes)
	if started {
		m.seat(class)
		if total, proven := m.solveSome(class, classes); proven {
			return m.seats, total
		}
	}
	m.begin(len(class), func(u, v int) int64 { return m.alike[int(class[u])*classes+int(class[v])] })
	if started {
		for v, c := range class {
			m.price[v], m.mate[v] = m.level[c], m.seats[v]
		}
	}
	return m.finish()
}

const (
	// fewVertices is how many vertices are paired as fast without a start.
	fewVertices = 12
	// takePart is how many of alike pairs, or of alike vertices without a partner, are paired anew.
	takePart = 3
)

// shipment is pairs of vertices of two classes, or, with none as the second, vertices without a partner.
type shipment struct {
	c, d, pairs int
	model       [2]int32 // of those that take part, by their indices: what those are alike that do not
}

// ship finds a fractional pairing: each class ships to the classes; half of what two ship to each other are pairs, whose ends have the prices of their
// classes on both sides. It is false when there is none, which is only a start less.
func (m *Pairing) ship(class []int32, classes int) bool {
	m.cost, m.costs = grown(m.cost, classes*(classes+1)), m.costs[:0]
	m.supply, m.room = zeroed(m.supply, classes), zeroed(m.room, classes+1)
	for c := range classes {
		row := m.cost[c*(classes+1) : (c+1)*(classes+1)]
		for d := range classes {
			row[d] = -float64(m.alike[c*classes+d])
		}
		row[classes] = 0 // unmatched
		m.costs = append(m.costs, row)
	}
	for _, c := range class {
		m.supply[c]++
		m.room[c]++
	}
	m.room[classes] = len(class)
	plan, err := m.transport.Solve(context.Background(), m.costs, m.supply, m.room)
	if err != nil {
		return false
	}
	m.level, m.ships = grown(m.level, classes), m.ships[:0]
	for c := range classes {
		m.level[c] = 2 * (int64(plan.Prices[c]) - int64(plan.MarginalCosts[c]))
		left := m.supply[c]
		for d := range classes {
			pairs := (plan.Flow[c][d] + plan.Flow[d][c]) / 2
			if c == d {
				pairs = plan.Flow[c][c] / 2
			}
			if m.alike[c*classes+d] == 0 || pairs == 0 {
				continue
			}
			if left -= pairs; c == d {
				left -= pairs
			}
			if c <= d {
				m.ships = append(m.ships, shipment{c: c, d: d, pairs: pairs})
			}
		}
		m.ships = append(m.ships, shipment{c: c, d: none, pairs: left})
	}
	return true
}

// seat gives vertices the partners that were shipped to them, and lists those that take part.
func (m *Pairing) seat(class []int32) {
	m.seats, m.seatedAs, m.some = grown(m.seats, len(class)), grown(m.seatedAs, len(class)), m.some[:0]
	for v := range m.seats {
		m.seats[v], m.seatedAs[v] = none, none
	}
	for i := range m.ships {
		s := &m.ships[i]
		if s.d == none {
			continue
		}
		for u, v, k := 0, 0, 0; k < s.pairs; k++ {
			u = m.nextUnseated(class, s.c, u)
			m.seats[u] = int32(u) // taken
			v = m.nextUnseated(class, s.d, v)
			m.seats[u], m.seats[v] = int32(v), int32(u)
			m.seatedAs[u], m.seatedAs[v] = int32(i), none // at one end
			if k < takePart {
				m.some = append(m.some, int32(u), int32(v))
			}
		}
	}
	for i := range m.ships {
		s := &m.ships[i]
		for v, k := 0, 0; s.d == none && k < s.pairs; k++ {
			v = m.nextUnseated(class, s.c, v)
			m.seatedAs[v] = int32(i)
			if k < takePart {
				m.some = append(m.some, int32(v))
			}
			v++
		}
	}
}

// nextUnseated is the first vertex of a class, from v on, that has no partner.
func (m *Pairing) nextUnseated(class []int32, c, v int) int {
	for int(class[v]) != c || m.seats[v] != none {
		v++
	}
	return v
}

// solveSome pairs those that take part, and reports whether what it finds is best for all.
func (m *Pairing) solveSome(class []int32, classes int) (total int64, proven bool) {
	m.begin(len(m.some), func(u, v int) int64 { return m.alike[int(class[m.some[u]])*classes+int(class[m.some[v]])] })
	m.at = grown(m.at, len(class))
	for i, v := range m.some {
		m.at[v] = int32(i)
	}
	for i, v := range m.some {
		m.price[i] = m.level[class[v]]
		if mate := m.seats[v]; mate != none {
			m.mate[i] = m.at[mate]
		}
	}
	mates, total := m.finish()
	for i := range m.ships {
		s := &m.ships[i]
		rest := s.pairs - takePart
		if rest <= 0 {
			continue
		}
		if !m.prove(class, classes, s) {
			m.ships = m.ships[:0]
			return 0, false
		}
		if s.d != none {
			total += int64(rest) * m.alike[s.c*classes+s.d]
		}
	}
	for i, v := range m.some {
		m.seats[v] = none
		if mates[i] != none {
			m.seats[v] = m.some[mates[i]]
		}
	}
	return total, true
}

// prove finds a pair, or a vertex without a partner, that the rest of a shipment may be copies of: with their prices, and in the same blossoms, which stay odd and full. An
// edge of a copy then weighs no more than the prices around it, because that of the model does not; only edges between a model and its copies are new.
// So no pairing of all is heavier.
func (m *Pairing) prove(class []int32, classes int, s *shipment) bool {
	for u, v := range m.pairs {
		if int(class[m.some[u]]) != s.c {
			continue
		}
		if s.model = [2]int32{int32(u), v}; v == none {
			if _, inside := m.around(int32(u), int32(u)); s.d == none && inside == 0 && m.price[u] == 0 && m.alike[s.c*classes+s.c] == 0 {
				return true
			}
			continue
		}
		if s.d == none || int(class[m.some[v]]) != s.d {
			continue
		}
		both, one := m.around(int32(u), v)
		if one == 0 && 2*m.price[u]+both >= 4*m.alike[s.c*classes+s.c] && 2*m.price[v]+both >= 4*m.alike[s.d*classes+s.d] {
			return true
		}
	}
	return false
}

// around is the price of the blossoms that hold two vertices, and of those that hold one of them; of a vertex and itself, all is that of one.
func (m *Pairing) around(u, v int32) (both, one int64) {
	x, y := m.outer[u], m.outer[v]
	for ; x == y && u != v && int(x) >= m.n; x, y = *m.holder(x, u), *m.holder(y, v) {
		both += m.price[x]
	}
	for ; int(x) >= m.n; x = *m.holder(x, u) {
		one += m.price[x]
	}
	for ; int(y) >= m.n; y = *m.holder(y, v) {
		one += m.price[y]
	}
	return both, one
}

// complete extends a proof for those that took part to all.
func (m *Pairing) complete(p PairingProof) PairingProof {
	full := PairingProof{Prices: make([]int64, len(m.seats)), Sets: p.Sets}
	taken := make([]bool, len(m.seats))
	for i, v := range m.some {
		full.Prices[v], taken[v] = p.Prices[i], true
	}
	copies := make(map[int32][]int32) // by model
	for i := range m.ships {
		s := &m.ships[i]
		for v, k := 0, s.pairs-takePart; k > 0; v++ {
			if taken[v] || m.seatedAs[v] != int32(i) {
				continue
			}
			ends := []int32{int32(v), m.seats[v]}
			for e, end := range ends {
				if end != none {
					full.Prices[end], taken[end] = p.Prices[s.model[e]], true
					copies[s.model[e]] = append(copies[s.model[e]], end)
				}
			}
			k--
		}
	}
	for i := range full.Sets {
		var all []int32
		for _, v := range full.Sets[i].Vertices {
			all = append(append(all, m.some[v]), copies[v]...)
		}
		slices.Sort(all)
		full.Sets[i].Vertices = all
	}
	return full
}
