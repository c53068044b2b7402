package antman

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	for name, config := range map[string]map[string]any{"antman": nil, "antman with three beside": {"opportunistic_per_device": 3, "loads": loadsSummed}} {
		t.Run(name, func(t *testing.T) {
			coretest.RunPlacer(t, New(), coretest.Pinning(), coretest.Evicting(), coretest.Deadlines(), coretest.WithConfig(config))
		})
		t.Run(name+" where jobs share", func(t *testing.T) {
			coretest.RunPlacer(t, New(), coretest.Pinning(), coretest.Evicting(), coretest.Deadlines(), coretest.Sharing(), coretest.WithConfig(config))
		})
	}
}
