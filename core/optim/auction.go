package optim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrAuctionInfeasible says that the bidders cannot all be served.
var ErrAuctionInfeasible = errors.New("optim: the workers do not meet every demand")

// Auction sells workers to jobs for the largest total value: job i buys demand[i] of them, a worker goes to one job at
// most, value[i][k] is what worker k is worth to job i, -Inf where it is worth nothing at any price. The forward
// auction of Bertsekas (Annals of Operations Research 14, 1988), each job sending as many unit bidders as it demands,
// who do not bid on a worker of their own job. Prices start at 0, and a worker nobody wants keeps that price.
//
// The total is within Epsilon·Σ demand of the largest, so exactly the largest for integer values when Epsilon is below
// 1/Σ demand. Where Epsilon is 0, Solve uses a thousandth less than that limit for integer values; for others, what
// keeps the total within a thousandth of their span. No raise is less than a millionth of the largest value. Time grows
// with the span over Epsilon; Transport is faster, and always exact.
//
// An Auction holds the buffers of its calls: it is reused, by one goroutine at a time. The zero value is ready.
type Auction struct {
	Epsilon float64 // the least raise

	owner   []int
	price   []float64
	waiting []int // unit bidders without a worker, by job
	own     []float64
	ones    []int
	costs   [][]float64
	cells   []float64
	check   Transport
}

// A Sale is the outcome of an auction with its certificate. Its slices belong
// to the Auction and last until its next call.
type Sale struct {
	Owners []int     // job of each worker, -1 when unsold
	Value  float64   // sum of what the workers sold are worth to their jobs
	Prices []float64 // of the workers
	Bound  float64   // what the jobs' best sets are worth at these prices, plus the prices: no sale is worth more
	Bids   int       // number of bids that it took
}

// Solve holds an auction. It fails on malformed values, when no sale meets every demand
// (ErrAuctionInfeasible), and when the context ends.
func (a *Auction) Solve(ctx context.Context, value [][]float64, demand []int) (Sale, error) {
	workers := 0
	if len(value) > 0 {
		workers = len(value[0])
	}
	if err := a.inspect(ctx, value, demand, workers); err != nil {
		return Sale{}, err
	}
	raise, span := a.raise(value, demand)
	if math.IsInf(span, 1) {
		return Sale{}, errors.New("optim: auction: the values are too far apart for a price")
	}
	a.owner, a.price = zeroed(a.owner, workers), zeroed(a.price, workers)
	for k := range a.owner {
		a.owner[k] = -1
	}
	a.waiting = a.waiting[:0]
	for i, units := range slices.Backward(demand) {
		for range units {
			a.waiting = append(a.waiting, i)
		}
	}
	bids := 0
	for ; len(a.waiting) > 0; bids++ {
		if bids%1024 == 0 && ctx.Err() != nil {
			return Sale{}, fmt.Errorf("optim: auction: %w", ctx.Err())
		}
		i := a.waiting[len(a.waiting)-1]
		a.waiting = a.waiting[:len(a.waiting)-1]
		if !a.bid(i, value[i], raise, span) {
			return Sale{}, errors.New("optim: auction: a raise is lost to the rounding of a price: the values are too far apart")
		}
	}
	sale := Sale{Owners: a.owner, Prices: a.price, Bids: bids}
	for k, i := range a.owner {
		if i >= 0 {
			sale.Value += value[i][k]
		}
		sale.Bound += a.price[k]
	}
	for i, units := range demand {
		sale.Bound += a.best(value[i], units)
	}
	return sale, nil
}

// leastRaise is the least raise as a part of the largest value.
const leastRaise = 1e-6

// bid lets one unit of a job bid for the worker that pays it most at present prices, up to where the second best
// does. It reports whether that raised the price.
func (a *Auction) bid(i int, value []float64, raise, span float64) bool {
	best, first, second := -1, math.Inf(-1), math.Inf(-1)
	for k, v := range value {
		if a.owner[k] == i || math.IsInf(v, -1) {
			continue
		}
		if pays := v - a.price[k]; pays > first {
			best, first, second = k, pays, first
		} else if pays > second {
			second = pays
		}
	}
	if math.IsInf(second, -1) { // nothing else will do: out of reach of whoever has a choice
		second = first - span
	}
	before := a.price[best]
	a.price[best] += first - second + raise
	if !(a.price[best] > before) || math.IsInf(a.price[best], 1) {
		return false
	}
	if loser := a.owner[best]; loser >= 0 {
		a.waiting = append(a.waiting, loser)
	}
	a.owner[best] = i
	return true
}

// best is what the best workers of a job pay it at present prices.
func (a *Auction) best(value []float64, units int) float64 {
	a.own = a.own[:0] // descending
	for k, v := range value {
		pays := v - a.price[k]
		if len(a.own) == units && (units == 0 || pays <= a.own[units-1]) {
			continue
		}
		if len(a.own) < units {
			a.own = append(a.own, pays)
		} else {
			a.own[units-1] = pays
		}
		for at := len(a.own) - 1; at > 0 && a.own[at] > a.own[at-1]; at-- {
			a.own[at], a.own[at-1] = a.own[at-1], a.own[at]
		}
	}
	sum := 0.0
	for _, pays := range a.own {
		sum += pays
	}
	return sum
}

// raise is the least raise, with the span of the values.
func (a *Auction) raise(value [][]float64, demand []int) (raise, span float64) {
	low, high, integer := math.Inf(1), math.Inf(-1), true
	for _, row := range value {
		for _, v := range row {
			if math.IsInf(v, -1) {
				continue
			}
			low, high = math.Min(low, v), math.Max(high, v)
			integer = integer && v == math.Trunc(v)
		}
	}
	span = math.Max(high-low, 1e-300)
	total := 0
	for _, units := range demand {
		total += units
	}
	switch {
	case a.Epsilon > 0:
		raise = a.Epsilon
	case integer:
		raise = 0.999 / float64(max(total, 1))
	default:
		raise = span / 1000 / float64(max(total, 1))
	}
	// Smaller raises would drown in the rounding of the prices, and a war of bids
	// over so many would not end in our time.
	return math.Max(raise, math.Max(math.Abs(high), math.Abs(low))*leastRaise), span
}

// inspect tells every fault of the input, and whether the demands can be met at all.
func (a *Auction) inspect(ctx context.Context, value [][]float64, demand []int, workers int) error {
	var faults []error
	if len(value) != len(demand) {
		faults = append(faults, fmt.Errorf("optim: auction: %d rows of values, want one for each of %d jobs", len(value), len(demand)))
	}
	if a.Epsilon < 0 || math.IsNaN(a.Epsilon) || math.IsInf(a.Epsilon, 0) {
		faults = append(faults, fmt.Errorf("optim: auction: raise %v, want a positive number, or 0 to choose one", a.Epsilon))
	}
	a.costs, a.cells = zeroed(a.costs, len(value)), zeroed(a.cells, len(value)*workers)
	for i, row := range value {
		if len(row) != workers {
			faults = append(faults, fmt.Errorf("optim: auction: job %d has %d values, want one for each of %d workers", i, len(row), workers))
			continue
		}
		a.costs[i] = a.cells[i*workers : (i+1)*workers]
		for k, v := range row {
			switch {
			case math.IsNaN(v) || math.IsInf(v, 1):
				faults = append(faults, fmt.Errorf("optim: auction: value of worker %d to job %d is %v, want a number, or -Inf where it is worth nothing", k, i, v))
			case math.IsInf(v, -1):
				a.costs[i][k] = math.Inf(1)
			}
		}
	}
	for i, units := range demand {
		if units < 0 {
			faults = append(faults, fmt.Errorf("optim: auction: demand %d of job %d is negative", units, i))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	a.ones = zeroed(a.ones, workers)
	for k := range a.ones {
		a.ones[k] = 1
	}
	if _, err := a.check.Solve(ctx, a.costs, demand, a.ones); err != nil {
		if errors.Is(err, ErrTransportInfeasible) {
			return ErrAuctionInfeasible
		}
		return err
	}
	return nil
}
