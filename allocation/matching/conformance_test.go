package matching

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"gradient":      nil,
		"raw rates":     {"values": "raw_rate"},
		"blind":         {"values": "blind", "urgency": 0.5},
		"exact":         {"search": "exact", "restart_overhead": "0s"},
		"each category": {"search": "each_category", "samples": 8},
		"fair":          {"fairness": 0.5, "samples": 0, "kicks": 0},
	} {
		t.Run(name, func(t *testing.T) { coretest.RunAllocator(t, New(), coretest.WithConfig(config), coretest.Pinning()) })
		t.Run(name+" where jobs share devices", func(t *testing.T) {
			coretest.RunAllocator(t, New(), coretest.WithConfig(config), coretest.Pinning(), coretest.Sharing())
		})
	}
}
