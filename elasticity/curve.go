package elasticity

import "github.com/quartet-sched/quartet/core"

// stepCurves turns step times into rates, in steps per second.
func stepCurves(times *core.StepTimes) []core.Curve {
	return []core.Curve{{OneNode: inverted(times.OneNode), ManyNodes: inverted(times.ManyNodes)}}
}

func inverted(seconds []float64) []float64 {
	rates := make([]float64, len(seconds))
	for i, s := range seconds {
		if s > 0 {
			rates[i] = 1 / s
		}
	}
	return rates
}

// linearCurves is the curve of a job of known duration: at the requested replicas it does a second of work in a
// second, and the rate is proportional.
func linearCurves(requested, most int) []core.Curve {
	rates := make([]float64, most)
	for i := range rates {
		rates[i] = float64(i+1) / float64(requested)
	}
	return []core.Curve{{OneNode: rates, ManyNodes: rates}}
}
