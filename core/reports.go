package core

import (
	"math"
	"slices"
)

// mostReports is how many reports of a configuration are kept: the older ones are forgotten.
const mostReports = 15

// mostConfigurations is how many configurations of a job are measured: of a job that changes its batch all the time, the first ones.
const mostConfigurations = 1000

// Reports are what a job reported of one configuration, the latest few. Their median is its measurement, so that one
// report that was disturbed does no harm, and what changed for good is believed once it is most of them.
type Reports struct {
	count  int // of all, those forgotten included
	passes []float64
	steps  []float64 // of the same reports, in the same order
}

// measure takes in what a job reported of a configuration.
func (s *state) measure(j *Job, m Measurement) {
	at := slices.IndexFunc(j.Measured, m.SameConfiguration)
	if at < 0 {
		if len(j.Measured) < mostConfigurations {
			j.Measured = append(j.Measured, m)
		}
		return
	}
	for int(j.ID) >= len(s.reports) {
		s.reports = append(s.reports, nil)
	}
	for len(s.reports[j.ID]) <= at {
		s.reports[j.ID] = append(s.reports[j.ID], Reports{})
	}
	r := &s.reports[j.ID][at]
	if r.count == 0 {
		r.Add(j.Measured[at])
	}
	r.Add(m)
	j.Measured[at] = r.Correct(j.Measured[at])
}

// forgetReports drops what an ended job reported.
func (s *state) forgetReports(id JobID) {
	if int(id) < len(s.reports) {
		s.reports[id] = nil
	}
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

// jitter is the part of a step time by which reports may differ and still agree. What differs less moves no curve, and
// costs no fit.
const jitter = 0.05

// Correct is a measurement corrected by all reports of its configuration: the lower median of both times, for what
// disturbs a job slows it down, and as spread their mean distance from it. Times that agree with the median stay.
func (r *Reports) Correct(m Measurement) Measurement {
	pass, step := lowerMedian(r.passes), lowerMedian(r.steps)
	if math.Abs(pass-m.PassSeconds) > jitter*m.StepSeconds || differ(step, m.StepSeconds) {
		m.PassSeconds, m.StepSeconds = pass, step
	}
	m.Count, m.Spread = r.count, 0
	for _, s := range r.steps {
		if differ(s, m.StepSeconds) {
			m.Spread += math.Abs(s-m.StepSeconds) / m.StepSeconds / float64(len(r.steps))
		}
	}
	return m
}

func differ(seconds, from float64) bool { return math.Abs(seconds-from) > jitter*from }

func lowerMedian(list []float64) float64 {
	sorted := append(make([]float64, 0, mostReports), list...)
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}
