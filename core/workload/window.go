package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Window is a part of a workload: so many jobs, or those submitted in a span of time. Times count from its begin, which is the
// submission of its first job, or From. A window of jobs that begins with the first one begins where the workload does.
type Window struct {
	// FirstJob: rank in submission order, from 0, of the first job.
	FirstJob int `config:"first_job" doc:"rank in submission order, from 0, of the first job" min:"0"`
	// Jobs: how many jobs.
	Jobs int `config:"jobs" doc:"how many jobs; 0 for all from first_job on" min:"0"`

	// From: instead of jobs, the moment at which the window begins.
	From time.Duration `config:"from" doc:"instead of jobs, the moment at which the window begins" min:"0s"`
	// Span: how long the window is.
	Span time.Duration `config:"span" doc:"how long the window is; 0s for all that is submitted from its begin on" min:"0s"`

	// Quiet: with from or span, how far each end may move, to where the fewest devices are asked for.
	Quiet time.Duration `config:"quiet" doc:"with from or span, how far each end may move, to where the fewest devices are asked for" min:"0s"`
}

func (v Window) byJobs() bool { return v.FirstJob > 0 || v.Jobs > 0 }
func (v Window) byTime() bool { return v.From > 0 || v.Span > 0 }

func (v Window) check() core.Diagnostics {
	if v.byJobs() && v.byTime() {
		return core.Diagnostics{{Path: "window", Summary: "is given both in jobs and in time", Hint: "give first_job and jobs, or from and span"}}
	}
	if v.Quiet > 0 && !v.byTime() {
		return core.Diagnostics{{Path: "window.quiet", Summary: "moves the ends of a window that is given in time", Hint: "give from or span, too"}}
	}
	return nil
}

// of are the jobs in the window, in submission order, and its length in seconds, 0 when it has no end of its own. O(log n) and what a
// copy of the jobs takes; quiet points take O(n log n).
func (v Window) of(jobs []Job) (kept []Job, span float64, err error) {
	first, end, begin := 0, len(jobs), 0.0
	switch {
	case v.byJobs():
		first, end, err = v.ranks(len(jobs))
		if first > 0 && err == nil {
			begin = jobs[first].Spec.SubmitSeconds
		}
	case v.byTime():
		begin, span = v.From.Seconds(), v.Span.Seconds()
		upTo := begin + span
		if v.Quiet > 0 {
			begin, upTo = v.quietEnds(jobs, begin, upTo)
			if span > 0 {
				span = upTo - begin
			}
		}
		first = submittedBefore(jobs, begin)
		if v.Span > 0 {
			end = submittedBefore(jobs, upTo)
		}
		if first >= end {
			last := "has no job"
			if len(jobs) > 0 {
				last = fmt.Sprintf("submits its last job at %v", asDuration(lastSubmit(jobs)))
			}
			err = sampleProblem("window", "no job is submitted in it; the workload "+last, "")
		}
	}
	if err != nil {
		return nil, 0, err
	}
	if begin == 0 && first == 0 {
		return jobs[:end:end], span, nil // as they are
	}
	kept = slices.Clone(jobs[first:end])
	for i := range kept {
		kept[i].Spec.SubmitSeconds -= begin
	}
	renumber(kept)
	return kept, span, nil
}

// quietEnds moves the ends of a window in time to quiet moments, such that a job stays in it where there is one.
func (v Window) quietEnds(jobs []Job, begin, upTo float64) (movedBegin, movedUpTo float64) {
	within, most := v.Quiet.Seconds(), math.Inf(1)
	if v.Span > 0 {
		most = upTo + within
	}
	last := submittedBefore(jobs, most) - 1 // that the window may still hold
	if last < 0 {
		return begin, upTo
	}
	begin = quietest(jobs, begin, within, 0, jobs[last].Spec.SubmitSeconds)
	first := submittedBefore(jobs, begin)
	if v.Span > 0 && first <= last {
		after := math.Nextafter(jobs[first].Spec.SubmitSeconds, math.Inf(1))
		upTo = quietest(jobs, upTo, within, after, most)
	}
	return begin, upTo
}

// ranks are those of the first job of a window of jobs and of the one after the last, of so many jobs.
func (v Window) ranks(jobs int) (first, end int, err error) {
	first, end = v.FirstJob, jobs
	switch {
	case first >= jobs:
		return 0, 0, sampleProblem("window.first_job", fmt.Sprintf("begins with job %d, and the workload ends with job %d", first, jobs-1), "")
	case v.Jobs > jobs-first:
		return 0, 0, sampleProblem("window.jobs", fmt.Sprintf("%d jobs from job %d on, and the workload has %d there", v.Jobs, first, jobs-first), "0 takes all")
	case v.Jobs > 0:
		end = first + v.Jobs
	}
	return first, end, nil
}

// quietest is the moment at most so many seconds from another at which jobs ask for the fewest devices, if each runs on what it asks
// for from its submission on: a cut there parts the fewest that belong together. Of several it is the nearest one. Jobs whose length is
// not known count for nothing. It is the moment itself where no other lies between from and to.
func quietest(jobs []Job, seconds, within, from, to float64) float64 {
	type change struct {
		at      float64
		devices int // more from this moment on
	}
	var changes []change
	for i := range jobs {
		job := &jobs[i]
		if length := job.requestSeconds(); length > 0 && !math.IsInf(length, 1) {
			submit := job.Spec.SubmitSeconds
			changes = append(changes, change{submit, job.Spec.Requested}, change{submit + length, -job.Spec.Requested})
		}
	}
	// What ends at a moment is not cut there, and neither is what begins: moments are looked at between the two.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.devices, b.devices)) })
	moments := []float64{seconds, max(seconds-within, 0), seconds + within}
	for i := range changes {
		if math.Abs(changes[i].at-seconds) <= within {
			moments = append(moments, changes[i].at)
		}
	}
	moments = slices.DeleteFunc(moments, func(at float64) bool { return at < from || at > to })
	slices.Sort(moments)
	best, least, held, next := seconds, math.MaxInt, 0, 0
	for _, at := range moments {
		for next < len(changes) && (changes[next].at < at || changes[next].at == at && changes[next].devices < 0) {
			held += changes[next].devices
			next++
		}
		if held < least || held == least && math.Abs(at-seconds) < math.Abs(best-seconds) {
			best, least = at, held
		}
	}
	return best
}

// requestSeconds is how long the job takes alone on what it asks for, of the first type that it names if it names any. +Inf or NaN
// when that is not known.
func (j *Job) requestSeconds() float64 {
	accelerator := ""
	if len(j.Spec.Accelerators) > 0 {
		accelerator = j.Spec.Accelerators[0]
	}
	running := Running{Shape: consolidated(j.Spec.Requested, profileDevicesPerNode), Replicas: j.Spec.Requested}
	running.Accelerators = slices.Repeat([]string{accelerator}, len(running.Shape))
	seconds, done := 0.0, 0.0
	for phase := range j.Model.Phases() {
		end := j.Model.PhaseEnd(phase)
		seconds += (end - done) / j.Model.Rate(phase, running)
		done = end
	}
	return seconds
}

// submittedBefore is how many of the jobs, in submission order, are submitted before a moment.
func submittedBefore(jobs []Job, seconds float64) int {
	return sort.Search(len(jobs), func(i int) bool { return jobs[i].Spec.SubmitSeconds >= seconds })
}

func asDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}
