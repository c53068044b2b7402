package workload

import "github.com/quartet-sched/quartet/core"

const (
	bloxID = iota
	bloxSubmit
	bloxReplicas
	bloxIterations
	bloxIterationTime
)

var bloxColumns = columns{
	required: []string{"job_id", "submit_time_s", "num_gpus", "total_iterations", "iteration_time_s"},
	optional: []string{"blox_first_run_seen_s", "blox_completion_s", "jct_s", "responsiveness_s"}, // what Blox answered
}

// NewBlox makes the factory of the source `blox`.
func NewBlox() core.Factory[Source] {
	return newTraceFactory(core.Info{
		Type:    "blox",
		Summary: "job list of a Blox simulation",
		Description: "Each row is a rigid job that runs for total_iterations × iteration_time_s seconds on num_gpus devices. " +
			"Columns that hold what Blox answered may be present and are not read.",
		Source: "Blox, EuroSys 2024",
	}, readBlox)
}

func readBlox(in *input) (*Workload, error) {
	return readTrace(in, bloxColumns, func(t *table) Job {
		iterations := t.number(bloxIterations, aboveZero, maxSeconds, "a number")
		seconds := iterations * t.span(bloxIterationTime)
		if t.ok() && (seconds <= 0 || seconds > maxSeconds) {
			t.reject(bloxIterations, "total_iterations × iteration_time_s to be above 0 and at most 1e11 seconds")
		}
		return newDurationJob(t.text(bloxID), t.moment(bloxSubmit), seconds, t.count(bloxReplicas))
	})
}
