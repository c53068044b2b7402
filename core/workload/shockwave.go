package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

const (
	shockwaveJobType = iota
	shockwaveCommand
	shockwaveFolder
	shockwaveStepsFlag
	shockwaveNeedsData
	shockwaveSteps
	shockwaveReplicas
	shockwaveMode
	shockwaveWeight
	shockwaveDeadline
	shockwaveDuration
	shockwaveArrival
)

var shockwaveColumns = columns{headless: true, tabs: true, required: []string{
	"job_type", "command", "working_dir", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor", "mode",
	"priority_weight", "slo", "duration_s", "arrival_s",
}}

// shockwaveModes say how a job changes its batch size while it trains.
var shockwaveModes = []string{"static", "accordion", "gns"}

// NewShockwave makes the factory of the source `shockwave`.
func NewShockwave() core.Factory[Source] {
	return newTraceFactory(core.Info{
		Type:    "shockwave",
		Summary: "trace in the format of the Shockwave artifact",
		Description: "Each row, of twelve columns divided by tabs and without a header, is a rigid job that runs for its duration on " +
			"scale_factor devices. The duration is that of all steps at the throughput of the initial batch size on V100s. A job of mode " +
			"accordion or gns changes its batch size on the way; when, and what that does to its run time, is not in the trace, so " +
			"every job takes the declared duration. Rows have no names: jobs are named shockwave-000000, shockwave-000001, … in the order " +
			"of the rows' arrivals and then contents. What says how to start a job, its steps and its deadline are checked and not used.",
		Source: "Shockwave, NSDI 2023, artifact",
	}, readShockwave)
}

// shockwaveRow is a job, and the cells by which equal arrivals are ordered.
type shockwaveRow struct {
	job   Job
	steps float64
	mode  string
}

func readShockwave(in *input) (*Workload, error) {
	t := openTable(in, shockwaveColumns)
	var rows []shockwaveRow
	for t.next() {
		if row := readShockwaveRow(t); t.ok() {
			row.job.At = t.declaration()
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, compareShockwaveRows)
	jobs := make([]Job, len(rows))
	for i := range rows {
		jobs[i] = rows[i].job
		jobs[i].Spec.Name = fmt.Sprintf("shockwave-%06d", i)
	}
	return assemble(jobs, []Input{in.Input}, t.finish())
}

func readShockwaveRow(t *table) shockwaveRow {
	job := newDurationJob("", t.moment(shockwaveArrival), t.span(shockwaveDuration), t.count(shockwaveReplicas))
	job.Spec.Application = t.label(shockwaveJobType)
	job.Spec.Weight = t.number(shockwaveWeight, 1e-6, 1e6, "a number")
	row := shockwaveRow{job: job, steps: t.number(shockwaveSteps, aboveZero, maxNumber, "a number of steps"), mode: t.label(shockwaveMode)}
	if t.accepted(shockwaveMode) && !slices.Contains(shockwaveModes, row.mode) {
		t.reject(shockwaveMode, "one of "+strings.Join(shockwaveModes, ", "))
	}
	for _, column := range []int{shockwaveCommand, shockwaveFolder, shockwaveStepsFlag} {
		t.label(column)
	}
	t.whole(shockwaveNeedsData, 1, "a flag")
	t.number(shockwaveDeadline, -1, maxNumber, "a number")
	return row
}

// compareShockwaveRows orders rows by arrival and content, and equal ones by line, which tells them apart in messages only.
func compareShockwaveRows(a, b shockwaveRow) int {
	x, y := &a.job.Spec, &b.job.Spec
	return cmp.Or(
		cmp.Compare(x.SubmitSeconds, y.SubmitSeconds),
		strings.Compare(x.Application, y.Application),
		cmp.Compare(x.Requested, y.Requested),
		cmp.Compare(x.TotalWork, y.TotalWork),
		cmp.Compare(x.Weight, y.Weight),
		cmp.Compare(a.steps, b.steps),
		strings.Compare(a.mode, b.mode),
		cmp.Compare(a.job.At.Line, b.job.At.Line),
	)
}
