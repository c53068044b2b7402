package workload

import "github.com/quartet-sched/quartet/core"

const (
	tiresiasID = iota
	tiresiasReplicas
	tiresiasSubmit
	tiresiasIterations
	tiresiasModel
	tiresiasDuration
	tiresiasInterval
)

var tiresiasColumns = columns{
	required: []string{"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval"},
}

// NewTiresias makes the factory of the source `tiresias`.
func NewTiresias() core.Factory[Source] {
	return newTraceFactory(core.Info{
		Type:    "tiresias",
		Summary: "trace in the format of the Tiresias simulator",
		Description: "Each row is a rigid job that runs for its duration on num_gpu devices. The iterations and the interval " +
			"to the next job are checked to be numbers and not used.",
		Source: "Tiresias, NSDI 2019, artifact",
	}, readTiresias)
}

func readTiresias(in *input) (*Workload, error) {
	return readTrace(in, tiresiasColumns, func(t *table) Job {
		job := newDurationJob(t.text(tiresiasID), t.moment(tiresiasSubmit), t.span(tiresiasDuration), t.count(tiresiasReplicas))
		job.Spec.Application = t.label(tiresiasModel)
		t.number(tiresiasIterations, 0, maxNumber, "a number")
		t.number(tiresiasInterval, 0, maxNumber, "a number")
		return job
	})
}

// readTrace reads a trace with one job a row.
func readTrace(in *input, cols columns, readRow func(*table) Job) (*Workload, error) {
	t := openTable(in, cols)
	jobs := make([]Job, 0, in.lines)
	for t.next() {
		job := readRow(t)
		if t.ok() {
			job.At = t.declaration()
			jobs = append(jobs, job)
		}
	}
	return assemble(jobs, []Input{in.Input}, t.finish())
}
