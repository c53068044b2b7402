package workload

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Window is a part of a workload: so many jobs, or those submitted in a span of time. Times count from its begin, which is the
// submission of its first job, or From. A window of jobs that begins with the first one begins where the workload does.
type Window struct {
	FirstJob int `config:"first_job" doc:"rank in submission order, from 0, of the first job" min:"0"`
	Jobs     int `config:"jobs" doc:"how many jobs; 0 for all from first_job on" min:"0"`

	From time.Duration `config:"from" doc:"instead of jobs, the moment at which the window begins" min:"0s"`
	Span time.Duration `config:"span" doc:"how long the window is; 0s for all that is submitted from its begin on" min:"0s"`
}

func (v Window) byJobs() bool { return v.FirstJob > 0 || v.Jobs > 0 }
func (v Window) byTime() bool { return v.From > 0 || v.Span > 0 }

func (v Window) check() core.Diagnostics {
	if v.byJobs() && v.byTime() {
		return core.Diagnostics{{Path: "window", Summary: "is given both in jobs and in time", Hint: "give first_job and jobs, or from and span"}}
	}
	return nil
}

// of are the jobs in the window, in submission order. O(log n) and what a copy of them takes.
func (v Window) of(jobs []Job) ([]Job, error) {
	first, end, begin := 0, len(jobs), 0.0
	switch {
	case v.byJobs():
		if first = v.FirstJob; first >= len(jobs) {
			return nil, sampleProblem("window.first_job", fmt.Sprintf("begins with job %d, and the workload ends with job %d", first, len(jobs)-1), "")
		}
		if v.Jobs > len(jobs)-first {
			return nil, sampleProblem("window.jobs", fmt.Sprintf("%d jobs from job %d on, and the workload has %d there", v.Jobs, first, len(jobs)-first), "0 takes all")
		}
		if v.Jobs > 0 {
			end = first + v.Jobs
		}
		if first > 0 {
			begin = jobs[first].Spec.SubmitSeconds
		}
	case v.byTime():
		begin = v.From.Seconds()
		first = submittedBefore(jobs, begin)
		if v.Span > 0 {
			end = submittedBefore(jobs, begin+v.Span.Seconds())
		}
		if first >= end {
			last := "has no job"
			if len(jobs) > 0 {
				last = fmt.Sprintf("submits its last job at %v", asDuration(lastSubmit(jobs)))
			}
			return nil, sampleProblem("window", fmt.Sprintf("no job is submitted in it; the workload %s", last), "")
		}
	}
	if begin == 0 && first == 0 {
		return jobs[:end:end], nil // as they are
	}
	kept := slices.Clone(jobs[first:end])
	for i := range kept {
		kept[i].Spec.SubmitSeconds -= begin
	}
	renumber(kept)
	return kept, nil
}

// submittedBefore is how many of the jobs, in submission order, are submitted before a moment.
func submittedBefore(jobs []Job, seconds float64) int {
	return sort.Search(len(jobs), func(i int) bool { return jobs[i].Spec.SubmitSeconds >= seconds })
}

func asDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
