package search

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// tpe draws trials where good ones lie. The first are drawn by chance. From then on the trials that ended are ranked; two densities are laid over the space, l of
// the best 0.25 sqrt(n) and g of the others; candidates are drawn from l, and that with the greatest l/g is proposed. It has no end.
//
// Source: Bergstra et al., Algorithms for Hyper-Parameter Optimization (NIPS 2011), with the constants of Bergstra, Yamins, Cox (ICML 2013).
//
// Ranked before all are the trials that finished, by their values; then those that were stopped, by the step of their last report and then by its value: a
// trial that got farther looked better for longer. Failed ones and those without a finite value are in g. So are those that still run, as if they were to end
// badly (constant liar): what runs beside them is then looked for elsewhere.
//
// Deviations: a candidate is a whole trial, and a kernel of a density is one in all dimensions, so that what goes well together is found together; in the source each dimension is
// decided alone. A kernel is as wide as the distance to the nearest other point, and at least as a part of the range that shrinks with all trials; in the source as that
// to the farther of its two neighbours, and by the trials of the density: with three good trials of a hundred that is a fifth of the range, and finds nothing near them.
//
// A trial costs O(candidates n dimensions) after n trials.
type tpe struct {
	TPEConfig
	problem Problem
	rand    *rand.Rand
	history
}

// TPEConfig has the constants of the search.
type TPEConfig struct {
	Random     int `config:"random" doc:"trials that end before densities are formed; until then all are drawn by chance" min:"1" max:"1000000"` // trials that end before densities are formed
	Candidates int `config:"candidates" doc:"trials drawn from the density of good ones, the best of which is proposed" min:"1" max:"10000"`     // trials drawn from the density of good ones for each proposal
}

func (TPEConfig) suits(_, path string, p Problem) core.Diagnostics { return needsSpace(path, p) }

// NewTPE makes the factory of the search `tpe`.
func NewTPE() core.Factory[Method] {
	return core.NewFactory(core.Info{
		Type: "tpe", Summary: "draws trials where good ones lie: the tree-structured Parzen estimator",
		Description: "Learns from every trial that ended: the best 0.25 sqrt(n), at most 25, are held against the others. Stopped ones rank after finished ones, " +
			"failed ones last, and running ones count as bad, so that trials that run together differ.",
		Source: "Bergstra et al., Algorithms for Hyper-Parameter Optimization (NIPS 2011)",
	}, TPEConfig{Random: 10, Candidates: 24}, func(c TPEConfig, s core.Settings) (Method, error) {
		return func(p Problem) (Search, error) { return &tpe{TPEConfig: c, problem: p, rand: s.Rand}, nil }, nil
	})
}

// Ask proposes n trials, each as if those before it ran.
func (t *tpe) Ask(ctx context.Context, n int) ([]Trial, error) {
	if err := checkAsk(n); err != nil {
		return nil, err
	}
	ranked, others := t.split()
	var trials []Trial
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := t.propose(ranked, others)
		trials = append(trials, t.add(p))
		others = append(others, p)
	}
	return trials, nil
}

// Tell learns what ended.
func (t *tpe) Tell(_ context.Context, results []Result) ([]int, error) { return nil, t.tell(results) }

func (t *tpe) Close() error { return nil }

const (
	goodShare = 0.25 // of the root of the number of trials that ended
	mostGood  = 25
)

// split divides all trials into the best and the others; without best ones nothing has been learned.
func (t *tpe) split() (best, others []Params) {
	var order []int
	ended := 0
	for i := range t.trials {
		trial := &t.trials[i]
		if trial.ended {
			ended++
		}
		if trial.usable() {
			order = append(order, i)
		} else {
			others = append(others, trial.params)
		}
	}
	if ended < t.Random {
		order = nil
	}
	slices.SortFunc(order, func(a, b int) int { return t.compare(a, b) })
	good := min(int(math.Ceil(goodShare*math.Sqrt(float64(ended)))), mostGood, len(order))
	for rank, i := range order {
		if rank < good {
			best = append(best, t.trials[i].params)
		} else {
			others = append(others, t.trials[i].params)
		}
	}
	return best, others
}

// compare ranks trials that ended, the better one first.
func (t *tpe) compare(a, b int) int {
	x, y := &t.trials[a], &t.trials[b]
	if x.kind != y.kind {
		return cmp.Compare(x.kind, y.kind) // finished before stopped
	}
	if x.kind == Stopped && x.step != y.step {
		return cmp.Compare(y.step, x.step)
	}
	switch {
	case t.problem.Goal.Better(x.value, y.value):
		return -1
	case t.problem.Goal.Better(y.value, x.value):
		return 1
	}
	return cmp.Compare(a, b)
}

func (t *tpe) propose(best, others []Params) Params {
	if len(best) == 0 {
		return t.problem.Space.Draw(t.rand)
	}
	all := len(best) + len(others)
	l, g := newDensity(t.problem.Space, best, all), newDensity(t.problem.Space, others, all)
	var chosen Params
	greatest := math.Inf(-1)
	for range t.Candidates {
		p := l.draw(t.rand)
		if score := l.log(p) - g.log(p); chosen == nil || score > greatest {
			chosen, greatest = p, score
		}
	}
	return chosen
}
