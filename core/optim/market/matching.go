package market

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/quartet-sched/quartet/core/optim"
)

// A Matcher names what clears the market of a category.
type Matcher string

// The matchers.
const (
	Transport Matcher = "transport" // exact; also the empty name
	Auction   Matcher = "auction"   // Bertsekas': slower, for comparison
)

func (m Matcher) check() error {
	if m == "" || m == Transport || m == Auction {
		return nil
	}
	return fmt.Errorf("market: unknown matcher %q, want %q or %q", m, Transport, Auction)
}

// Values say what a job bids for a worker.
type Values string

// The values.
const (
	Gradient Values = "gradient" // how much the worker shortens the job; also the empty name
	// RawRates are the samples a second that the worker makes, as in a public replication, for comparison. Values that
	// do not say what the job gains clear the market, but nothing is exchanged after it, and bounds are -Inf.
	RawRates Values = "raw_rate"
)

func (v Values) check() error {
	if v == "" || v == Gradient || v == RawRates {
		return nil
	}
	return fmt.Errorf("market: unknown values %q, want %q or %q", v, Gradient, RawRates)
}

// Rounds of linearisation. The first finds most of the gain, later ones repair jobs whose speed is far from the mean,
// which exchanges repair as well where they follow.
const (
	rounds      = 8
	startRounds = 2
)

// A matching finds who gets which workers in a category. What is left to minimise there, Σ work/speed, is
// convex in the speeds: linearised at some speeds it values a worker of type t at work·rate_t/speed², the
// values clear the market, and the speeds move towards the outcome (Frank and Wolfe). The tangent that
// prices the market also bounds the category.
type matching struct {
	p         *problem
	matcher   Matcher
	values    Values
	transport optim.Transport
	auction   optim.Auction
	cost      [][]float64 // of a worker, by agent and type: minus its value
	column    []int       // type of each worker, for the auction
	value     [][]float64 // by agent and worker
	flow      [][]int
	speed     []float64 // where it is linearised
	held      [][]int   // the best so far
}

func newMatching(p *problem, options Options) *matching {
	m := &matching{
		p: p, matcher: options.Matcher, values: options.Values,
		speed: make([]float64, len(p.agents)), held: table(len(p.agents), len(p.count)),
	}
	m.cost = floats(len(p.agents), len(p.count))
	if m.matcher == Auction {
		for t, count := range p.count {
			for range count {
				m.column = append(m.column, t)
			}
		}
		m.value, m.flow = floats(len(p.agents), len(m.column)), table(len(p.agents), len(p.count))
	}
	return m
}

func floats(rows, columns int) [][]float64 {
	cells := make([]float64, rows*columns)
	out := make([][]float64, rows)
	for i := range out {
		out[i] = cells[i*columns : (i+1)*columns : (i+1)*columns]
	}
	return out
}

// solve fills held with the best assignment it finds in some rounds, and bounds the mean of the category from below.
func (m *matching) solve(ctx context.Context, category []int, rounds int) (bound float64, err error) {
	agents := m.p.agents
	for i := range agents {
		m.speed[i] = agents[i].mean * float64(category[i])
	}
	best, wires := math.Inf(1), 0.0
	for i := range agents {
		wires += agents[i].wires(category[i])
	}
	bound = math.Inf(-1)
	for round := range rounds {
		below, err := m.clear(ctx, category)
		if err != nil {
			return 0, err
		}
		bound = max(bound, below)
		step, total := 2/float64(round+3), 0.0
		for i := range agents {
			speed, _ := speedOf(agents[i].rate, m.flow[i])
			total += agents[i].work / speed
			m.speed[i] += step * (speed - m.speed[i])
		}
		if total < best {
			best = total
			for i, row := range m.flow {
				copy(m.held[i], row)
			}
		}
		if best-bound <= 1e-9*best || m.values == RawRates {
			break
		}
	}
	return (bound + wires) / float64(max(len(agents), 1)), nil
}

// clear fills flow with the best assignment at the tangent of the present speeds, and returns what the tangent proves.
func (m *matching) clear(ctx context.Context, category []int) (bound float64, err error) {
	for i := range m.p.agents {
		a := &m.p.agents[i]
		slope := a.work / (m.speed[i] * m.speed[i])
		bound += 2 * a.work / m.speed[i]
		if m.values == RawRates {
			slope, bound = 1, math.Inf(-1)
		}
		for t, rate := range a.rate {
			m.cost[i][t] = math.Inf(1)
			if rate > 0 {
				m.cost[i][t] = -slope * rate
			}
		}
	}
	if m.matcher == Auction {
		worth, err := m.sell(ctx, category)
		return bound - worth, err
	}
	shipment, err := m.transport.Solve(ctx, m.cost, category, m.p.count)
	if err != nil {
		return 0, fmt.Errorf("market: %w", err)
	}
	m.flow = shipment.Flow
	return bound + shipment.Bound, nil
}

// sell clears the market by an auction, and returns what no sale exceeds.
func (m *matching) sell(ctx context.Context, category []int) (float64, error) {
	for i, row := range m.value {
		for k, t := range m.column {
			row[k] = -m.cost[i][t]
		}
		clear(m.flow[i])
	}
	sale, err := m.auction.Solve(ctx, m.value, category)
	if errors.Is(err, optim.ErrAuctionInfeasible) {
		err = optim.ErrTransportInfeasible // one reason, whichever way it was found
	}
	if err != nil {
		return 0, fmt.Errorf("market: %w", err)
	}
	for k, i := range sale.Owners {
		if i >= 0 {
			m.flow[i][m.column[k]]++
		}
	}
	return sale.Bound, nil
}

// bound is a lower bound on the mean of a category, by the tangent at the speeds of an assignment.
func (m *matching) bound(ctx context.Context, held [][]int) (float64, error) {
	category := make([]int, len(held))
	wires := 0.0
	for i := range m.p.agents {
		a := &m.p.agents[i]
		m.speed[i], category[i] = speedOf(a.rate, held[i])
		wires += a.wires(category[i])
	}
	below, err := m.clear(ctx, category)
	return (below + wires) / float64(max(len(held), 1)), err
}
