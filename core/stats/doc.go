// Package stats compares schedulers honestly: it turns one value per workload and scheduler into a change with an interval.
//
// The independent unit is the workload (trace, load and seed), never the job: the jobs of one run share a queue. Two
// schedulers are compared on the same workloads, so the comparison is paired, and in logarithms, so that a change of -20 %
// and its reverse of +25 % weigh the same. docs/statistics.md has the formulas, their sources and their measured coverage.
//
// All functions are pure: the same values in any order of the pairs give the same bytes. Random draws come from streams
// with fixed seeds. A level is a confidence level such as 0.95; changes are fractions (-0.2 is -20 %).
package stats

import "math"

// An Interval is a closed confidence interval. Both ends are NaN where there is none.
type Interval struct {
	Low  float64 // lower end, in the unit of what is estimated
	High float64 // upper end of the interval
}

// Unknown is the interval of a sample that has none.
func Unknown() Interval { return Interval{math.NaN(), math.NaN()} }

// Known reports whether there is an interval.
func (i Interval) Known() bool { return !math.IsNaN(i.Low) && !math.IsNaN(i.High) }

// Contains reports whether x lies in the interval, the ends included. An unknown interval contains nothing.
func (i Interval) Contains(x float64) bool { return i.Low <= x && x <= i.High }

// Width is the distance of the ends, NaN where there is no interval.
func (i Interval) Width() float64 { return i.High - i.Low }

// change turns an interval of a mean log ratio into one of the relative change.
func (i Interval) change() Interval { return Interval{math.Expm1(i.Low), math.Expm1(i.High)} }

// finite reports whether all of x can be calculated with.
func finite(x []float64) bool {
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// proper reports whether a confidence level lies between 0 and 1.
func proper(level float64) bool { return level > 0 && level < 1 }
