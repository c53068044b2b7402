package placement

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	t.Run("first_fit", func(t *testing.T) { coretest.RunPlacer(t, NewFirstFit(), coretest.Pinning()) })
	t.Run("consolidated", func(t *testing.T) { coretest.RunPlacer(t, NewConsolidated(), coretest.Pinning()) })
	t.Run("consolidated strict", func(t *testing.T) {
		coretest.RunPlacer(t, NewConsolidated(), coretest.Pinning(), coretest.WithConfig(map[string]any{"strict": true}))
	})
	t.Run("most_free", func(t *testing.T) { coretest.RunPlacer(t, NewMostFree(), coretest.Pinning()) })
	t.Run("tiresias_skew", func(t *testing.T) {
		coretest.RunPlacer(t, NewTiresiasSkew(), coretest.Pinning(), coretest.WithConfig(map[string]any{"skewed": []any{"bert", "ncf"}}))
	})
	t.Run("proposed", func(t *testing.T) { coretest.RunPlacer(t, NewProposed(), coretest.Pinning()) })
	t.Run("matching", func(t *testing.T) { coretest.RunPlacer(t, NewMatching(), coretest.Pinning()) })
	t.Run("matching by raw rates and an auction", func(t *testing.T) {
		coretest.RunPlacer(t, NewMatching(), coretest.Pinning(), coretest.WithConfig(map[string]any{"values": "raw_rate", "market": "auction"}))
	})
	t.Run("buddy", func(t *testing.T) { coretest.RunPlacer(t, NewBuddy(), coretest.Pinning(), coretest.Evicting()) })
	t.Run("tail_eviction", func(t *testing.T) { coretest.RunPlacer(t, NewTailEviction(), coretest.Pinning(), coretest.Evicting()) })
	t.Run("tail_eviction as released", func(t *testing.T) {
		coretest.RunPlacer(t, NewTailEviction(), coretest.Pinning(), coretest.Evicting(), coretest.WithConfig(map[string]any{"fit": prefixSum}))
	})
}
