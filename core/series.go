package core

import (
	"math"
	"slices"
)

// MostPoints is how many points of a series are kept. When there are as many, every second one of the older three quarters is forgotten.
const MostPoints = 1024

// mostMetrics is how many metrics of a job are kept: of one that tells more, the first ones.
const mostMetrics = 64

// Series is what a job reported of one metric, in the order of the reports. Points are added, and never changed.
type Series struct {
	Metric string  // name of the metric
	Points []Point // in the order in which they were reported
}

// Point is one value of a metric.
type Point struct {
	Step      float64 // of the training, in any unit that grows, such as epochs or optimizer steps; not negative
	Value     float64 // NaN where the job reported one that is not finite: it diverged, which is worse than any number
	AtSeconds float64 // moment of the report, in seconds of the run
}

// Equal reports whether points are the same; those that diverged may be.
func (p Point) Equal(q Point) bool {
	return p.Step == q.Step && p.AtSeconds == q.AtSeconds && (p.Value == q.Value || p.Diverged() && q.Diverged())
}

// Diverged reports whether the value is not finite.
func (p Point) Diverged() bool { return math.IsNaN(p.Value) }

// Latest is the last point; false where there is none.
func (s *Series) Latest() (Point, bool) {
	if s == nil || len(s.Points) == 0 {
		return Point{}, false
	}
	return s.Points[len(s.Points)-1], true
}

// Series is what the job reported of a metric; nil when it reported nothing of it.
func (j *Job) Series(metric string) *Series {
	for i := range j.Reported {
		if j.Reported[i].Metric == metric {
			return &j.Reported[i]
		}
	}
	return nil
}

// report takes in a point. A step may be reported again, as after the job was started from a checkpoint: what was reported since is forgotten, for
// it is being computed anew.
func (j *Job) report(metric string, p Point) {
	at := slices.IndexFunc(j.Reported, func(s Series) bool { return s.Metric == metric })
	if at < 0 {
		if len(j.Reported) == mostMetrics {
			return
		}
		at = len(j.Reported)
		j.Reported = append(j.Reported, Series{Metric: metric})
	}
	s := &j.Reported[at]
	for n := len(s.Points); n > 0 && s.Points[n-1].Step >= p.Step; n-- {
		s.Points = s.Points[:n-1]
	}
	if len(s.Points) == MostPoints {
		s.thin()
	}
	s.Points = append(s.Points, p)
}

// thin forgets every second one of the older three quarters of the points, but for the first.
func (s *Series) thin() {
	old := MostPoints / 4 * 3
	kept := s.Points[:1]
	for i := 2; i < old; i += 2 {
		kept = append(kept, s.Points[i])
	}
	s.Points = append(kept, s.Points[old:]...)
}
