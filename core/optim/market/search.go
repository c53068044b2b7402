package market

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core/optim"
)

const (
	samples       = 64 // categories drawn, unless told otherwise
	kicksPerAgent = 2
)

// A search goes from category to assignment. The base, the equal sizes, and of the categories drawn the one of each kind
// that looks best on mean workers, are matched and improved by exchanges; the best of them is disturbed and improved again.
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
		p: p, options: options, rng: rng, m: newMatching(p, options.Matcher), e: newExchanger(p),
		held: table(len(p.agents), len(p.count)), score: math.Inf(1),
	}
}

func (s *search) run(ctx context.Context) (Assignment, error) {
	if err := s.equalSizes(ctx); err != nil {
		return Assignment{}, err
	}
	for _, category := range append([][]int{s.p.base()}, s.drawn()...) {
		_, err := s.m.solve(ctx, category)
		if errors.Is(err, optim.ErrTransportInfeasible) {
			continue // of a job that runs on few types
		}
		if err != nil {
			return Assignment{}, err
		}
		s.e.load(s.m.held)
		if err := s.improve(ctx); err != nil {
			return Assignment{}, err
		}
	}
	for range s.kicks() {
		s.e.load(s.held)
		s.disturb()
		if err := s.improve(ctx); err != nil {
			return Assignment{}, err
		}
	}
	return s.outcome(ctx)
}

// equalSizes matches equal sizes as well as it can: the first start, and what fairness is measured by.
func (s *search) equalSizes(ctx context.Context) error {
	if _, err := s.m.solve(ctx, s.p.equal()); err != nil {
		return err
	}
	s.e.load(s.m.held)
	if _, err := s.e.improve(ctx, true); err != nil {
		return err
	}
	s.e.score = scoring{fairness: s.options.Fairness, equal: append([]float64(nil), s.e.seconds...)}
	for _, x := range s.e.seconds {
		s.e.score.total += x
	}
	return s.improve(ctx)
}

// improve exchanges to the end, and keeps the outcome when it is the best.
func (s *search) improve(ctx context.Context) error {
	score, err := s.e.improve(ctx, false)
	if err != nil {
		return err
	}
	if score < s.score {
		s.score = score
		for i, row := range s.e.held {
			copy(s.held[i], row)
		}
	}
	return nil
}

// drawn are the best of the categories drawn uniformly and of those drawn near the base, by the time on mean workers.
func (s *search) drawn() [][]int {
	n := s.options.Samples
	if n == 0 {
		n = samples
	}
	if n < 2 {
		return nil
	}
	uniform, base := s.p.newSampler(), s.p.base()
	sizes := make([]int, len(base))
	pick := func(draw func()) []int {
		least, best := math.Inf(1), make([]int, len(base))
		for range n / 2 {
			draw()
			sum := 0.0
			for i, size := range sizes {
				sum += s.p.agents[i].estimate(size)
			}
			if sum < least {
				least = sum
				copy(best, sizes)
			}
		}
		return best
	}
	return [][]int{
		pick(func() { uniform.draw(s.rng, sizes) }),
		pick(func() { copy(sizes, base); s.p.near(s.rng, sizes) }),
	}
}

func (s *search) kicks() int {
	if s.options.Kicks == 0 {
		return kicksPerAgent * len(s.p.agents)
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

func (s *search) outcome(ctx context.Context) (Assignment, error) {
	s.e.load(s.held)
	bound, err := s.m.bound(ctx, s.held)
	if err != nil {
		return Assignment{}, err
	}
	out := s.p.assignment(s.held, bound)
	out.Score = s.score
	out.Jain = jain(s.e.score.ratios(s.e.seconds))
	smallest := math.Inf(1)
	for i, x := range s.e.seconds {
		ratio := share(x, s.e.score.equal[i])
		smallest, out.Worst = min(smallest, ratio), max(out.Worst, ratio)
	}
	out.Spread = share(out.Worst, smallest)
	return out, nil
}
