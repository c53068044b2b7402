package core

import (
	"math"
	"testing"
)

func TestUnlikeRate(t *testing.T) {
	rates := &MixedTypeRates{SingleDeviceRates: []float64{2, 1, 0}, SyncSeconds: []float64{0, 0.1, 0.2}}
	for name, tc := range map[string]struct {
		devices []int
		want    float64
	}{
		"one device":                    {devices: []int{1, 0, 0}, want: 2},
		"two of one type":               {devices: []int{2}, want: 1 / (0.25 + 0.1)},
		"two types":                     {devices: []int{1, 1}, want: 1 / (1.0/3 + 0.1)},
		"none":                          {devices: []int{0, 0}, want: 0},
		"a type on which it cannot run": {devices: []int{1, 0, 1}, want: 0},
		"a type that nobody told of":    {devices: []int{0, 0, 0, 1}, want: 0},
		"more than were told of":        {devices: []int{4}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rates.Rate(tc.devices); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("rate = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStepTimesByType(t *testing.T) {
	times := &StepTimes{OneNode: []float64{1}, Types: []TypeTimes{{Accelerator: "v100", OneNode: []float64{0.5, 0.3}, ManyNodes: []float64{0, 0, 0.2}}}}
	if one, many := times.On("v100"); len(one) != 2 || len(many) != 3 {
		t.Errorf("on v100: %v and %v", one, many)
	}
	if one, many := times.On("k80"); len(one) != 1 || many != nil {
		t.Errorf("on an unlisted type: %v and %v", one, many)
	}
	if got := times.Most(); got != 3 {
		t.Errorf("most = %d, want 3", got)
	}
}
