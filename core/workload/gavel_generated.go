package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// GavelGeneratedConfig is the Config of the source `gavel_generated`.
type GavelGeneratedConfig struct {
	// ThroughputsPath: measured steps per second by accelerator type, as JSON or as CSV.
	ThroughputsPath string `config:"throughputs_path" required:"true" doc:"Measured steps per second by accelerator type, as JSON or as CSV; those on v100 set the steps of a job."`
	// Jobs: number of jobs.
	Jobs int `config:"jobs" min:"1" max:"10000000" doc:"Number of jobs."`
	// JobsPerHour: rate at which jobs are submitted.
	JobsPerHour float64 `config:"jobs_per_hour" min:"0" max:"1e6" doc:"Rate at which jobs are submitted; 0 submits all at once."`
	// Replicas: number of replicas of a job: one, or the published mix of 1, 2, 4 and 8.
	Replicas string `config:"replicas" enum:"one|mixed" doc:"One replica for every job, or 1, 2, 4 or 8 as published."`
	// Priorities: give a fifth of the jobs the weight 5.
	Priorities bool `config:"priorities" doc:"Give a fifth of the jobs the weight 5."`
}

// The values of GavelGeneratedConfig.Replicas.
const (
	replicasOne   = "one"
	replicasMixed = "mixed"
)

// Validate reports an empty path.
func (c GavelGeneratedConfig) Validate() error {
	if c.ThroughputsPath == "" {
		return errors.New("throughputs_path: is empty")
	}
	return nil
}

// NewGavelGenerated makes the factory of the source `gavel_generated`.
func NewGavelGenerated() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "gavel_generated",
		Summary: "random jobs, the very ones that Gavel's generator draws for a seed",
		Description: "Draws jobs of 26 types, of half an hour to a week on V100s, as the publication does, from the random numbers that it " +
			"does: the seed of the run is its seed, and its streams of jobs come out to the last digit. Jobs go as with the source gavel.",
		Source: "Gavel, OSDI 2020, artifact",
	}, GavelGeneratedConfig{Jobs: 1000, JobsPerHour: 4, Replicas: replicasOne}, func(c GavelGeneratedConfig, s core.Settings) (Source, error) {
		return &gavelGenerator{config: c, seed: s.Seed}, nil
	})
}

type gavelGenerator struct {
	config GavelGeneratedConfig
	seed   uint64
}

// The offsets of the published generator: a stream of random numbers for each purpose.
const (
	jobStream     = 2
	arrivalStream = 3
)

func (g *gavelGenerator) Load(ctx context.Context) (*Workload, error) {
	speeds, err := loadGavelSpeeds(ctx, g.config.ThroughputsPath)
	if err != nil {
		return nil, err
	}
	draws, gaps := newMersenne(g.seed+jobStream), newMersenne(g.seed+arrivalStream)
	templates := gavelTemplates()
	jobs, submit := make([]Job, g.config.Jobs), 0.0
	for i := range jobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		task, seconds := g.draw(draws, templates)
		speed := speeds.byTask[task]
		if speed == nil || speed.on(stepsOn) == 0 {
			return nil, core.Diagnostics{{
				Position: core.Position{File: g.config.ThroughputsPath},
				Summary:  fmt.Sprintf("has no throughput of %q on %d devices of type %q, which the generator needs", task.jobType, task.replicas, stepsOn),
			}}
		}
		jobs[i] = newGavelJob(strconv.Itoa(i), task.jobType, submit, seconds*speed.on(stepsOn), speed)
		if g.config.Priorities && draws.uniform(0, 1) <= 0.2 {
			jobs[i].Spec.Weight = 5
		}
		if g.config.JobsPerHour > 0 {
			submit += -math.Log(1-gaps.float64()) * (3600 / g.config.JobsPerHour)
		}
	}
	return assemble(jobs, []Input{speeds.input}, nil)
}

// stepsOn is the type whose speed turns the length of a job into steps.
const stepsOn = "v100"

// draw is one job. The numbers are drawn in the published order, needed or not.
func (g *gavelGenerator) draw(r *mersenne, templates []string) (task gavelTask, seconds float64) {
	task.replicas = gavelReplicas(r.uniform(0, 1))
	if g.config.Replicas == replicasOne {
		task.replicas = 1
	}
	exponent := 0.0
	if r.float64() >= 0.8 {
		exponent = r.uniform(3, 4)
	} else {
		exponent = r.uniform(1.5, 3)
	}
	seconds = 60 * math.Pow(10, exponent)
	for task.jobType == "" || task.replicas > 1 && !distributes(task.jobType) {
		task.jobType = templates[r.intN(len(templates))]
	}
	return task, seconds
}

// gavelReplicas is the number of replicas for a number from 0 to 1.
func gavelReplicas(u float64) int {
	switch {
	case u < 0.7:
		return 1
	case u <= 0.8:
		return 2
	case u <= 0.95:
		return 4
	}
	return 8
}

// gavelTemplates lists the types of job that the publication draws from, in its order.
func gavelTemplates() []string {
	var types []string
	for _, model := range []struct {
		name    string
		batches []int
	}{
		{"ResNet-18", []int{16, 32, 64, 128, 256}},
		{"ResNet-50", []int{16, 32, 64, 128}},
		{"Transformer", []int{16, 32, 64, 128, 256}},
		{"LM", []int{5, 10, 20, 40, 80}},
		{"Recommendation", []int{512, 1024, 2048, 4096, 8192}},
	} {
		for _, batch := range model.batches {
			types = append(types, fmt.Sprintf("%s (batch size %d)", model.name, batch))
		}
	}
	return append(types, "A3C", "CycleGAN")
}

// distributes reports whether jobs of a type run on several devices.
func distributes(jobType string) bool {
	return strings.HasPrefix(jobType, "ResNet") || strings.HasPrefix(jobType, "Transformer") || strings.HasPrefix(jobType, "LM")
}

// UsesSeed reports that the published generators are seeded directly.
func (*gavelGenerator) UsesSeed() bool { return true }
