package gandivaaffinity

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	t.Run("gandiva_affinity", func(t *testing.T) {
		coretest.RunPlacer(t, New(), coretest.Pinning(), coretest.Evicting())
	})
	t.Run("gandiva_affinity of groups", func(t *testing.T) {
		coretest.RunPlacer(t, New(), coretest.Pinning(), coretest.Evicting(), coretest.Sharing())
	})
	t.Run("that moves nobody", func(t *testing.T) {
		coretest.RunPlacer(t, New(), coretest.Pinning(), coretest.WithConfig(map[string]any{"migrate": false, "defragment": false, "spread": false}))
	})
}
