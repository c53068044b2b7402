package elasticity

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// stepCurves turns step times into rates, in steps per second.
func stepCurves(times *core.StepTimes, accelerators []string) []core.Curve {
	if len(times.Types) == 0 {
		return []core.Curve{{OneNode: inverted(times.OneNode), ManyNodes: inverted(times.ManyNodes)}}
	}
	curves := make([]core.Curve, len(accelerators))
	for t, accelerator := range accelerators {
		one, many := times.On(accelerator)
		curves[t] = core.Curve{OneNode: inverted(one), ManyNodes: inverted(many)}
	}
	return curves
}

// unlikeRates are the rates on devices of different types, in steps per second; nil without times.
func unlikeRates(times *core.MixedTypeTimes, accelerators []string) *core.MixedTypeRates {
	if times == nil {
		return nil
	}
	rates := &core.MixedTypeRates{SingleDeviceRates: make([]float64, len(accelerators)), SyncSeconds: times.SyncSeconds}
	for _, alone := range times.SingleDeviceTimes {
		if t := slices.Index(accelerators, alone.Accelerator); t >= 0 && alone.Seconds > 0 {
			rates.SingleDeviceRates[t] = 1 / alone.Seconds
		}
	}
	return rates
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
