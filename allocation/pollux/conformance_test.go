package pollux

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	cases := map[string]map[string]any{
		"published":            nil,
		"genetic":              {"search": "genetic", "generations": 5, "population": 10},
		"without avoidance":    {"avoid_interference": false},
		"short jobs first":     {"weights": "remaining", "fairness_p": 0.5, "reference": "best", "restart": "horizon"},
		"short service first":  {"weights": "attained", "reference": "one", "adaptive_horizon": true, "waiting_floor": "1h"},
		"resizing in place":    {"resize": map[string]any{"in_place": true, "overhead": "5s"}, "restart": "horizon"},
		"for free by age":      {"resize": map[string]any{"in_place": true}},
		"genetic in place":     {"search": "genetic", "generations": 5, "population": 10, "resize": map[string]any{"in_place": true}},
		"efficient devices":    {"weights": "remaining", "fairness_p": 0.25, "reference": "best", "restart": "horizon", "efficiency_weight": 0.3},
		"sum":                  {"fairness_p": 1},
		"product":              {"fairness_p": 0},
		"nearly the least one": {"fairness_p": -10},
	}
	for name, config := range cases {
		t.Run(name, func(t *testing.T) { coretest.RunAllocator(t, New(), coretest.WithConfig(config), coretest.Pinning()) })
	}
	for _, search := range []string{"exact", "genetic"} {
		t.Run(search+" where jobs share devices", func(t *testing.T) {
			config := map[string]any{"search": search, "generations": 5, "population": 10}
			coretest.RunAllocator(t, New(), coretest.WithConfig(config), coretest.Pinning(), coretest.Sharing())
		})
	}
}
