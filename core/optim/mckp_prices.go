package optim

import (
	"context"
	"math"
)

const (
	mckpColumns = 1000  // at most, while prices improve
	mckpClose   = 1e-10 // part of the bound below which prices are exact
	mckpSmooth  = 0.5   // how far the prices asked for stay from the master's, towards the best so far
)

// priceOut finds the prices that prove the smallest bound, and what every job chooses at them. Columns are
// selections the jobs make by themselves; the master mixes them to fit, and its duals are the next prices.
// Prices asked for lie between those and the best so far, without which the first ones swing (Pessoa et
// al., Informs Journal on Computing 30, 2018).
func (k *Knapsack) priceOut(ctx context.Context) error {
	types := len(k.capacity)
	k.base, k.worth = zeroed(k.base, len(k.menus)), zeroed(k.worth, len(k.menus))
	k.price, k.used = zeroed(k.price, types), zeroed(k.used, types)
	k.master.reset(k.capacity, k.least())
	best := math.Inf(1)
	k.asked, k.dual = zeroed(k.asked, types), zeroed(k.dual, types)
	for range mckpColumns {
		if err := ctx.Err(); err != nil {
			return err
		}
		bound, value := k.choose(k.asked)
		better := bound < best
		if better {
			best = bound
			copy(k.price, k.asked)
		}
		reached, entered := k.master.add(value, k.used, k.dual)
		if best-reached <= mckpClose*math.Max(1, math.Abs(best)) {
			break
		}
		stay := mckpSmooth
		if !better && !entered { // nothing learnt between the two: ask at the master's own
			stay = 0
		}
		same := true
		for t, dual := range k.dual {
			next := stay*k.price[t] + (1-stay)*dual
			same = same && next == k.asked[t]
			k.asked[t] = next
		}
		if same {
			break
		}
	}
	k.bound, _ = k.choose(k.price)
	return nil
}

// least is worth less than any selection: what forced jobs pay that have no place.
func (k *Knapsack) least() float64 {
	sum := 1.0
	for _, menu := range k.menus {
		most := 0.0
		for _, c := range menu.Choices {
			most = math.Max(most, math.Abs(c.Value))
		}
		sum += most
	}
	return -2 * sum
}

// choose lets every job choose at prices, and returns the bound this proves and what the selection is worth. Of choices
// alike the one with fewer devices wins, then the first.
func (k *Knapsack) choose(price []float64) (bound, value float64) {
	clear(k.used)
	for i := range k.menus {
		menu := &k.menus[i]
		best, pick, devices := 0.0, -1, 0
		if menu.Forced {
			best, devices = math.Inf(-1), math.MaxInt
		}
		for c := range menu.Choices {
			choice := &menu.Choices[c]
			if choice.Devices > k.capacity[choice.Type] {
				continue
			}
			worth := choice.Value - price[choice.Type]*float64(choice.Devices)
			if worth > best || worth == best && choice.Devices < devices {
				best, pick, devices = worth, c, choice.Devices
			}
		}
		k.base[i], k.worth[i] = pick, best
		bound += best
		if pick >= 0 {
			value += menu.Choices[pick].Value
			k.used[menu.Choices[pick].Type] += devices
		}
	}
	for t, p := range price {
		bound += p * float64(k.capacity[t])
	}
	return bound, value
}

// An mckpMaster mixes columns to the largest value that fits: max Σ λ·value, Σ λ·used ≤ capacity, Σ λ = 1. A primal
// simplex on a dense inverse of types+1 rows; the basis lasts from column to column. Columns 0 to types-1 are the
// slacks, the next one pays for having no column.
type mckpMaster struct {
	rows    int
	value   []float64
	cells   []float64 // of the columns, one after the other: devices by type, and 1
	basis   []int
	inverse []float64
	x       []float64 // of the basis
	dual    []float64
	way     []float64
}

func (m *mckpMaster) reset(capacity []int, penalty float64) {
	m.rows = len(capacity) + 1
	m.value, m.cells = zeroed(m.value, m.rows), zeroed(m.cells, m.rows*m.rows)
	m.inverse = zeroed(m.inverse, m.rows*m.rows)
	m.basis, m.x = zeroed(m.basis, m.rows), zeroed(m.x, m.rows)
	m.dual, m.way = zeroed(m.dual, m.rows), zeroed(m.way, m.rows)
	for r := range m.rows {
		m.cells[r*m.rows+r], m.inverse[r*m.rows+r] = 1, 1
		m.basis[r], m.x[r] = r, 1
	}
	for t, room := range capacity {
		m.x[t] = float64(room)
	}
	m.value[m.rows-1] = penalty
}

// add offers a column, and fills prices with the duals of the best mixture. It returns what that is worth, and
// whether the column has a part in finding it.
func (m *mckpMaster) add(value float64, used []int, prices []float64) (worth float64, entered bool) {
	m.value = append(m.value, value)
	for _, devices := range used {
		m.cells = append(m.cells, float64(devices))
	}
	m.cells = append(m.cells, 1)
	m.price()
	for range 50 * m.rows { // a few do; a circle of ties ends here
		column, most := -1, 1e-11*(1+math.Abs(m.dual[m.rows-1]))
		for c := range m.value {
			if gain := m.reduced(c); gain > most {
				column, most = c, gain
			}
		}
		if column < 0 || !m.pivot(column) {
			break
		}
		entered = entered || column == len(m.value)-1
		m.price()
	}
	for r, c := range m.basis {
		worth += m.value[c] * m.x[r]
	}
	for t := range prices {
		prices[t] = math.Max(0, m.dual[t])
	}
	return worth, entered
}

// price sets the duals: the values of the basis times its inverse.
func (m *mckpMaster) price() {
	clear(m.dual)
	for r, c := range m.basis {
		for s := range m.dual {
			m.dual[s] += m.value[c] * m.inverse[r*m.rows+s]
		}
	}
}

func (m *mckpMaster) reduced(column int) float64 {
	gain := m.value[column]
	for r, a := range m.cells[column*m.rows : (column+1)*m.rows] {
		gain -= m.dual[r] * a
	}
	return gain
}

// pivot brings a column into the basis, and reports whether something had to leave.
func (m *mckpMaster) pivot(column int) bool {
	leaves := -1
	for r := range m.way {
		m.way[r] = 0
		for s, a := range m.cells[column*m.rows : (column+1)*m.rows] {
			m.way[r] += m.inverse[r*m.rows+s] * a
		}
		if m.way[r] > 1e-11 && (leaves < 0 || m.x[r]*m.way[leaves] < m.x[leaves]*m.way[r]) {
			leaves = r
		}
	}
	if leaves < 0 {
		return false
	}
	pivot := m.inverse[leaves*m.rows : (leaves+1)*m.rows]
	for s := range pivot {
		pivot[s] /= m.way[leaves]
	}
	m.x[leaves] /= m.way[leaves]
	for r := range m.x {
		if r == leaves || m.way[r] == 0 {
			continue
		}
		m.x[r] = math.Max(0, m.x[r]-m.way[r]*m.x[leaves])
		for s, a := range pivot {
			m.inverse[r*m.rows+s] -= m.way[r] * a
		}
	}
	m.basis[leaves] = column
	return true
}
