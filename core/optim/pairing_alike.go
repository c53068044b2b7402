package optim

import "context"

// SolveAlike pairs vertices of which many are alike: the weight between two depends on their classes alone, numbered from 0; it is called once for each two
// classes c <= d. Otherwise it is as Solve, and as exact. Large graphs begin at the best fractional pairing of the classes, a
// transport problem, so that trees grow from a few odd vertices only. Weights are below 2^50.
func (m *Pairing) SolveAlike(class []int32, classes int, weight func(c, d int) int64) (mates []int32, total int64) {
	m.alike = grown(m.alike, classes*classes)
	for c := range classes {
		for d := c; d < classes; d++ {
			w := max(weight(c, d), 0)
			m.alike[c*classes+d], m.alike[d*classes+c] = w, w
		}
	}
	m.begin(len(class), func(u, v int) int64 { return m.alike[int(class[u])*classes+int(class[v])] })
	if len(class) > fewVertices {
		m.jump(class, classes)
	}
	return m.finish()
}

// fewVertices is how many vertices are paired as fast without a start.
const fewVertices = 64

// jump begins at a fractional pairing. It ships each class to the classes; half of what two ship to each other are pairs, whose ends
// have the prices of their classes on both sides.
func (m *Pairing) jump(class []int32, classes int) {
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
		return // the start is no more than a help
	}
	for v, c := range class {
		m.price[v] = 2 * (int64(plan.Prices[c]) - int64(plan.Units[c]))
	}
	for c := range classes {
		for d := c; d < classes; d++ {
			pairs := (plan.Flow[c][d] + plan.Flow[d][c]) / 2
			if c == d {
				pairs = plan.Flow[c][c] / 2
			}
			for u, v := 0, 0; pairs > 0 && m.alike[c*classes+d] > 0; pairs-- {
				u = m.nextUnmatched(class, c, u)
				m.mate[u] = int32(u) // taken
				v = m.nextUnmatched(class, d, v)
				m.mate[u], m.mate[v] = int32(v), int32(u)
			}
		}
	}
}

// nextUnmatched is the first vertex of a class, from v on, that has no mate.
func (m *Pairing) nextUnmatched(class []int32, c, v int) int {
	for int(class[v]) != c || m.mate[v] != none {
		v++
	}
	return v
}
