package gavel

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	published := map[string]any{"recompute_interval": "1920s", "new_jobs": wait, "spare": spareRounds}
	blind := map[string]any{"type_blind": true, "types": shuffled}
	cases := map[string]struct {
		factory core.Factory[core.Allocator]
		config  map[string]any
	}{
		"max-min":                        {NewMaxMin(), nil},
		"max-min as published":           {NewMaxMin(), published},
		"max-min blind":                  {NewMaxMin(), blind},
		"max-min in one queue":           {NewMaxMin(), map[string]any{"global_queue": true, "accounts": kept}},
		"water-filling":                  {NewWaterFilling(), nil},
		"water-filling for tenants":      {NewWaterFilling(), map[string]any{"tenants": []any{map[string]any{"name": "blue", "weight": 2.0, "inside": fifo}}}},
		"water-filling by defaults":      {NewWaterFilling(), map[string]any{"tenants": []any{map[string]any{"name": "blue"}}}},
		"finish-time fairness":           {NewFinishTimeFairness(), nil},
		"finish-time fairness blind":     {NewFinishTimeFairness(), blind},
		"makespan":                       {NewMakespan(), nil},
		"makespan as published":          {NewMakespan(), map[string]any{"tolerance": 0.05, "new_jobs": wait}},
		"max-sum":                        {NewMaxSum(), nil},
		"best normalised sum":            {NewBestNormalisedSum(), nil},
		"best normalised sum with floor": {NewBestNormalisedSum(), map[string]any{"fairness_floor": 1.0}},
		"fifo_perf":                      {NewFIFOPerf(), nil},
		"fifo":                           {NewFIFOPerf(), blind},
		"isolated":                       {NewIsolated(), nil},
		"allox":                          {NewAlloX(), nil},
		"allox blind":                    {NewAlloX(), blind},
	}
	packed := map[string]struct {
		factory core.Factory[core.Allocator]
		config  map[string]any
	}{
		"max-min packed":                            {NewMaxMinPacked(), nil},
		"max-min packed as published":               {NewMaxMinPacked(), map[string]any{"recompute_interval": "1920s", "new_jobs": wait, "accounts": reset, "lease": "0s", "partners": allPartners, "least_gain": 0.0}},
		"max-min packed in one queue":               {NewMaxMinPacked(), map[string]any{"global_queue": true, "accounts": kept, "least_gain": 0.0, "types": shuffled}},
		"makespan packed":                           {NewMakespanPacked(), map[string]any{"least_gain": 0.0}},
		"finish-time fairness packed":               {NewFinishTimeFairnessPacked(), map[string]any{"least_gain": 0.0}},
		"finish-time fairness packed, all partners": {NewFinishTimeFairnessPacked(), map[string]any{"partners": allPartners}},
	}
	for name, tc := range packed {
		t.Run(name, func(t *testing.T) {
			coretest.RunAllocator(t, tc.factory, coretest.WithConfig(tc.config), coretest.Pinning(), coretest.Sharing())
		})
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			coretest.RunAllocator(t, tc.factory, coretest.WithConfig(tc.config), coretest.Pinning())
		})
		t.Run(name+" where jobs share devices", func(t *testing.T) {
			coretest.RunAllocator(t, tc.factory, coretest.WithConfig(tc.config), coretest.Pinning(), coretest.Sharing())
		})
	}
}
