package market

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// An exchange lets one agent give up a worker of one type and take one of another; the type beyond the last stands for
// nothing. Exchanges whose gives and takes match up around a cycle keep every worker with one owner: a cycle of two
// agents is a swap of types, or hands a worker over; idling is an agent too, who gains nothing by what it holds.
type exchange struct{ agent, gives, takes int }

// A cycle is two or three exchanges by different agents, and by how much the score falls.
type cycle struct {
	saves float64
	steps [3]exchange
	count int
}

// An exchanger improves an assignment by cycles of exchanges until none is left (Ahuja, Ergun, Orlin and Punnen,
// Discrete Applied Mathematics 123, 2002). For each pair of types only the two agents who gain most count, so a step
// costs O(S·T²) for S agents and T types, and O(T³) where only three can still agree.
type exchanger struct {
	p       *problem
	score   scoring
	held    [][]int
	idle    []int
	size    []int
	speed   []float64
	seconds []float64 // weighted
	trial   []float64
	slope   []float64   // of the score, by the seconds of an agent
	change  [][]float64 // of an agent's seconds, by what it gives and takes
	best    []runners   // by what is given and taken
	found   []cycle
}

// runners are the two agents who gain most by an exchange.
type runners struct {
	agent [2]int
	adds  [2]float64 // to the score
}

func newExchanger(p *problem) *exchanger {
	s, nodes := len(p.agents), len(p.count)+1
	return &exchanger{
		p: p, held: table(s, len(p.count)), idle: make([]int, len(p.count)), size: make([]int, s), speed: make([]float64, s),
		seconds: make([]float64, s), trial: make([]float64, s), slope: make([]float64, s),
		change: floats(s+1, nodes*nodes), best: make([]runners, nodes*nodes),
	}
}

// load starts from an assignment. What agents hold already is left as it is.
func (e *exchanger) load(held [][]int) {
	copy(e.idle, e.p.count)
	for i, row := range held {
		for t, n := range row {
			e.idle[t] -= n
		}
		if !slices.Equal(e.held[i], row) {
			copy(e.held[i], row)
			e.refresh(i)
		}
	}
	e.refresh(len(held))
}

// improve works until no cycle lowers the score; at fixed sizes, if told so. It returns the score.
func (e *exchanger) improve(ctx context.Context, fixed bool) (float64, error) {
	now := e.score.of(e.seconds)
	for {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("market: %w", err)
		}
		e.score.slopes(e.seconds, e.slope)
		e.rank(fixed)
		nodes := len(e.idle)
		if !fixed {
			nodes++
		}
		least := 1e-12 * math.Abs(now)
		next, done := e.try(e.pairs(nodes, least), now-least)
		if !done {
			next, done = e.try(e.triples(nodes, least), now-least)
		}
		if !done {
			return now, nil
		}
		now = next
	}
}

// rank finds the runners of every exchange.
func (e *exchanger) rank(fixed bool) {
	for x := range e.best {
		e.best[x] = runners{[2]int{-1, -1}, [2]float64{math.Inf(1), math.Inf(1)}}
	}
	for i, change := range e.change {
		slope := 0.0
		if i < len(e.slope) {
			slope = e.slope[i]
		}
		for x, seconds := range change {
			if math.IsInf(seconds, 1) {
				continue
			}
			adds, r := slope*seconds, &e.best[x]
			switch {
			case adds < r.adds[0]:
				r.agent[1], r.adds[1] = r.agent[0], r.adds[0]
				r.agent[0], r.adds[0] = i, adds
			case adds < r.adds[1]:
				r.agent[1], r.adds[1] = i, adds
			}
		}
	}
}

// pairs are the cycles of two that promise to save more than the least.
func (e *exchanger) pairs(nodes int, least float64) []cycle {
	e.found = e.found[:0]
	all := len(e.idle) + 1
	for x := range nodes {
		for y := x + 1; y < nodes; y++ {
			there, back := &e.best[x*all+y], &e.best[y*all+x]
			c := cycle{saves: least}
			for a, i := range there.agent {
				for b, j := range back.agent {
					if saves := -there.adds[a] - back.adds[b]; i != j && saves > c.saves {
						c = cycle{saves, [3]exchange{{i, x, y}, {j, y, x}}, 2}
					}
				}
			}
			if c.count > 0 {
				e.found = append(e.found, c)
			}
		}
	}
	return e.found
}

// triples are the cycles of three.
func (e *exchanger) triples(nodes int, least float64) []cycle {
	e.found = e.found[:0]
	all := len(e.idle) + 1
	for x := range nodes {
		for y := x + 1; y < nodes; y++ {
			for z := x + 1; z < nodes; z++ {
				if z == y {
					continue
				}
				one, two, three := &e.best[x*all+y], &e.best[y*all+z], &e.best[z*all+x]
				if -one.adds[0]-two.adds[0]-three.adds[0] <= least {
					continue
				}
				c := cycle{saves: least}
				for a, i := range one.agent {
					for b, j := range two.agent {
						for d, k := range three.agent {
							saves := -one.adds[a] - two.adds[b] - three.adds[d]
							if i != j && j != k && i != k && saves > c.saves {
								c = cycle{saves, [3]exchange{{i, x, y}, {j, y, z}, {k, z, x}}, 3}
							}
						}
					}
				}
				if c.count > 0 {
					e.found = append(e.found, c)
				}
			}
		}
	}
	return e.found
}

// try makes the first cycle, in the order of what they promise, that brings the score below a limit. Only
// fairness makes a promise that may not hold.
func (e *exchanger) try(cycles []cycle, limit float64) (float64, bool) {
	for len(cycles) > 0 {
		best := 0
		for c := range cycles {
			if cycles[c].saves > cycles[best].saves {
				best = c
			}
		}
		c := cycles[best]
		copy(e.trial, e.seconds)
		for _, x := range c.steps[:c.count] {
			if x.agent < len(e.trial) {
				e.trial[x.agent] += e.change[x.agent][x.gives*(len(e.idle)+1)+x.takes]
			}
		}
		if e.score.of(e.trial) < limit {
			e.apply(c.steps[:c.count])
			if score := e.score.of(e.seconds); score < limit {
				return score, true
			}
			for k, x := range c.steps { // rounding promised what is not there
				c.steps[k] = exchange{x.agent, x.takes, x.gives}
			}
			e.apply(c.steps[:c.count])
		}
		cycles[best] = cycles[len(cycles)-1]
		cycles = cycles[:len(cycles)-1]
	}
	return 0, false
}

func (e *exchanger) apply(steps []exchange) {
	for _, x := range steps {
		held := e.idle
		if x.agent < len(e.held) {
			held = e.held[x.agent]
		}
		if x.gives < len(held) {
			held[x.gives]--
		}
		if x.takes < len(held) {
			held[x.takes]++
		}
	}
	for _, x := range steps {
		e.refresh(x.agent)
	}
}

// refresh works out what the exchanges of an agent change.
func (e *exchanger) refresh(i int) {
	types := len(e.idle)
	change := e.change[i]
	if i == len(e.held) { // idling
		for gives := range types + 1 {
			for takes := range types + 1 {
				change[gives*(types+1)+takes] = math.Inf(1)
				if gives != takes && (gives == types || e.idle[gives] > 0) {
					change[gives*(types+1)+takes] = 0
				}
			}
		}
		return
	}
	a, held := &e.p.agents[i], e.held[i]
	e.speed[i], e.size[i] = speedOf(a.rate, held)
	e.seconds[i] = a.seconds(e.speed[i], e.size[i]) + a.moves(held)
	unlike := a.unlike(held)
	for gives := range types + 1 {
		speed, size := e.speed[i], e.size[i]
		able := true
		if gives < types {
			speed, size, able = speed-a.rate[gives], size-1, held[gives] > 0
		}
		for takes := range types + 1 {
			x := gives*(types+1) + takes
			change[x] = math.Inf(1)
			switch {
			case !able || gives == takes:
			case takes == types:
				if size >= a.least {
					change[x] = a.seconds(speed, size) + a.movesBy(held, unlike, gives, takes) - e.seconds[i]
				}
			case a.rate[takes] > 0 && size < a.most:
				change[x] = a.seconds(speed+a.rate[takes], size+1) + a.movesBy(held, unlike, gives, takes) - e.seconds[i]
			}
		}
	}
}

// unlike is the number of types of which an agent holds more or fewer than it did.
func (a *agent) unlike(held []int) (types int) {
	for t := range a.from {
		if held[t] != a.from[t] {
			types++
		}
	}
	return types
}

// movesBy is what moving costs after an exchange, from how many types are unlike before.
func (a *agent) movesBy(held []int, unlike, gives, takes int) float64 {
	if a.from == nil {
		return 0
	}
	off := func(t, by int) int {
		switch {
		case t == len(held):
			return 0
		case held[t] == a.from[t]:
			return 1
		case held[t]+by == a.from[t]:
			return -1
		}
		return 0
	}
	if unlike+off(gives, -1)+off(takes, 1) == 0 {
		return 0
	}
	return a.move
}
