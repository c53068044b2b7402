package report

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// mostPoints is how many points a curve of a distribution keeps, its smallest and largest value among them.
const mostPoints = 512

// A distribution is a sorted sample of what is positive and known. What is not known, such as the completion time of a job that did
// not end, counts as more than all of it.
type distribution struct {
	key, title string
	seconds    bool
	values     []float64
	all        int // the unknown ones too
}

func newDistribution(key, title string, seconds bool, values []float64) distribution {
	d := distribution{key: key, title: title, seconds: seconds, all: len(values)}
	for _, v := range values {
		if !math.IsNaN(v) {
			d.values = append(d.values, v)
		}
	}
	slices.Sort(d.values)
	return d
}

// curve is the sample at even steps of rank, and the shares of the first and the last point. A logarithmic axis has no place for 0: what is
// below a thousandth counts as that.
func (d distribution) curve() (points []float64, low, high float64) {
	n := len(d.values)
	if n == 0 {
		return nil, 0, 0
	}
	k := min(n, mostPoints)
	for i := range k {
		at := 0
		if k > 1 {
			at = int(math.Round(float64(i) * float64(n-1) / float64(k-1)))
		}
		points = append(points, max(d.values[at], 1e-3))
	}
	return points, 1 / float64(d.all), float64(n) / float64(d.all)
}

// quantile is empirical, as those of summary.json.
func (d distribution) quantile(p float64) float64 {
	if len(d.values) == 0 {
		return math.NaN()
	}
	return stat.Quantile(p, stat.Empirical, d.values, nil)
}

func (d distribution) mean() float64 {
	if len(d.values) == 0 {
		return math.NaN()
	}
	return stat.Mean(d.values, nil)
}

// distributions are those that the files of a run allow.
func (r *Run) distributions() []distribution {
	list := []distribution{
		newDistribution("jct", "Job completion time", true, r.Jobs.jct),
		newDistribution("queueing", "Wait for the first devices", true, r.Jobs.queueing),
	}
	if r.rho != nil {
		alone, errAlone := r.rho.numbers("exclusive_s")
		job, errJob := r.rho.numbers("job")
		if errAlone == nil && errJob == nil {
			row := r.byID()
			var slowdown []float64
			for i := range alone {
				if at, known := row[int(zeroed(job[i]))]; known && alone[i] > 0 {
					slowdown = append(slowdown, r.Jobs.jct[at]/alone[i])
				}
			}
			list = append(list, newDistribution("slowdown", "Slowdown against running alone", false, slowdown))
		}
		if rho, err := r.rho.numbers("rho"); err == nil {
			list = append(list, newDistribution("rho", "Finish-time fairness, rho", false, rho))
		}
	}
	return slices.DeleteFunc(list, func(d distribution) bool { return len(d.values) == 0 })
}
