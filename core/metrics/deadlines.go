package metrics

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Deadlines is what became of the jobs with a deadline that are not best effort. Only jobs that are decided count for the ratio.
type Deadlines struct {
	Met         int    `json:"met"`          // completed in time
	Missed      int    `json:"missed"`       // completed late, failed, cancelled late, rejected after they were admitted, or late already
	Declined    int    `json:"declined"`     // rejected, and never admitted
	Undecided   int    `json:"undecided"`    // not late yet, or cancelled in time
	Broken      int    `json:"broken"`       // of those missed, the ones that were admitted with a promise; 0 where admission promises nothing
	Ratio       Number `json:"ratio"`        // met, of those met, missed and declined
	LatenessP99 Number `json:"lateness_p99"` // seconds, of those missed; unknown when there are none
}

// hasDeadline reports whether a job has a deadline that counts.
func hasDeadline(spec *core.JobSpec) bool { return spec.DeadlineSeconds > 0 && !spec.BestEffort }

// deadlines counts what became of deadlines.
type deadlines struct {
	Deadlines
	lateness []float64
	seen     bool
}

// add takes in a job as it is at the end.
func (d *deadlines) add(r *record, promised bool, endSeconds float64) {
	if !hasDeadline(r.spec) {
		return
	}
	d.seen = true
	ended := r.finish
	if r.outcome == unfinished || math.IsNaN(ended) {
		ended = endSeconds
	}
	switch late := ended - r.spec.Deadline(); {
	case r.outcome == rejected && !r.admitted:
		d.Declined++
	case late > timely(r.spec), r.outcome == rejected, r.outcome == failed:
		d.Missed++
		if late > timely(r.spec) {
			d.lateness = append(d.lateness, late)
		}
		if promised && r.admitted && r.outcome != failed {
			d.Broken++
		}
	case r.outcome == completed:
		d.Met++
	default:
		d.Undecided++
	}
}

// timely is how many seconds rounding may add to the moment at which a job ends: parts of a millisecond, or what moments that are far from the first
// are apart.
func timely(spec *core.JobSpec) float64 {
	at := spec.Deadline()
	return max(min(1e-9*max(at, 1), 1e-3), 32*(math.Nextafter(at, math.Inf(1))-at))
}

// describe is nil when no job has a deadline.
func (d *deadlines) describe() *Deadlines {
	if !d.seen {
		return nil
	}
	d.Ratio = Number(float64(d.Met) / float64(d.Met+d.Missed+d.Declined))
	d.LatenessP99 = Describe(d.lateness).P99
	return &d.Deadlines
}
