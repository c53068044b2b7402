package placement

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	t.Run("first_fit", func(t *testing.T) { coretest.RunPlacer(t, NewFirstFit()) })
	t.Run("consolidated", func(t *testing.T) { coretest.RunPlacer(t, NewConsolidated()) })
	t.Run("consolidated strict", func(t *testing.T) {
		coretest.RunPlacer(t, NewConsolidated(), coretest.WithConfig(map[string]any{"strict": true}))
	})
	t.Run("most_free", func(t *testing.T) { coretest.RunPlacer(t, NewMostFree()) })
	t.Run("tiresias_skew", func(t *testing.T) {
		coretest.RunPlacer(t, NewTiresiasSkew(), coretest.WithConfig(map[string]any{"skewed": []any{"bert", "ncf"}}))
	})
	t.Run("proposed", func(t *testing.T) { coretest.RunPlacer(t, NewProposed()) })
	t.Run("matching", func(t *testing.T) { coretest.RunPlacer(t, NewMatching()) })
	t.Run("matching by raw rates and an auction", func(t *testing.T) {
		coretest.RunPlacer(t, NewMatching(), coretest.WithConfig(map[string]any{"values": "raw_rate", "market": "auction"}))
	})
	t.Run("tail_eviction", func(t *testing.T) { coretest.RunPlacer(t, NewTailEviction(), coretest.Evicting()) })
	t.Run("tail_eviction as released", func(t *testing.T) {
		coretest.RunPlacer(t, NewTailEviction(), coretest.Evicting(), coretest.WithConfig(map[string]any{"fit": prefixSum}))
	})
}
