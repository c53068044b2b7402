package twin

import (
	"math"
	"testing"
)

// The steps that a job tells in a future go on from those that policies were told, whatever work it is believed to have.
func TestStepsLeftGoOnFromWhatWasTold(t *testing.T) {
	noise := &curve{ends: []float64{100, 200, math.Inf(1)}, logs: []float64{-mostLog, 0, 0}}
	half := gain(2, 0) // the steps at twice the batch are worth that much from 100 on
	first := gain(2, -mostLog)
	nan := math.NaN()
	for name, tc := range map[string]struct {
		of   model
		want []float64
	}{
		"nobody is told":             {model{told: 5}, []float64{nan, nan, nan}},
		"as many as told":            {model{steps: true, told: 250}, []float64{250, 250 - 100/first, 250 - 100/first - 100/half}},
		"fewer than there are":       {model{steps: true, told: 100 / first}, []float64{100 / first, 0, 0}},
		"told later":                 {model{steps: true, told: 90, toldAt: 150, done: 160}, []float64{90 + 100/first + 50/half, 90, 90 - 50/half}}, // in the first phase where it begins anew
		"told long ago":              {model{steps: true, told: 90, done: 130}, []float64{90, 90, max(90-100/first-100/half, 0)}},
		"none are left, and it runs": {model{steps: true, toldAt: 120, done: 130}, []float64{100/first + 20/half, 0, 0}},
		"by what is declared":        {model{steps: true, told: nan, declared: 150}, []float64{100/first + 50/half, 50 / half, 0}},
		"by what is believed":        {model{steps: true, told: nan}, []float64{100/first + 200/half, 200 / half, 100 / half}},
	} {
		t.Run(name, func(t *testing.T) {
			m := tc.of
			m.noise, m.batch, m.total = noise, 2, 300
			m.begin()
			for phase, want := range tc.want {
				if got := m.StepsLeft(phase); math.Abs(got-want) > 1e-9 && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Errorf("%v steps left in phase %d, want %v", got, phase, want)
				}
			}
		})
	}
}
