package scaler

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
)

// NewNone leaves the cluster as it is.
func NewNone() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{
		Type:        "none",
		Summary:     "leaves the number of nodes as it is",
		Description: "Never has an opinion on the size of the cluster. It is the only scaler there is: no backend adds or removes nodes yet. O(1).",
	}, core.None{}, func(core.None, core.Settings) (core.ClusterScaler, error) { return none{}, nil })
}

type none struct{}

func (none) Scale(context.Context, *core.View, *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{}, nil
}

// Standing is for ever: it never has an opinion.
func (none) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }
