package market

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core/optim"
)

const (
	samples = 16 // categories drawn, unless told otherwise
	kicks   = 32 // at most, unless told otherwise
	// drawnTable is the largest table for drawing categories uniformly; where it would be larger,
	// they are too many for a few draws to help.
	drawnTable = 1 << 20
)

// A search goes from category to assignment. The base, the equal sizes, and of the categories drawn
// the one of each kind that looks best on mean workers, are matched and improved by exchanges; the
// best of them is disturbed and improved again.
type search struct {
	p       *problem
	options Options
	rng     *rand.Rand
	m       *matching
	e       *exchanger
	held    [][]int // the best so far
	score   float64
}

func newSearch(p *problem, options Options, rng *rand.Rand) *search {
	return &search{
		p: p, options: options, rng: rng, m: newMatching(p, options), e: newExchanger(p),
		held: table(len(p.agents), len(p.count)), score: math.Inf(1),
	}
}

func (s *search) run(ctx context.Context) (Assignment, error) {
	var err error
	if s.e.score, err = equalSizes(ctx, s.m, s.e, s.options.Fairness); err != nil {
		return Assignment{}, err
	}
	if s.options.EachCategory {
		return s.sample(ctx)
	}
	if err := s.improve(ctx); err != nil { // from the equal sizes on
		return Assignment{}, err
	}
	starts := s.starts()
	for k, category := range starts {
		if slices.ContainsFunc(starts[:k], func(c []int) bool { return slices.Equal(c, category) }) {
			continue
		}
		if err := s.match(ctx, category); err != nil {
			return Assignment{}, err
		}
	}
	if s.stay() {
		if err := s.improve(ctx); err != nil {
			return Assignment{}, err
		}
	}
	for range s.kicks() {
		if err := s.kick(ctx); err != nil {
			return Assignment{}, err
		}
	}
	bound, err := s.m.bound(ctx, s.held)
	if err != nil {
		return Assignment{}, err
	}
	return s.p.assignment(s.held, bound, s.e.score), nil
}

// sample holds a market for the equal sizes and for each of the categories drawn, and takes the best outcome. Categories
// that the types do not hold, as jobs that run on few may have, are passed over.
func (s *search) sample(ctx context.Context) (Assignment, error) {
	s.e.load(s.m.held) // of the equal sizes, before exchanges
	s.keep(s.e.score.of(s.e.seconds))
	sizes, sampler := make([]int, len(s.p.agents)), s.p.newSampler()
	for range s.samples() {
		sampler.draw(s.rng, sizes)
		_, err := s.m.solve(ctx, sizes, rounds)
		if errors.Is(err, optim.ErrTransportInfeasible) {
			continue
		}
		if err != nil {
			return Assignment{}, err
		}
		s.e.load(s.m.held)
		s.keep(s.e.score.of(s.e.seconds))
	}
	bound, err := s.m.bound(ctx, s.held)
	if err != nil {
		return Assignment{}, err
	}
	return s.p.assignment(s.held, bound, s.e.score), nil
}

// stay starts from what the agents hold now, where moving costs them; those that do not run yet take what is left, or
// what the largest can spare. It reports whether there is such a start.
func (s *search) stay() bool {
	seats, any := s.p.newSeats(), false
	for i := range s.p.agents {
		a := &s.p.agents[i]
		size, fits := 0, a.from != nil
		for t := 0; fits && t < len(a.from); t++ {
			size += a.from[t]
			fits = a.from[t] <= seats.left[t] && (a.from[t] == 0 || a.rate[t] > 0)
		}
		if !fits || size < a.least || size > a.most {
			continue
		}
		any = true
		for t, n := range a.from {
			seats.held[i][t] = n
			seats.left[t] -= n
		}
	}
	for i := range s.p.agents {
		for any && total(seats.held[i]) < s.p.agents[i].least {
			any = seats.add(i, 1) || s.spare(seats, i)
		}
	}
	if any {
		s.e.load(seats.held)
	}
	return any
}

// spare frees a worker the agent can use, of the largest agent above its least.
func (s *search) spare(seats *seats, agent int) bool {
	from, of, most := -1, 0, 0
	for j, held := range seats.held {
		size := total(held)
		if j == agent || size <= s.p.agents[j].least || size <= most {
			continue
		}
		for t, n := range held {
			if n > 0 && s.p.agents[agent].rate[t] > 0 {
				from, of, most = j, t, size
				break
			}
		}
	}
	if from < 0 {
		return false
	}
	seats.held[from][of]--
	seats.left[of]++
	return true
}

func total(held []int) (size int) {
	for _, n := range held {
		size += n
	}
	return size
}

// match improves what the market makes of a category, if the types hold it: not always those of jobs that run on few.
func (s *search) match(ctx context.Context, category []int) error {
	_, err := s.m.solve(ctx, category, startRounds)
	if errors.Is(err, optim.ErrTransportInfeasible) {
		return nil
	}
	if err != nil {
		return err
	}
	s.e.load(s.m.held)
	return s.improve(ctx)
}

// kick disturbs the best and improves it again; where nothing may be exchanged, it matches sizes near the best ones.
func (s *search) kick(ctx context.Context) error {
	if s.options.Values != RawRates {
		s.e.load(s.held)
		s.disturb()
		return s.improve(ctx)
	}
	category := make([]int, len(s.held))
	for i, row := range s.held {
		category[i] = total(row)
	}
	s.p.near(s.rng, category)
	return s.match(ctx, category)
}

// equalSizes matches equal sizes as well as it can: what fairness is measured by. The exchanger holds the outcome.
func equalSizes(ctx context.Context, m *matching, e *exchanger, fairness float64) (scoring, error) {
	if _, err := m.solve(ctx, m.p.equal(), rounds); err != nil {
		return scoring{}, err
	}
	e.load(m.held)
	if m.values != RawRates {
		if _, err := e.improve(ctx, true); err != nil {
			return scoring{}, err
		}
	}
	s := scoring{fairness: fairness, equal: append([]float64(nil), e.seconds...)}
	for _, x := range s.equal {
		s.total += x
	}
	return s, nil
}

// improve exchanges to the end, unless the values forbid it, and keeps the outcome when it is the best.
func (s *search) improve(ctx context.Context) error {
	score := s.e.score.of(s.e.seconds)
	if s.options.Values != RawRates {
		var err error
		if score, err = s.e.improve(ctx, false); err != nil {
			return err
		}
	}
	s.keep(score)
	return nil
}

// keep takes what the exchanger holds when its score is the best.
func (s *search) keep(score float64) {
	if score < s.score {
		s.score = score
		for i, row := range s.e.held {
			copy(s.held[i], row)
		}
	}
}

func (s *search) samples() int {
	if s.options.Samples == 0 {
		return samples
	}
	return max(s.options.Samples, 0)
}

// starts are the base, the best of the categories drawn uniformly and the best of those drawn
// near the base, by the time on mean workers.
func (s *search) starts() [][]int {
	n := s.samples()
	base := s.p.base()
	out := [][]int{base}
	if len(base)*s.p.total <= drawnTable {
		uniform := s.p.newSampler()
		out = s.pick(out, n/2, func(sizes []int) { uniform.draw(s.rng, sizes) })
	}
	return s.pick(out, n-n/2, func(sizes []int) {
		copy(sizes, base)
		s.p.near(s.rng, sizes)
	})
}

// pick appends the best of n categories drawn, if any.
func (s *search) pick(out [][]int, n int, draw func([]int)) [][]int {
	sizes, best, least := make([]int, len(s.p.agents)), make([]int, len(s.p.agents)), math.Inf(1)
	for range n {
		draw(sizes)
		sum := 0.0
		for i, size := range sizes {
			sum += s.p.agents[i].estimate(size)
		}
		if sum < least {
			least = sum
			copy(best, sizes)
		}
	}
	if n <= 0 || math.IsInf(least, 1) {
		return out
	}
	return append(out, best)
}

func (s *search) kicks() int {
	if s.options.Kicks == 0 {
		return min(len(s.p.agents), kicks)
	}
	return max(s.options.Kicks, 0)
}

// disturb makes some random cycles of two.
func (s *search) disturb() {
	e, nodes := s.e, len(s.e.idle)+1
	for made, tries := 0, 0; made < 3 && tries < 100; tries++ {
		i, j := s.rng.IntN(len(e.held)), s.rng.IntN(len(e.held)+1)
		x, y := s.rng.IntN(nodes), s.rng.IntN(nodes)
		if i == j || math.IsInf(e.change[i][x*nodes+y], 1) || math.IsInf(e.change[j][y*nodes+x], 1) {
			continue
		}
		e.apply([]exchange{{i, x, y}, {j, y, x}})
		made++
	}
}
