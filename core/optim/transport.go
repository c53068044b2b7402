package optim

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// ErrTransportInfeasible says that the types do not hold what the suppliers must ship.
var ErrTransportInfeasible = errors.New("optim: the suppliers cannot ship everything")

// Transport ships goods at the least cost: supplier i must place supply[i] units, type t takes at most capacity[t] of
// them, a unit of i on t costs cost[i][t], +Inf where it must not go. Successive shortest paths with potentials (Ahuja,
// Magnanti and Orlin, chapter 9) on the dense table: every path ships as much as it carries, so identical units cost
// nothing extra. O(P·(S+T)·T) for S suppliers, T types and P paths, P at most the number of units and mostly near S.
//
// A Transport holds the buffers of its calls: it is reused, by one goroutine at a time. The zero value is ready.
type Transport struct {
	flow         []int
	rows         [][]int
	left         []int     // of the capacities
	unit         []float64 // potential of each supplier
	price        []float64 // potential of each type
	distance     []float64 // to each type
	reached      []float64 // distance of each supplier, +Inf when not reached
	from, via    []int     // the supplier a type was reached from, the type a supplier was reached through
	done         []bool
	supplierSeen []int
}

// Shipment is a plan of least cost with its certificate. Its slices belong to
// the Transport and last until its next call.
type Shipment struct {
	Flow [][]int // units by supplier and type
	Cost float64 // of the whole plan
	// Prices clear the market: no supplier would rather ship on another type at cost plus price, and a type with room
	// left has price 0.
	Prices []float64
	// MarginalCosts is what the last unit of each supplier costs, price included.
	MarginalCosts []float64
	Bound         float64 // Σ marginal costs·supply - Σ prices·capacity, the value of the duals: no plan costs less
}

// Solve finds a plan of least cost. It fails on a malformed table, when not everything can be shipped
// (ErrTransportInfeasible), and when the context ends.
func (tr *Transport) Solve(ctx context.Context, cost [][]float64, supply, capacity []int) (Shipment, error) {
	if err := checkTransport(cost, supply, capacity); err != nil {
		return Shipment{}, err
	}
	tr.reset(supply, capacity)
	for i, units := range supply {
		for units > 0 {
			if err := ctx.Err(); err != nil {
				return Shipment{}, fmt.Errorf("optim: transport: %w", err)
			}
			shipped := tr.augment(cost, i, units)
			if shipped == 0 {
				return Shipment{}, fmt.Errorf("%w: %d of supplier %d left", ErrTransportInfeasible, units, i)
			}
			units -= shipped
		}
	}
	return tr.shipment(cost, supply, capacity), nil
}

func checkTransport(cost [][]float64, supply, capacity []int) error {
	var faults []error
	if len(cost) != len(supply) {
		faults = append(faults, fmt.Errorf("optim: transport: %d rows of costs, want one for each of %d suppliers", len(cost), len(supply)))
	}
	for i, row := range cost {
		if len(row) != len(capacity) {
			faults = append(faults, fmt.Errorf("optim: transport: supplier %d has %d costs, want one for each of %d types", i, len(row), len(capacity)))
		}
		for t, c := range row {
			if math.IsNaN(c) || math.IsInf(c, -1) {
				faults = append(faults, fmt.Errorf("optim: transport: cost of supplier %d on type %d is %v, want a number, or +Inf where it must not go", i, t, c))
			}
		}
	}
	for i, units := range supply {
		if units < 0 {
			faults = append(faults, fmt.Errorf("optim: transport: supply %d of supplier %d is negative", units, i))
		}
	}
	for t, room := range capacity {
		if room < 0 {
			faults = append(faults, fmt.Errorf("optim: transport: capacity %d of type %d is negative", room, t))
		}
	}
	return errors.Join(faults...)
}

func (tr *Transport) reset(supply, capacity []int) {
	suppliers, types := len(supply), len(capacity)
	tr.flow = zeroed(tr.flow, suppliers*types)
	tr.rows = zeroed(tr.rows, suppliers)
	for i := range tr.rows {
		tr.rows[i] = tr.flow[i*types : (i+1)*types : (i+1)*types]
	}
	tr.left = append(tr.left[:0], capacity...)
	tr.unit, tr.reached = zeroed(tr.unit, suppliers), zeroed(tr.reached, suppliers)
	tr.price, tr.distance = zeroed(tr.price, types), zeroed(tr.distance, types)
	tr.via = zeroed(tr.via, suppliers)
	tr.from, tr.done = zeroed(tr.from, types), zeroed(tr.done, types)
}

// augment ships along the cheapest path from a supplier to a type with room, at most so many units, and says how many;
// 0 when no path is left.
func (tr *Transport) augment(cost [][]float64, root, units int) int {
	last, length := tr.shortest(cost, root)
	if last < 0 {
		return 0
	}
	for t, done := range tr.done {
		if done {
			tr.price[t] += length - tr.distance[t]
		}
	}
	for _, i := range tr.supplierSeen {
		tr.unit[i] += length - tr.reached[i]
	}
	shipped := min(units, tr.left[last])
	for t := last; tr.from[t] != root; t = tr.via[tr.from[t]] {
		shipped = min(shipped, tr.rows[tr.from[t]][tr.via[tr.from[t]]])
	}
	tr.left[last] -= shipped
	for t := last; ; {
		i := tr.from[t]
		tr.rows[i][t] += shipped
		if i == root {
			return shipped
		}
		t = tr.via[i]
		tr.rows[i][t] -= shipped
	}
}

// shortest labels types by their distance from the supplier, at reduced costs, up to
// the nearest with room; -1 when there is none.
func (tr *Transport) shortest(cost [][]float64, root int) (last int, length float64) {
	for t := range tr.distance {
		tr.distance[t], tr.done[t] = math.Inf(1), false
	}
	for i := range tr.reached {
		tr.reached[i] = math.Inf(1)
	}
	tr.supplierSeen = append(tr.supplierSeen[:0], root)
	tr.reached[root] = 0
	tr.unit[root] = math.Inf(1) // anchors the supplier at its cheapest type, so that reduced costs are not negative
	for t, c := range cost[root] {
		tr.unit[root] = min(tr.unit[root], c+tr.price[t])
	}
	if math.IsInf(tr.unit[root], 1) {
		return -1, 0
	}
	tr.relax(cost[root], root)
	for {
		nearest := -1
		for t, d := range tr.distance {
			if !tr.done[t] && !math.IsInf(d, 1) && (nearest < 0 || d < tr.distance[nearest]) {
				nearest = t
			}
		}
		if nearest < 0 {
			return -1, 0
		}
		if tr.left[nearest] > 0 {
			return nearest, tr.distance[nearest]
		}
		tr.done[nearest] = true
		for i, row := range tr.rows {
			if row[nearest] > 0 && math.IsInf(tr.reached[i], 1) {
				tr.reached[i] = tr.distance[nearest]
				tr.via[i] = nearest
				tr.supplierSeen = append(tr.supplierSeen, i)
				tr.relax(cost[i], i)
			}
		}
	}
}

func (tr *Transport) relax(cost []float64, i int) {
	for t, c := range cost {
		if tr.done[t] {
			continue
		}
		reduced := c + tr.price[t] - tr.unit[i]
		if reduced < 0 { // by rounding
			reduced = 0
		}
		if d := tr.reached[i] + reduced; d < tr.distance[t] {
			tr.distance[t], tr.from[t] = d, i
		}
	}
}

func (tr *Transport) shipment(cost [][]float64, supply, capacity []int) Shipment {
	s := Shipment{Flow: tr.rows, Prices: tr.price, MarginalCosts: tr.unit}
	for i, row := range tr.rows {
		tr.unit[i] = 0
		if supply[i] > 0 {
			tr.unit[i] = math.Inf(1)
			for t, c := range cost[i] {
				tr.unit[i] = min(tr.unit[i], c+tr.price[t])
			}
		}
		for t, units := range row {
			if units > 0 {
				s.Cost += float64(units) * cost[i][t]
			}
		}
		s.Bound += tr.unit[i] * float64(supply[i])
	}
	for t, price := range tr.price {
		s.Bound -= price * float64(capacity[t])
	}
	return s
}

// zeroed is the buffer at a length, all zero, grown when it must.
func zeroed[E any](buffer []E, length int) []E {
	if cap(buffer) < length {
		return make([]E, length)
	}
	buffer = buffer[:length]
	clear(buffer)
	return buffer
}
