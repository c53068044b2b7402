package muri

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"ours":                   nil,
		"as published, L":        {"exchange": false, "steady": false},
		"as published, S":        {"knowledge": knowsRemaining, "exchange": false, "steady": false},
		"pairs, by what is left": {"knowledge": knowsRemaining, "largest_group": 2, "period": idealPeriod},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunAllocator(t, New(), coretest.WithConfig(config), coretest.Pinning(), coretest.Sharing())
		})
	}
	t.Run("where nobody shares", func(t *testing.T) { coretest.RunAllocator(t, New(), coretest.Pinning()) })
}
