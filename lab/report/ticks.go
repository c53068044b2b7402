package report

import "math"

// secondSteps are the distances of marks on an axis of time, between a second and 100 days.
var secondSteps = [...]float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000}

const day = 86400 // seconds

// mostTicks bounds the marks of an axis.
const mostTicks = 7

// A tick is a mark of an axis; one without a label is shorter.
type tick struct {
	value float64
	label string
}

// ticks lists the marks of an axis, at round distances. There is at least one: no distance is wider than half the axis.
func (u Unit) ticks(low, high float64) []tick {
	if !(low < high) {
		return []tick{{low, u.text(low)}}
	}
	step := roundStep((high - low) / mostTicks)
	if u == Seconds && step > 0.5 {
		step = day * roundStep((high-low)/mostTicks/day)
		for _, s := range secondSteps {
			if (high-low)/s <= mostTicks {
				step = s
				break
			}
		}
	}
	var list []tick
	first := math.Ceil(low / step)
	for k := range mostTicks + 2 {
		if v := (first + float64(k)) * step; v <= high {
			list = append(list, tick{v, u.text(v)})
		}
	}
	return list
}

// roundStep is the least of 1, 2, 5 times a power of ten that is no less than v.
func roundStep(v float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range [...]float64{2, 2.5, 2} { // 1, 2, 5, 10
		if v > step {
			step *= factor
		}
	}
	return step
}

// logTicks lists the marks of a logarithmic axis; powers of ten have labels.
func (u Unit) logTicks(low, high float64) []tick {
	var list []tick
	for k := math.Floor(math.Log10(low)); k <= math.Ceil(math.Log10(high)) && len(list) < 400; k++ {
		for m := range 9 {
			v := float64(m+1) * math.Pow(10, k)
			if v < low || v > high {
				continue
			}
			label := ""
			if m == 0 {
				label = u.text(v)
			}
			list = append(list, tick{v, label})
		}
	}
	return list
}
