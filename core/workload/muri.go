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

// MuriConfig configures NewMuri.
type MuriConfig struct {
	// Path: file to read.
	Path string `config:"path" required:"true" doc:"File to read; one compressed by gzip is recognised by its content."`
	// AloneFactor: how many times the iteration_time of its row a job alone takes for an iteration.
	AloneFactor float64 `config:"alone_factor" doc:"how many times the iteration_time of its row a job alone takes for an iteration; the published simulator takes 1.015" min:"1" max:"10"`
}

// Validate reports an empty path.
func (c MuriConfig) Validate() error { return TraceConfig{Path: c.Path}.Validate() }

// NewMuri makes the factory of the source `muri`.
func NewMuri() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "muri",
		Summary: "trace of Muri, with the stages of iterations",
		Description: "Each row is a rigid job of known length: its iterations, each as long as one alone. Times are in milliseconds. The stages of an iteration, by resource_time_0 to 2, are what " +
			"allocation muri groups jobs by, and what they interleave by. The model is the application, and priority 1 makes a job best effort.",
		Source: "Zhao et al., Muri, SIGCOMM 2022",
	}, MuriConfig{AloneFactor: 1.015}, func(c MuriConfig, _ core.Settings) (Source, error) {
		return traceFile{path: c.Path, read: func(in *input) (*Workload, error) { return readMuriWorkload(in, c.AloneFactor) }}, nil
	})
}

func readMuriWorkload(in *input, factor float64) (*Workload, error) {
	rows, err := readMuri(in)
	if err != nil {
		return nil, err
	}
	jobs := make([]Job, len(rows))
	for i := range rows {
		jobs[i] = rows[i].job(factor)
	}
	return assemble(jobs, []Input{in.Input}, nil)
}

// job is a row as a job, whose iterations alone are so many times as long as in the row.
func (r *MuriJob) job(factor float64) Job {
	alone := r.IterationSeconds * factor
	job := newDurationJob(r.Name, r.SubmitSeconds, r.LengthSeconds*factor, r.Devices)
	job.Spec.Application, job.Spec.BestEffort, job.At = r.Model, r.Opportunistic, r.At
	job.Spec.Iteration = core.Iteration{Load: r.StageSeconds[0], Compute: r.StageSeconds[1], Sync: r.StageSeconds[2], Measured: alone}
	return job
}

// MuriJob is a row of a trace of Muri (Zhao et al., SIGCOMM 2022). Times are in seconds; those of the file are in milliseconds.
type MuriJob struct {
	// Name: name of the job.
	Name string
	// Model: name of the model that it trains.
	Model string
	// Devices: number of devices that it asks for.
	Devices int
	// Batch: batch size, in samples.
	Batch int
	// SubmitSeconds: time of submission, in seconds.
	SubmitSeconds    float64
	Iterations       float64 // a whole number
	IterationSeconds float64 // one iteration, alone on the devices
	// LengthSeconds is all iterations, alone on the devices. It is rounded once, so that jobs of the same length are equal in it to the last bit, whatever
	// their iterations take: which of them comes first is then a matter of the order and not of rounding.
	LengthSeconds float64
	// StageSeconds are what one iteration needs of storage and CPUs, of the devices, and of the network.
	StageSeconds  [3]float64
	Opportunistic bool          // priority 1; only the imitation of AntMan distinguishes the classes
	At            core.Position // where the row is
}

// ReadMuri reads a trace of Muri in the order of its rows, plain or compressed by gzip. Columns duration and interval
// follow from others; they are checked to be numbers and not used. All problems are reported together, each with its position.
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
		milliseconds := t.number(muriIteration, aboveZero, maxSeconds, "a number of milliseconds")
		job := MuriJob{
			Name:             t.text(muriName),
			Model:            t.label(muriModel),
			Devices:          t.count(muriDevices),
			Batch:            t.count(muriBatch),
			SubmitSeconds:    t.number(muriSubmit, 0, maxSeconds, "a number of milliseconds") / 1000,
			Iterations:       t.whole(muriIterations, maxSeconds, "a whole number"),
			IterationSeconds: milliseconds / 1000,
			Opportunistic:    t.whole(muriPriority, 1, "a class") == 1,
			At:               t.declaration(),
		}
		if t.accepted(muriIterations) && job.Iterations == 0 {
			t.reject(muriIterations, "at least 1")
		}
		for i := range job.StageSeconds {
			job.StageSeconds[i] = t.number(muriStages+i, 0, maxSeconds, "a number of milliseconds") / 1000
		}
		job.LengthSeconds = job.Iterations * milliseconds / 1000
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
