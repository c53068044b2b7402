package elasticity

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	t.Run("fixed", func(t *testing.T) { coretest.RunElasticity(t, NewFixed(), coretest.Pinning()) })
	t.Run("fixed elastic", func(t *testing.T) {
		coretest.RunElasticity(t, NewFixed(), coretest.Pinning(), coretest.WithConfig(map[string]any{"replicas": elastic}))
	})
	t.Run("fixed with an oracle", func(t *testing.T) {
		coretest.RunElasticity(t, NewFixed(), coretest.Pinning(), coretest.WithConfig(map[string]any{"oracle": true}))
	})
	t.Run("fixed with a proportional split", func(t *testing.T) {
		coretest.RunElasticity(t, NewFixed(), coretest.Pinning(), coretest.WithConfig(map[string]any{"replicas": elastic, "split": proportional}))
	})
}

func TestGoodputConformance(t *testing.T) {
	cases := map[string]map[string]any{
		"learned":           nil,
		"without work left": {"declared_work": false},
		"oracle":            {"knowledge": "oracle"},
		"exact":             {"knowledge": "exact"},
		"profiled":          {"profiled": true},
		"blind to types":    {"types": "blind"},
		"with a warm-up":    {"declared_work": false, "scaling_rule": "legew", "warmup_iterations": 100.0},
	}
	for name, config := range cases {
		t.Run(name, func(t *testing.T) {
			coretest.RunElasticity(t, NewGoodput(), coretest.Pinning(), coretest.WithConfig(config))
		})
	}
}

func TestLossGainConformance(t *testing.T) {
	cases := map[string]map[string]any{
		"requested":           nil,
		"requested, oracle":   {"knowledge": "oracle"},
		"requested, restarts": {"restart": "30s", "horizon": "5m"},
		"goodput":             {"batch": "goodput"},
		"goodput, oracle":     {"batch": "goodput", "knowledge": "oracle"},
	}
	for name, config := range cases {
		t.Run(name, func(t *testing.T) {
			coretest.RunElasticity(t, NewLossGain(), coretest.Pinning(), coretest.Reporting(), coretest.WithConfig(config))
		})
	}
}
