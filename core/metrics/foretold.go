package metrics

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Foretold is what a forecast expected of a run.
type Foretold struct {
	AtSeconds    float64
	Starts, Ends Judged
	Jobs         []Expected // of at most MostForetold jobs
}

// MostForetold is of how many jobs a snapshot holds what is expected: of those that were submitted first. What watches many jobs stays small by that.
const MostForetold = 200

// Judged is how many earlier bands of moments can be judged, and how many held.
type Judged struct{ Bands, Held int }

// Expected is where a moment of a job is expected, in seconds; NaN for not foreseen.
type Expected struct {
	ID                core.JobID
	Job, Moment       string // "start" or "end"
	Low, Median, High float64
}

// Foretell replaces what is expected. It is not to be changed.
func (l *Live) Foretell(f *Foretold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.foretold = f
}

// unfinished is what is expected of the jobs that have not ended.
func (f *Foretold) unfinished(jobs map[core.JobID]*core.Job) *Foretold {
	if f == nil {
		return nil
	}
	left := *f
	left.Jobs = slices.DeleteFunc(slices.Clone(f.Jobs), func(e Expected) bool { return jobs[e.ID] == nil })
	return &left
}
