package sia

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	cases := map[string]map[string]any{
		"default":         nil,
		"published":       {"digits": 2, "clamp_restarts": false},
		"sum":             {"power": 1},
		"product":         {"power": 0},
		"nearly max-min":  {"power": -20},
		"restarts break":  {"finish_restarts": false, "restart_overhead": "0s"},
		"one node":        {"most_nodes": []any{map[string]any{"accelerator": "a100", "nodes": 1}}},
		"types ignored":   {"types": "blind"},
		"waiting is dear": {"waiting_penalty": 100},
	}
	for name, config := range cases {
		t.Run(name, func(t *testing.T) { coretest.RunAllocator(t, New(), coretest.WithConfig(config), coretest.Pinning()) })
		t.Run(name+" where jobs share devices", func(t *testing.T) {
			coretest.RunAllocator(t, New(), coretest.WithConfig(config), coretest.Pinning(), coretest.Sharing())
		})
	}
}
