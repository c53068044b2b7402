package report

import (
	"math"
	"testing"
)

// A slice is told as its part of the device, and a job without one as one on CPUs.
func TestPartsOfSlices(t *testing.T) {
	for profile, want := range map[string]float64{"": 0, "1g": 1000.0 / 7, "4g": 4000.0 / 7, "7g": math.NaN()} {
		if got := milliOf(profile); math.Abs(got-want) > 1e-9 || math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%q has %v thousandths, want %v", profile, got, want)
		}
	}
}
