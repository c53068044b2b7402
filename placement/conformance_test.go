package placement

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
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
	for name, factory := range map[string]core.Factory[core.Placer]{
		"first_fit": NewFirstFit(), "consolidated": NewConsolidated(), "most_free": NewMostFree(), "tiresias_skew": NewTiresiasSkew(), "proposed": NewProposed(),
	} {
		t.Run(name+" of groups", func(t *testing.T) { coretest.RunPlacer(t, factory, coretest.Pinning(), coretest.Sharing()) })
	}
	for name, factory := range map[string]core.Factory[core.Placer]{
		"fgd": NewFGD(), "fragmentation": NewFragmentation(), "best_fit": NewBestFit(), "dot_product": NewDotProduct(), "packing": NewPacking(), "clustering": NewClustering(), "random": NewRandom(),
	} {
		t.Run(name, func(t *testing.T) { coretest.RunPlacer(t, factory, coretest.Pinning()) })
		t.Run(name+" that spreads larger jobs alone", func(t *testing.T) {
			coretest.RunPlacer(t, factory, coretest.Pinning(), coretest.WithConfig(map[string]any{"spread": spreadLarger}))
		})
	}
	t.Run("buddy", func(t *testing.T) { coretest.RunPlacer(t, NewBuddy(), coretest.Pinning(), coretest.Evicting()) })
	t.Run("tail_eviction", func(t *testing.T) { coretest.RunPlacer(t, NewTailEviction(), coretest.Pinning(), coretest.Evicting()) })
	t.Run("tail_eviction as released", func(t *testing.T) {
		coretest.RunPlacer(t, NewTailEviction(), coretest.Pinning(), coretest.Evicting(), coretest.WithConfig(map[string]any{"fit": prefixSum}))
	})
	for name, config := range map[string]map[string]any{
		"synergy": nil, "synergy fair": {"mode": "fair"}, "synergy greedy, consolidated": {"mode": "greedy", "consolidate": true}, "synergy consolidated": {"consolidate": true},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunPlacer(t, NewSynergy(), coretest.Pinning(), coretest.WithConfig(config))
		})
		t.Run(name+", counted", func(t *testing.T) {
			coretest.RunPlacer(t, NewSynergy(), coretest.Pinning(), coretest.Sharing(), coretest.WithConfig(config))
		})
	}
	for _, mode := range []string{synergyFair, synergyGreedy, synergyTune} {
		t.Run("synergy anew, "+mode, func(t *testing.T) {
			coretest.RunPlacer(t, NewSynergy(), coretest.Pinning(), coretest.Sharing(), coretest.Evicting(), coretest.WithConfig(map[string]any{"replan": true, "mode": mode}))
		})
	}
	t.Run("cells", func(t *testing.T) { coretest.RunPlacer(t, NewCells(), coretest.Pinning(), coretest.Evicting()) })
	for name, config := range map[string]map[string]any{
		"cells of two tenants":    {},
		"cells with order inside": {"inside": insideOrder, "levels": []any{map[string]any{"name": "pair", "devices": 2}}},
		"cells in one piece":      {"strict": true, "inside": insideOrder},
	} {
		config["tenants"] = []any{
			map[string]any{"name": "blue", "cells": []any{map[string]any{"level": "node", "accelerator": "a100", "count": 1}, map[string]any{"level": "device", "accelerator": "t4", "count": 4}}},
			map[string]any{"name": "red", "cells": []any{map[string]any{"level": "rack", "accelerator": "a100", "count": 1}, map[string]any{"level": "node", "accelerator": "t4", "count": 2}}},
		}
		t.Run(name, func(t *testing.T) {
			coretest.RunPlacer(t, NewCells(), coretest.Pinning(), coretest.Evicting(), coretest.Deadlines(), coretest.WithConfig(config))
		})
	}
}
