package wire

import (
	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// EndedJobs says how jobs ended.
func EndedJobs(jobs []*core.Job) []*stagev1.EndedJob {
	list := make([]*stagev1.EndedJob, 0, len(jobs))
	for _, j := range jobs {
		outcome := stagev1.Outcome(j.State-core.Completed) + stagev1.Outcome_OUTCOME_COMPLETED
		list = append(list, &stagev1.EndedJob{Id: int32(j.ID), Outcome: outcome, Progress: j.Progress})
	}
	return list
}

// EndedJobsFrom are the jobs that ended, as known finds them, with their last state and progress. A job that was never sent,
// or whose outcome this version does not know, is left out.
func EndedJobsFrom(list []*stagev1.EndedJob, known func(core.JobID) *core.Job) []*core.Job {
	var jobs []*core.Job
	for _, e := range list {
		j := known(core.JobID(e.GetId()))
		state := core.Completed + core.JobState(e.GetOutcome()-stagev1.Outcome_OUTCOME_COMPLETED)
		if j == nil || e.GetOutcome() < stagev1.Outcome_OUTCOME_COMPLETED || state > core.Cancelled {
			continue
		}
		last := *j
		last.State, last.Progress, last.ProgressRate = state, e.GetProgress(), 0
		jobs = append(jobs, &last)
	}
	return jobs
}
