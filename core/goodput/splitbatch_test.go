package goodput

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func TestSplitBatch(t *testing.T) {
	bert := core.BatchSpec{Initial: 12, Max: 384, MinPerDevice: 4, MaxPerDevice: 12}
	ncf := core.BatchSpec{Initial: 256, Max: 32768, MinPerDevice: 32, MaxPerDevice: 32768}
	cases := map[string]struct {
		total, replicas                 int
		spec                            core.BatchSpec
		wantPerDevice, wantAccumulation int
	}{
		"fits without accumulation":             {total: 48, replicas: 4, spec: bert, wantPerDevice: 12},
		"accumulates past the device bound":     {total: 384, replicas: 8, spec: bert, wantPerDevice: 12, wantAccumulation: 3},
		"rounds the share up":                   {total: 320, replicas: 6, spec: core.BatchSpec{Initial: 20, Max: 640, MaxPerDevice: 80}, wantPerDevice: 54},
		"never exceeds the largest batch":       {total: 384, replicas: 5, spec: bert, wantPerDevice: 10, wantAccumulation: 6},
		"one replica above the initial batch":   {total: 32768, replicas: 1, spec: ncf, wantPerDevice: 16384, wantAccumulation: 1},
		"one replica at the initial batch":      {total: 256, replicas: 1, spec: ncf, wantPerDevice: 256},
		"two replicas need no accumulation":     {total: 512, replicas: 2, spec: ncf, wantPerDevice: 256},
		"the zero specification bounds nothing": {total: 10, replicas: 3, wantPerDevice: 4},
		"nothing to split":                      {total: 0, replicas: 3, spec: bert},
		"nobody to split over":                  {total: 12, replicas: 0, spec: bert},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			perDevice, accumulation := SplitBatch(tc.total, tc.replicas, tc.spec)
			if perDevice != tc.wantPerDevice || accumulation != tc.wantAccumulation {
				t.Errorf("SplitBatch(%d, %d) = %d, %d; want %d, %d",
					tc.total, tc.replicas, perDevice, accumulation, tc.wantPerDevice, tc.wantAccumulation)
			}
		})
	}
}

func TestSplitBatchStaysWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := core.BatchSpec{
			Initial:      rapid.IntRange(1, 300).Draw(t, "initial"),
			Max:          rapid.IntRange(300, 40000).Draw(t, "max"),
			MaxPerDevice: rapid.IntRange(1, 40000).Draw(t, "max per device"),
		}
		total := rapid.IntRange(b.Initial, b.Max).Draw(t, "total")
		replicas := rapid.IntRange(1, 64).Draw(t, "replicas")
		perDevice, accumulation := SplitBatch(total, replicas, b)
		actual := replicas * perDevice * (accumulation + 1)
		if perDevice > b.MaxPerDevice || perDevice < 0 || accumulation < 0 || actual > b.Max {
			t.Fatalf("%d per device, %d accumulation steps, %d in all", perDevice, accumulation, actual)
		}
		if slack := replicas * (accumulation + 1); actual >= total+2*slack || actual <= total-slack && actual <= b.Max-slack {
			t.Fatalf("%d in all is not near %d", actual, total)
		}
	})
}

func TestSplitBatchAtItsBounds(t *testing.T) {
	for _, tc := range []struct {
		total, replicas int
		batch           core.BatchSpec
		device, steps   int
	}{
		{1, 1, core.BatchSpec{}, 1, 0},
		{0, 1, core.BatchSpec{}, 0, 0},
		{1, 0, core.BatchSpec{}, 0, 0},
		{64, 1, core.BatchSpec{Initial: 64}, 64, 0},
		{65, 1, core.BatchSpec{Initial: 64}, 33, 1},
		{65, 1, core.BatchSpec{}, 65, 0},
	} {
		if device, steps := SplitBatch(tc.total, tc.replicas, tc.batch); device != tc.device || steps != tc.steps {
			t.Errorf("%d over %d: %d and %d, want %d and %d", tc.total, tc.replicas, device, steps, tc.device, tc.steps)
		}
	}
}
