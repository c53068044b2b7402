package workload

import "slices"

// interpolate is the value at x on the line through (x0, y0) and (x1, y1), in the order of operations that NumPy and
// SciPy use. The conversion keeps processors with fused multiply-add from rounding otherwise.
func interpolate(x, x0, y0, x1, y1 float64) float64 {
	return float64((y1-y0)/(x1-x0)*(x-x0)) + y0
}

// stepTime is the measured time of an optimizer step without accumulation.
type stepTime struct {
	step float64 // seconds of the whole step
	sync float64 // seconds of it that gradient accumulation does not repeat
}

// total is the time of an optimizer step with extra accumulation passes.
func (s stepTime) total(accumulation int) float64 {
	return s.step + float64(float64(accumulation)*(s.step-s.sync))
}

// stepCurve is the step time on one placement by batch per device, ascending.
type stepCurve struct {
	batches []int
	times   []stepTime
}

// at interpolates between the measured batches; false outside them.
func (c *stepCurve) at(batch int) (stepTime, bool) {
	i, exact := slices.BinarySearch(c.batches, batch)
	switch {
	case exact:
		return c.times[i], true
	case i == 0 || i == len(c.batches):
		return stepTime{}, false
	}
	x, x0, x1 := float64(batch), float64(c.batches[i-1]), float64(c.batches[i])
	low, high := c.times[i-1], c.times[i]
	return stepTime{
		step: interpolate(x, x0, low.step, x1, high.step),
		sync: interpolate(x, x0, low.sync, x1, high.sync),
	}, true
}

// beyond is at, and goes on for larger batches than were measured: profiles end at the last batch of a geometric grid
// that all replicas together may have. The step grows as between the last two, the synchronisation stays.
func (c *stepCurve) beyond(batch int) (stepTime, bool) {
	last := len(c.batches) - 1
	if last < 1 || batch <= c.batches[last] {
		return c.at(batch)
	}
	before, end := c.times[last-1], c.times[last]
	step := interpolate(float64(batch), float64(c.batches[last-1]), before.step, float64(c.batches[last]), end.step)
	return stepTime{step: max(step, end.step), sync: end.sync}, true
}
