package optim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrKnapsackInfeasible says that the forced jobs were not fitted in.
var ErrKnapsackInfeasible = errors.New("optim: no choice of the forced jobs fits")

// A Choice is one way to run a job: so many devices of one type, and what that is worth. A value may be negative.
type Choice struct {
	Type    int     // index of the type of the devices
	Devices int     // number of devices
	Value   float64 // what they are worth, in any unit
}

// A Menu is what a job chooses from: at most one choice, exactly one when forced. No choice is worth 0.
type Menu struct {
	Choices []Choice // that the job has
	Forced  bool     // whether the job must get one of them
}

// Knapsack solves the multiple-choice knapsack with one capacity per type: the selection of the largest value whose
// devices fit.
//
//   - Prices of devices by type make the jobs independent (Lagrange). The best prices are found exactly, by column
//     generation: the master problem has one row per type, so a basis of a few columns.
//   - A selection is made to fit: over capacity, jobs change to where they lose least for what they free; below it,
//     they improve while something fits.
//   - A core search (Pisinger, European Journal of Operational Research 83, 1995) closes the gap. At the best prices
//     every choice has a loss against its job's best. Jobs enter by their smallest loss, states are vectors of used
//     devices with their least loss, and those that lose too much are dropped. It is a branch and bound in layers,
//     exact unless it meets its limits, and then it says what is left could still be worth.
//
// A column takes time in proportion to all choices, prices take some tens of columns, a repair one pass a change.
//
// At the default limits a few devices for each of many jobs, or room for almost all, end in a proof. Some 40 jobs that
// take large parts of a few types need Width 1<<18 and Effort 1<<28, and up to a second.
//
// A Knapsack holds the buffers of its calls: it is reused, by one goroutine at a time. The zero value is ready.
type Knapsack struct {
	// Gap ends the search when the value is proven to be this close to the largest, as a part of it.
	Gap float64
	// Step says that every value is a multiple of it, which proves more; 0 says nothing.
	Step float64
	// Width is the most states the search keeps; 0 is 8,192, negative does without the search.
	Width int
	// Effort is the most changes of states the search makes, some 10 ns each; 0 is 1,000,000.
	Effort int

	capacity []int
	menus    []Menu
	master   mckpMaster
	bound    float64
	price    []float64
	base     []int     // the choice of each job at the best prices
	worth    []float64 // and what it is worth, devices paid
	asked    []float64
	dual     []float64
	picks    []int // the best selection that fits
	value    float64
	used     []int
	trial    []int
	core     mckpCore
}

// A Selection is a solution with its certificate. Its slices belong to the Knapsack and last until its next call.
type Selection struct {
	Picks  []int     // index of the choice of each job, -1 for none
	Value  float64   // sum of the values of the picks
	Bound  float64   // no selection is worth more, up to the rounding of the values
	Prices []float64 // of a device by type, at which the jobs' best choices prove the bound before the search
}

// Gap is how far the value may be from the largest, as a part of it.
func (s Selection) Gap() float64 {
	if s.Bound <= s.Value {
		return 0
	}
	return (s.Bound - s.Value) / math.Max(math.Abs(s.Value), 1e-300)
}

// Solve selects. It fails on malformed input, when it finds no place for the forced jobs (ErrKnapsackInfeasible), and
// when the context ends.
func (k *Knapsack) Solve(ctx context.Context, capacity []int, menus []Menu) (Selection, error) {
	if err := checkKnapsack(k.Gap, k.Step, k.Effort, capacity, menus); err != nil {
		return Selection{}, err
	}
	k.capacity, k.menus = capacity, menus
	for i, menu := range menus {
		fits := func(c Choice) bool { return c.Devices <= capacity[c.Type] }
		if menu.Forced && !slices.ContainsFunc(menu.Choices, fits) {
			return Selection{}, fmt.Errorf("%w: of job %d none fits an empty cluster", ErrKnapsackInfeasible, i)
		}
	}
	if err := k.priceOut(ctx); err != nil {
		return Selection{}, fmt.Errorf("optim: knapsack: %w", err)
	}
	k.value = math.Inf(-1)
	k.trial = append(k.trial[:0], k.base...)
	k.offer(k.trial)
	if k.Width >= 0 {
		if err := k.search(ctx); err != nil {
			return Selection{}, fmt.Errorf("optim: knapsack: %w", err)
		}
	}
	if math.IsInf(k.value, -1) {
		return Selection{}, ErrKnapsackInfeasible
	}
	return Selection{Picks: k.picks, Value: k.value, Bound: math.Max(k.bound, k.value), Prices: k.price}, nil
}

// mckpMost is the largest value, far from where sums overflow.
const mckpMost = 1e100

func checkKnapsack(gap, step float64, effort int, capacity []int, menus []Menu) error {
	var faults []error
	if !(gap >= 0) {
		faults = append(faults, fmt.Errorf("optim: knapsack: gap %v, want a number from 0 up", gap))
	}
	if !(step >= 0) || math.IsInf(step, 1) {
		faults = append(faults, fmt.Errorf("optim: knapsack: step %v, want a number from 0 up", step))
	}
	if effort < 0 {
		faults = append(faults, fmt.Errorf("optim: knapsack: effort %d, want a number from 0 up", effort))
	}
	for t, room := range capacity {
		if room < 0 || room > math.MaxInt32 {
			faults = append(faults, fmt.Errorf("optim: knapsack: capacity %d of type %d, want 0 to %d", room, t, math.MaxInt32))
		}
	}
	for i, menu := range menus {
		for c, choice := range menu.Choices {
			switch {
			case choice.Type < 0 || choice.Type >= len(capacity):
				faults = append(faults, fmt.Errorf("optim: knapsack: choice %d of job %d is of type %d, want 0 to %d", c, i, choice.Type, len(capacity)-1))
			case choice.Devices < 0:
				faults = append(faults, fmt.Errorf("optim: knapsack: choice %d of job %d has %d devices, want 0 or more", c, i, choice.Devices))
			case !(math.Abs(choice.Value) <= mckpMost):
				faults = append(faults, fmt.Errorf("optim: knapsack: choice %d of job %d is worth %v, want at most %v either way", c, i, choice.Value, mckpMost))
			}
		}
	}
	return errors.Join(faults...)
}
