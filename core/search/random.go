package search

import (
	"context"
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
)

// random draws each trial from the space, whatever was learned: numbers evenly or by their logarithms, choices evenly. It has no end. A trial costs one draw
// a dimension.
//
// Source: Bergstra, Bengio, Random Search for Hyper-Parameter Optimization (JMLR 2012).
type random struct {
	space Space
	rand  *rand.Rand
	history
}

// RandomConfig has no settings.
type RandomConfig struct{}

func (RandomConfig) suits(_, path string, p Problem) core.Diagnostics { return needsSpace(path, p) }

// NewRandom makes the factory of the search `random`.
func NewRandom() core.Factory[Method] {
	return core.NewFactory(core.Info{
		Type: "random", Summary: "draws every trial by chance",
		Description: "Each hyper-parameter on its own, as its scale says; without end.",
		Source:      "Bergstra, Bengio, Random Search for Hyper-Parameter Optimization (JMLR 2012)",
	}, RandomConfig{}, func(_ RandomConfig, s core.Settings) (Method, error) {
		return func(p Problem) (Search, error) { return &random{space: p.Space, rand: s.Rand}, nil }, nil
	})
}

// Ask draws n trials.
func (r *random) Ask(ctx context.Context, n int) ([]Trial, error) {
	if err := checkAsk(n); err != nil {
		return nil, err
	}
	var trials []Trial
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		trials = append(trials, r.add(r.space.Draw(r.rand)))
	}
	return trials, nil
}

// Tell learns nothing.
func (r *random) Tell(_ context.Context, results []Result) ([]int, error) {
	return nil, r.tell(results)
}

func (r *random) Close() error { return nil }
