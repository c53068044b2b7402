package report

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/metrics"
)

func TestWarmUp(t *testing.T) {
	// waits rise until a share of the jobs has come, and repeat a short pattern from then on
	rising := func(jobs int, share float64) []float64 {
		list := make([]float64, jobs)
		for i := range list {
			list[i] = 1000*min(1, float64(i)/(share*float64(jobs))) + float64(i%7)
		}
		return list
	}
	unknown := rising(400, 0.2)
	unknown[17] = math.NaN()
	cases := map[string]struct {
		waits       []float64
		measured    *metrics.Window
		least, most int
		unsettled   bool
	}{
		"settles":             {waits: rising(400, 0.2), least: 60, most: 90},
		"ten times the jobs":  {waits: rising(4000, 0.2), least: 700, most: 820},
		"at once":             {waits: rising(400, 0.001)},
		"within few":          {waits: rising(400, 0.02)},
		"never":               {waits: rising(400, 1), unsettled: true},
		"left out":            {waits: rising(400, 0.2), measured: &metrics.Window{First: 100, Last: -1}},
		"partly left out":     {waits: rising(400, 0.2), measured: &metrics.Window{First: 20, Last: -1}, least: 60, most: 90},
		"all alike":           {waits: make([]float64, 400)},
		"too few":             {waits: rising(150, 1)},
		"one that never ran":  {waits: unknown},
		"no jobs":             {},
		"as many as it takes": {waits: rising(200, 1), unsettled: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Run{Jobs: jobs{queueing: tc.waits}, Summary: &metrics.Summary{Measured: tc.measured}}
			settled, known := r.warmUp()
			if known == tc.unsettled || settled < tc.least || settled > tc.most {
				t.Errorf("settles after %d, known %v; want %d to %d, known %v", settled, known, tc.least, tc.most, !tc.unsettled)
			}
		})
	}
}
