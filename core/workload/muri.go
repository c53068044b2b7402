package workload

import (
	"context"
	"fmt"

	"github.com/quartet-sched/quartet/core"
)

const (
	muriName = iota
	muriDevices
	muriSubmit
	muriIterations
	muriModel
	muriBatch
	muriDuration
	muriInterval
	muriIteration
	muriStages
	muriPriority = muriStages + 3
)

var muriColumns = columns{required: []string{
	"job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration", "interval", "iteration_time",
	"resource_time_0", "resource_time_1", "resource_time_2", "priority",
}}

// MuriJob is a row of a trace of Muri (Zhao et al., SIGCOMM 2022). Times are in seconds; those of the file are in milliseconds.
type MuriJob struct {
	Name             string
	Model            string
	Devices          int
	Batch            int
	SubmitSeconds    float64
	Iterations       float64 // a whole number
	IterationSeconds float64 // one iteration, alone on the devices
	// StageSeconds are what one iteration needs of storage and CPUs, of the devices, and of the network.
	StageSeconds  [3]float64
	Opportunistic bool          // priority 1; only the imitation of AntMan tells the classes apart
	At            core.Position // where the row is
}

// ReadMuri reads a trace of Muri in the order of its rows, plain or compressed by gzip. Columns duration and interval
// follow from others; they are checked to be numbers and not used. What is wrong is told with its position, all of it at once.
func ReadMuri(ctx context.Context, path string) ([]MuriJob, error) {
	in, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return readMuri(in)
}

func readMuri(in *input) ([]MuriJob, error) {
	t := openTable(in, muriColumns)
	var jobs []MuriJob
	lines := map[string]int{}
	for t.next() {
		job := MuriJob{
			Name:             t.text(muriName),
			Model:            t.label(muriModel),
			Devices:          t.count(muriDevices),
			Batch:            t.count(muriBatch),
			SubmitSeconds:    t.number(muriSubmit, 0, maxSeconds, "a number of milliseconds") / 1000,
			Iterations:       t.whole(muriIterations, maxSeconds, "a whole number"),
			IterationSeconds: t.number(muriIteration, aboveZero, maxSeconds, "a number of milliseconds") / 1000,
			Opportunistic:    t.whole(muriPriority, 1, "a class") == 1,
			At:               t.declaration(),
		}
		if t.accepted(muriIterations) && job.Iterations == 0 {
			t.reject(muriIterations, "at least 1")
		}
		for i := range job.StageSeconds {
			job.StageSeconds[i] = t.number(muriStages+i, 0, maxSeconds, "a number of milliseconds") / 1000
		}
		t.number(muriDuration, 0, maxSeconds, "a number of milliseconds")
		t.number(muriInterval, 0, maxSeconds, "a number of milliseconds")
		if first, twice := lines[job.Name]; twice {
			t.reject(muriName, fmt.Sprintf("a job of its own; it is on line %d too", first))
		}
		lines[job.Name] = job.At.Line
		if t.ok() {
			jobs = append(jobs, job)
		}
	}
	if err := t.finish().Err(); err != nil {
		return nil, err
	}
	return jobs, nil
}
