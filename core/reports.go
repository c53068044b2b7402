package core

import (
	"math"
	"slices"
)

// mostReports is how many reports of a configuration are kept: the older ones are forgotten.
const mostReports = 15

// Reports are what a job reported of one configuration, the latest few. Their median is its measurement, so that one
// report that was disturbed does no harm, and what changed for good is believed once it is most of them.
type Reports struct {
	count  int // of all, those forgotten included
	passes []float64
	steps  []float64 // of the same reports, in the same order
}

// Add takes in a report, or a measurement that rests on several.
func (r *Reports) Add(m Measurement) {
	n := max(m.Count, 1)
	r.count += n
	for range min(n, mostReports) {
		r.passes = push(r.passes, m.PassSeconds)
		r.steps = push(r.steps, m.StepSeconds)
	}
}

func push(list []float64, x float64) []float64 {
	if len(list) == mostReports {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}

// Of is the measurement of a configuration by all its reports: the lower median of both times, for what disturbs a job
// slows it down, and as spread their median distance from it.
func (r *Reports) Of(configuration Measurement) Measurement {
	m := configuration
	m.PassSeconds, m.StepSeconds, m.Count = lowerMedian(r.passes), lowerMedian(r.steps), r.count
	off := make([]float64, len(r.steps))
	for i, s := range r.steps {
		off[i] = math.Abs(s - m.StepSeconds)
	}
	m.Spread = 0
	if m.StepSeconds > 0 {
		m.Spread = lowerMedian(off) / m.StepSeconds
	}
	return m
}

func lowerMedian(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)-1)/2]
}
