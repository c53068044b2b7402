package metrics

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Window is the part of the jobs that a run is about, both ends included. A negative Last leaves the end open.
type Window struct {
	First core.JobID `json:"first_job"` // first job that a summary covers
	Last  core.JobID `json:"last_job"`  // last job that a summary covers; 0 for the last of the run
}

// AllJobs is the window of a run that is about every job.
var AllJobs = Window{Last: -1}

// Holds reports whether a job is in the window.
func (w Window) Holds(id core.JobID) bool { return id >= w.First && (w.Last < 0 || id <= w.Last) }

// Of is how many of the first n jobs are in the window.
func (w Window) Of(n int) int {
	if w.Last >= 0 {
		n = min(n, int(w.Last)+1)
	}
	return max(n-int(w.First), 0)
}

// Among are those of jobs that are in the window.
func (w Window) Among(jobs []*core.Job) []*core.Job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *core.Job) bool { return !w.Holds(j.ID) })
}
