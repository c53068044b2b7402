package workload

import (
	"fmt"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// gavelReader reads jobs in the forms that the publication has them in.
type gavelReader struct {
	speeds   *gavelSpeeds
	scales   bool // jobs of sizes that were not measured go in proportion
	problems core.Diagnostics
}

// maxSteps bounds the steps of a job: not far above it a step more is lost in a float64.
const maxSteps = 1e15

const (
	streamID = iota
	streamJobType
	streamReplicas
	streamDuration
	streamSteps
	streamGap
)

var gavelStreamColumns = columns{required: []string{
	"job_id", "job_type", "scale_factor", "duration_v100_s", "total_steps", "unit_interarrival_after",
}}

// stream reads jobs with the gaps between them, in units of the mean one. The first job is submitted at 0.
func (r *gavelReader) stream(in *input, jobsPerHour float64) []Job {
	t := openTable(in, gavelStreamColumns)
	submit := 0.0
	jobs := r.rows(t, func() Job {
		job := r.job(t, gavelCells{streamJobType, streamReplicas, streamSteps}, t.text(streamID), submit)
		t.span(streamDuration) // how long it would take on V100s, which its steps say too
		if gap := t.moment(streamGap); jobsPerHour > 0 {
			submit += gap * (3600 / jobsPerHour)
		}
		if submit > maxSeconds {
			t.reject(streamGap, fmt.Sprintf("submissions before %s s", formatBound(maxSeconds)))
		}
		return job
	})
	r.problems = append(r.problems, t.finish()...)
	return jobs
}

const (
	traceJobType = iota
	traceCommand
	traceFolder
	traceStepsFlag
	traceNeedsData
	traceSteps
	traceReplicas
	traceWeight
	traceDeadline
	traceArrival
)

var gavelTraceColumns = columns{headless: true, tabs: true, required: []string{
	"job_type", "command", "working_dir", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor", "priority_weight", "slo", "arrival_s",
}}

// trace reads jobs with their submission times. Its rows have no names: jobs are named after their place among them.
func (r *gavelReader) trace(in *input) []Job {
	t := openTable(in, gavelTraceColumns)
	jobs := r.rows(t, func() Job {
		job := r.job(t, gavelCells{traceJobType, traceReplicas, traceSteps}, rowName(t), t.moment(traceArrival))
		job.Spec.Weight = t.number(traceWeight, 1e-6, 1e6, "a number")
		t.number(traceNeedsData, 0, 1, "a flag")
		t.number(traceDeadline, -1, maxNumber, "a number") // no policy of ours keeps one
		job.Spec.Command = command(t, traceCommand, traceStepsFlag)
		return job
	})
	r.problems = append(r.problems, t.finish()...)
	return jobs
}

const (
	msrJobType = iota
	msrCommand
	msrStepsFlag
	msrNeedsData
	msrSteps
	msrArrival
	msrReplicas
)

var gavelPhillyColumns = columns{headless: true, tabs: true, required: []string{
	"job_type", "command", "num_steps_arg", "needs_data_dir", "total_steps", "arrival_s", "scale_factor",
}}

// philly reads the traces that the publication derived from Philly.
func (r *gavelReader) philly(in *input) []Job {
	t := openTable(in, gavelPhillyColumns)
	jobs := r.rows(t, func() Job {
		job := r.job(t, gavelCells{msrJobType, msrReplicas, msrSteps}, rowName(t), t.moment(msrArrival))
		t.number(msrNeedsData, 0, 1, "a flag")
		job.Spec.Command = command(t, msrCommand, msrStepsFlag)
		return job
	})
	r.problems = append(r.problems, t.finish()...)
	return jobs
}

// rows reads every row, and keeps the jobs of those that are in order.
func (r *gavelReader) rows(t *table, read func() Job) []Job {
	var jobs []Job
	for t.next() {
		if job := read(); t.ok() {
			job.At = t.declaration()
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// gavelCells are the columns that say what a job is.
type gavelCells struct{ jobType, replicas, steps int }

func (r *gavelReader) job(t *table, at gavelCells, name string, submit float64) Job {
	task := gavelTask{jobType: t.label(at.jobType), replicas: t.count(at.replicas)}
	steps := t.number(at.steps, aboveZero, maxSteps, "a number of steps")
	if !t.ok() {
		return Job{}
	}
	speed := r.speeds.byTask[task]
	if speed == nil && r.scales {
		speed = r.speeds.scale(task)
	}
	switch {
	case speed != nil && len(speed.rates) > 0:
		return newGavelJob(name, task.jobType, submit, steps, speed)
	case speed != nil:
		t.reject(at.replicas, fmt.Sprintf("a number that %s was measured to run with on some accelerator type", task.jobType))
	case len(r.speeds.sizes(task.jobType)) > 0:
		t.reject(at.replicas, fmt.Sprintf("a number that %s was measured with: %s", task.jobType, strings.Join(r.speeds.sizes(task.jobType), ", ")))
	default:
		t.reject(at.jobType, "a type of job that was measured; "+core.SuggestHint(task.jobType, "types", r.speeds.jobTypes()))
	}
	return Job{}
}

// rowName names a job without a name.
func rowName(t *table) string { return fmt.Sprintf("gavel-%06d", t.rows-1) }

// command is how a real cluster would start the job.
func command(t *table, command, stepsFlag int) []string {
	return append(strings.Fields(t.label(command)), strings.Clone(t.text(stepsFlag)))
}
