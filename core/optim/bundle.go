package optim

import (
	"context"
	"fmt"
	"math"
)

// A Bundle is one way to serve a job: so much of two resources, and what that is worth.
type Bundle struct {
	Uses  [2]float64 // amounts of the two resources that it uses, not negative
	Value float64    // what it is worth, in any unit
}

// Bundles is the multiple-choice knapsack with two rows: one bundle for each job, of the largest value whose uses fit.
//
// Prices of the two resources make the jobs independent (Lagrange), and prove a bound; they are sought by subgradient steps
// (Polyak) against the best selection so far. A selection is made to fit by the changes that lose least for what they free, and
// then takes what gains while there is room. It takes Steps times the bundles, and a repair one pass a change.
//
// A Bundles holds the buffers of its calls: it is reused, by one goroutine at a time. The zero value is ready.
type Bundles struct {
	// Steps of the prices; 0 is 300.
	Steps int
	// Gap ends the search when the value is proven to be this close to the largest, as a part of it.
	Gap float64

	price, best [2]float64
	picks       []int
	trial       []int
}

// A BundleSelection is a solution with its certificate. Picks belong to the Bundles and last until its next call.
type BundleSelection struct {
	Picks  []int      // index of the bundle of each job
	Value  float64    // sum of the values of the picks
	Bound  float64    // no selection is worth more, up to rounding
	Prices [2]float64 // that prove it: capacity at the prices, and each job's best bundle less its price
}

// Gap is how far the value may be from the largest, as a part of it.
func (s BundleSelection) Gap() float64 { return Selection{Value: s.Value, Bound: s.Bound}.Gap() }

// bundleSteps are the steps of the prices unless told otherwise.
const bundleSteps = 300

// Solve selects. The first selection that it looks at is the first bundle of each job: where that fits the answer is never worth
// less. It fails on malformed input, when it finds nothing that fits (ErrKnapsackInfeasible), and when the context ends.
func (k *Bundles) Solve(ctx context.Context, capacity [2]float64, menus [][]Bundle) (BundleSelection, error) {
	if err := checkBundles(capacity, menus); err != nil {
		return BundleSelection{}, err
	}
	steps := k.Steps
	if steps == 0 {
		steps = bundleSteps
	}
	k.picks, k.trial = zeroed(k.picks, len(menus)), zeroed(k.trial, len(menus))
	k.price, k.best = [2]float64{}, [2]float64{}
	value, bound := math.Inf(-1), math.Inf(1)
	offer := func() {
		if k.repair(capacity, menus) {
			if worth := k.worth(menus); worth > value {
				value = worth
				copy(k.picks, k.trial)
			}
		}
	}
	offer()
	scale := 1.0
	for range steps {
		if err := ctx.Err(); err != nil {
			return BundleSelection{}, fmt.Errorf("optim: bundles: %w", err)
		}
		at, used := k.choose(capacity, menus)
		if at < bound {
			bound, k.best = at, k.price
		} else {
			scale *= 0.95
		}
		offer()
		distance := at - value
		if math.IsInf(value, -1) {
			distance = math.Abs(at) + 1
		}
		if bound-value <= k.Gap*math.Abs(value) || !k.step(capacity, used, scale*distance) {
			break
		}
	}
	if math.IsInf(value, -1) {
		return BundleSelection{}, ErrKnapsackInfeasible
	}
	return BundleSelection{Picks: k.picks, Value: value, Bound: math.Max(bound, value), Prices: k.best}, nil
}

// choose takes the best bundle of each job at the prices, the first of equal ones, and returns the bound that this proves and what is used.
func (k *Bundles) choose(capacity [2]float64, menus [][]Bundle) (bound float64, used [2]float64) {
	bound = k.price[0]*capacity[0] + k.price[1]*capacity[1]
	for i, menu := range menus {
		most := math.Inf(-1)
		for c, b := range menu {
			if net := b.Value - k.price[0]*b.Uses[0] - k.price[1]*b.Uses[1]; net > most {
				most, k.trial[i] = net, c
			}
		}
		bound += most
		b := &menu[k.trial[i]]
		used[0] += b.Uses[0]
		used[1] += b.Uses[1]
	}
	return bound, used
}

// step moves the prices by a subgradient, each row in parts of its capacity; false where they stay.
func (k *Bundles) step(capacity, used [2]float64, distance float64) bool {
	var over [2]float64
	norm := 0.0
	for r := range over {
		if capacity[r] > 0 {
			over[r] = (used[r] - capacity[r]) / capacity[r]
		} else if used[r] > 0 {
			over[r] = 1
		}
		if k.price[r] == 0 && over[r] < 0 {
			over[r] = 0
		}
		norm += over[r] * over[r]
	}
	if norm == 0 {
		return false
	}
	before := k.price
	for r := range over {
		unit := math.Max(capacity[r], 1e-9)
		k.price[r] = math.Max(0, k.price[r]+distance*over[r]/norm/unit)
	}
	return k.price != before
}

// repair changes the trial until it fits, and then improves it while something fits; false where nothing more can be freed.
func (k *Bundles) repair(capacity [2]float64, menus [][]Bundle) bool {
	var left [2]float64
	left = capacity
	for i, menu := range menus {
		for r := range left {
			left[r] -= menu[k.trial[i]].Uses[r]
		}
	}
	for missing(left, capacity) > 0 {
		job, to, least := -1, 0, math.Inf(1)
		for i, menu := range menus {
			from := &menu[k.trial[i]]
			for c := range menu {
				after := moved(left, from, &menu[c])
				freed := missing(left, capacity) - missing(after, capacity)
				if freed <= 0 {
					continue
				}
				if loss := (from.Value - menu[c].Value) / freed; loss < least {
					job, to, least = i, c, loss
				}
			}
		}
		if job < 0 {
			return false
		}
		left = moved(left, &menus[job][k.trial[job]], &menus[job][to])
		k.trial[job] = to
	}
	for {
		job, to, most := -1, 0, 0.0
		for i, menu := range menus {
			from := &menu[k.trial[i]]
			for c := range menu {
				if gain := menu[c].Value - from.Value; gain > most && missing(moved(left, from, &menu[c]), capacity) == 0 {
					job, to, most = i, c, gain
				}
			}
		}
		if job < 0 {
			return true
		}
		left = moved(left, &menus[job][k.trial[job]], &menus[job][to])
		k.trial[job] = to
	}
}

func moved(left [2]float64, from, to *Bundle) [2]float64 {
	return [2]float64{left[0] + from.Uses[0] - to.Uses[0], left[1] + from.Uses[1] - to.Uses[1]}
}

// bundleSlack is the part of a capacity by which rounding may exceed it.
const bundleSlack = 1e-9

// missing is how much of the capacities is missing, as parts of them.
func missing(left, capacity [2]float64) float64 {
	sum := 0.0
	for r := range left {
		if unit := math.Max(capacity[r], 1e-9); left[r] < -bundleSlack*unit {
			sum -= left[r] / unit
		}
	}
	return sum
}

func (k *Bundles) worth(menus [][]Bundle) float64 {
	sum := 0.0
	for i, menu := range menus {
		sum += menu[k.trial[i]].Value
	}
	return sum
}

func checkBundles(capacity [2]float64, menus [][]Bundle) error {
	var found problems
	for r, room := range capacity {
		if !(room >= 0) || room > mckpMost {
			found.add("optim: bundles: capacity %v of resource %d, want 0 to %v", room, r, mckpMost)
		}
	}
	for i, menu := range menus {
		if len(menu) == 0 {
			found.add("optim: bundles: job %d has no bundle", i)
		}
		for c, b := range menu {
			if !(math.Abs(b.Value) <= mckpMost) {
				found.add("optim: bundles: bundle %d of job %d is worth %v, want at most %v either way", c, i, b.Value, mckpMost)
			}
			for r, use := range b.Uses {
				if !(use >= 0) || use > mckpMost {
					found.add("optim: bundles: bundle %d of job %d uses %v of resource %d, want 0 to %v", c, i, use, r, mckpMost)
				}
			}
		}
	}
	return found.err()
}
