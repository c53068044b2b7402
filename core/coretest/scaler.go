package coretest

import (
	"context"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// RunScaler holds a cluster elasticity policy to its contract.
func RunScaler(t *testing.T, f core.Factory[core.ClusterScaler], opts ...Option) {
	runChecks(t, checks(scalerSlot(f.Type), f, append([]Option{Pools()}, opts...)))
}

func scalerSlot(policyType string) slot[core.ClusterScaler] {
	return slot[core.ClusterScaler]{
		id:      "scaler/" + policyType,
		install: func(s *core.Stages, c core.Component[core.ClusterScaler]) { s.Scaler = c },
		wrap:    func(tr *trial[core.ClusterScaler]) core.ClusterScaler { return judgedScaler{tr} },
		ask: func(ctx context.Context, s core.ClusterScaler, q question) error {
			_, err := s.Scale(ctx, q.View, q.Plan)
			return err
		},
	}
}

type judgedScaler struct{ *trial[core.ClusterScaler] }

func (j judgedScaler) Scale(ctx context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	target := ask(j.trial, question{View: v, inputs: inputs{Plan: plan}}, func(s core.ClusterScaler, q question) (core.ClusterTarget, error) {
		return s.Scale(ctx, q.View, q.Plan)
	})
	if target.Nodes < 0 {
		j.t.Fatalf("wants %d nodes", target.Nodes)
	}
	return target, nil
}
