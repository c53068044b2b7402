package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/quartet-sched/quartet/core"
)

// GavelConfig is the Config of the source `gavel`.
type GavelConfig struct {
	// Path: jobs to read.
	Path string `config:"path" required:"true" doc:"Jobs to read; a file compressed by gzip is recognised by its content."`
	// Format: form of the file: stream, trace or philly.
	Format string `config:"format" enum:"stream|trace|philly" doc:"What path is: a stream of jobs with the gaps between them, a trace of 10 columns, or one of 7 derived from Philly; the traces have no header, and tabs between columns."`
	// ThroughputsPath: measured steps per second by accelerator type, as JSON or as CSV.
	ThroughputsPath string `config:"throughputs_path" required:"true" doc:"Measured steps per second by accelerator type, as JSON or as CSV."`
	// Sizes: whether jobs have measured numbers of replicas only, or rates are scaled to others.
	Sizes string `config:"sizes" enum:"measured|scaled" doc:"What becomes of a job with a number of replicas that its type was not measured with: it is a problem, or goes in proportion to the next smaller number, as some of Philly must."`
	// JobsPerHour: rate at which the jobs of a stream are submitted.
	JobsPerHour float64 `config:"jobs_per_hour" min:"0" max:"1e6" doc:"Rate at which the jobs of a stream are submitted; 0 submits all at once."`
	// Jobs: how many jobs to take from the front.
	Jobs int `config:"jobs" min:"0" doc:"How many jobs to take from the front; 0 for all."`
}

// The values of GavelConfig.Format and of Sizes.
const (
	gavelStream = "stream"
	gavelTrace  = "trace"
	gavelPhilly = "philly"

	sizesMeasured = "measured"
	sizesScaled   = "scaled"
)

// Validate reports empty paths, and a rate for jobs that come with their times.
func (c GavelConfig) Validate() error {
	var problems []error
	if c.Path == "" {
		problems = append(problems, errors.New("path: is empty"))
	}
	if c.ThroughputsPath == "" {
		problems = append(problems, errors.New("throughputs_path: is empty"))
	}
	if c.JobsPerHour > 0 && c.Format != gavelStream {
		problems = append(problems, fmt.Errorf("jobs_per_hour: needs format: stream; a %s says when its jobs are submitted", c.Format))
	}
	return errors.Join(problems...)
}

// NewGavel makes the factory of the source `gavel`.
func NewGavel() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "gavel",
		Summary: "training jobs whose speed depends on the accelerator type, as Gavel's simulator runs them",
		Description: "Each row is a rigid job with a number of steps. It does as many a second as its type and size were measured to " +
			"do on the accelerator type that it runs on, wherever its devices are. A type without a measurement, or with one of 0, " +
			"cannot run it. Measurements of two jobs that share devices are used where the cluster lets them, by co_location.model: table of the simulator.",
		Source: "Gavel, OSDI 2020, artifact",
	}, GavelConfig{Format: gavelStream, Sizes: sizesMeasured}, func(c GavelConfig, _ core.Settings) (Source, error) {
		return gavelSource(c), nil
	})
}

type gavelSource GavelConfig

func (s gavelSource) Load(ctx context.Context) (*Workload, error) {
	speeds, err := loadGavelSpeeds(ctx, s.ThroughputsPath)
	if err != nil {
		return nil, err
	}
	in, err := openInput(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	return GavelConfig(s).read(in, speeds)
}

// read reads the jobs of a file. Those after the first c.Jobs are checked like the others.
func (c GavelConfig) read(in *input, speeds *gavelSpeeds) (*Workload, error) {
	r := &gavelReader{speeds: speeds, scales: c.Sizes == sizesScaled}
	var jobs []Job
	switch c.Format {
	case gavelStream:
		jobs = r.stream(in, c.JobsPerHour)
	case gavelTrace:
		jobs = r.trace(in)
	default:
		jobs = r.philly(in)
	}
	w, err := assemble(jobs, []Input{in.Input, speeds.input}, r.problems)
	if err != nil {
		return nil, err
	}
	if c.Jobs > 0 && c.Jobs < len(w.Jobs) {
		w.Jobs = w.Jobs[:c.Jobs]
	}
	return w, nil
}
