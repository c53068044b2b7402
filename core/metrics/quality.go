package metrics

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Quality is how soon the jobs that completed got good, by what they reported: of each the metric that it reported first. A job counts if the metric got
// better after its first value. Its loss is 1 until that value was reported, 0 at the best that it reported, and in between as much as the best so far lacks.
// A metric that grew from the first value to the last one is better the larger it is, any other the smaller.
type Quality struct {
	Jobs            int    `json:"jobs"`              // jobs that reported and got better
	LossAreaSeconds Number `json:"loss_area_seconds"` // area under the loss, from the submission on; the mean of the jobs
	To90Seconds     Number `json:"to_90_seconds"`     // from the submission to the first value at which 90 % of the loss was gone; the mean of the jobs
	To95Seconds     Number `json:"to_95_seconds"`     // from the submission to the first value at which 95 % of the loss was gone; the mean of the jobs
}

// EndedEarly counts completed jobs that were ended before they had done their work, by why.
type EndedEarly struct {
	Converged int `json:"converged"` // jobs ended because they had converged
	Pruned    int `json:"pruned"`    // jobs ended because others did better
}

// quality is how soon a job got good. It counts if area is above 0.
type quality struct{ area, to90, to95 float64 }

// qualityOf looks at what a job reported; false where nothing got better. O(reports).
func qualityOf(j *core.Job) (q quality, better bool) {
	if len(j.Reported) == 0 || len(j.Reported[0].Points) < 2 {
		return q, false
	}
	points := slices.DeleteFunc(slices.Clone(j.Reported[0].Points), core.Point.Diverged) // nothing got better by those
	if len(points) < 2 {
		return q, false
	}
	first, sign := points[0].Value, 1.0
	if points[len(points)-1].Value > first {
		sign = -1
	}
	gone := func(p core.Point) float64 { return sign * (first - p.Value) }
	all := 0.0
	for _, p := range points {
		all = max(all, gone(p))
	}
	if !(all > 0) || math.IsInf(all, 0) {
		return q, false
	}
	at, lacks := j.SubmitSeconds, 1.0
	q.to90, q.to95 = math.NaN(), math.NaN()
	for _, p := range points {
		q.area += lacks * (p.AtSeconds - at)
		part := gone(p) / all
		at, lacks = p.AtSeconds, min(lacks, 1-part)
		if part >= 0.9 && math.IsNaN(q.to90) {
			q.to90 = at - j.SubmitSeconds
		}
		if part >= 0.95 && math.IsNaN(q.to95) {
			q.to95 = at - j.SubmitSeconds
		}
	}
	return q, q.area > 0
}

// qualityBooks are those of a run in which jobs report.
type qualityBooks struct{ jobs []quality } // by JobID; shorter without

func (b *qualityBooks) clone() *qualityBooks {
	if b == nil {
		return nil
	}
	return &qualityBooks{slices.Clone(b.jobs)}
}

// leave takes in a job that ended.
func (b *qualityBooks) leave(j *core.Job) {
	if j.State != core.Completed {
		return
	}
	if q, better := qualityOf(j); better {
		for int(j.ID) >= len(b.jobs) {
			b.jobs = append(b.jobs, quality{})
		}
		b.jobs[j.ID] = q
	}
}

// describe is nil where no job reported.
func (b *qualityBooks) describe(w Window) *Quality {
	if b == nil {
		return nil
	}
	var sum quality
	s := &Quality{}
	for id, q := range b.jobs {
		if q.area > 0 && w.Holds(core.JobID(id)) {
			s.Jobs++
			sum.area, sum.to90, sum.to95 = sum.area+q.area, sum.to90+q.to90, sum.to95+q.to95
		}
	}
	n := float64(s.Jobs) // none: unknown
	s.LossAreaSeconds, s.To90Seconds, s.To95Seconds = Number(sum.area/n), Number(sum.to90/n), Number(sum.to95/n)
	return s
}

// earlyEnds are the jobs that were ended early, by JobID: few, or none.
type earlyEnds map[core.JobID]core.Reason

// follow takes in a round.
func (e *earlyEnds) follow(changes []core.Change) {
	for i := range changes {
		if c := &changes[i]; c.Action == core.Finish {
			if *e == nil {
				*e = earlyEnds{}
			}
			(*e)[c.Job] = c.Reason
		}
	}
}

// describe is nil where no job was ended early.
func (e earlyEnds) describe(w Window) *EndedEarly {
	var s EndedEarly
	for id, reason := range e { // counted, in whatever order
		switch {
		case !w.Holds(id):
		case reason == core.Pruned:
			s.Pruned++
		default:
			s.Converged++
		}
	}
	if s == (EndedEarly{}) {
		return nil
	}
	return &s
}
