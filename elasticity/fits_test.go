package elasticity

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// What is remembered is what would be fitted, for any measurements however much alike.
func TestFitsAreThoseOfTheMeasurements(t *testing.T) {
	j := trainingJob()
	ran(j, truth, 1, 1, 64)
	ran(j, truth, 1, 2, 64)
	swapped := []core.Measurement{j.Measured[1], j.Measured[0]}
	slower := []core.Measurement{j.Measured[0], j.Measured[1]}
	slower[1].StepSeconds *= 1.5
	for range 2 {
		for _, seen := range [][]core.Measurement{j.Measured, j.Measured[:1], swapped, slower} {
			if got, want := fit(seen), goodput.Fit(seen); got != want {
				t.Errorf("%+v: %+v, want %+v", seen, got, want)
			}
		}
	}
}
