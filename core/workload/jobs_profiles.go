package workload

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// JobsConfig is the Config of the source `jobs`.
type JobsConfig struct {
	// Path: file to read.
	Path string `config:"path" required:"true" doc:"File to read; one compressed by gzip is recognised by its content."`
	// Profiles: profiles, docs/profiles.md.
	Profiles []string `config:"profiles" doc:"Profiles, docs/profiles.md. A simulation takes each for the jobs whose application has its name, instead of the seconds that they declare."`
}

// Validate reports an empty path.
func (c JobsConfig) Validate() error {
	problems := []error{TraceConfig{Path: c.Path}.Validate()}
	for i, path := range c.Profiles {
		if path == "" {
			problems = append(problems, fmt.Errorf("profiles[%d]: is empty", i))
		}
	}
	return errors.Join(problems...)
}

// jobsSource is a source that reads a job file.
type jobsSource JobsConfig

func (s jobsSource) Load(ctx context.Context) (*Workload, error) {
	in, err := openInput(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	w, err := readJobs(in)
	if err != nil || len(s.Profiles) == 0 {
		return w, err
	}
	return w, s.profile(ctx, w)
}

// profile gives jobs the models of their applications.
func (s jobsSource) profile(ctx context.Context, w *Workload) error {
	profiles := map[string]*goodput.Profile{}
	for _, path := range s.Profiles {
		in, err := openInput(ctx, path)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return cannotRead(path, err)
		}
		p, err := goodput.ReadProfile(path, text)
		if err != nil {
			return err
		}
		if profiles[p.Name] != nil {
			return core.Diagnostics{{Position: core.Position{File: path}, Summary: fmt.Sprintf("is a second profile of %q", p.Name)}}
		}
		profiles[p.Name] = &p
		w.Inputs = append(w.Inputs, in.Input)
	}
	var found core.Diagnostics
	models := map[trainingKind]*modelledModel{}
	for i := range w.Jobs {
		job := &w.Jobs[i]
		p := profiles[job.Spec.Application]
		if p == nil {
			continue
		}
		if problem := fits(job, p); problem != "" {
			found = append(found, core.Diagnostic{Position: job.At, Summary: fmt.Sprintf("job %q %s", job.Spec.Name, problem)})
			continue
		}
		job.goBy(p, models)
	}
	return found.Err()
}

// trainingKind is what jobs of one model have in common.
type trainingKind struct {
	application string
	batch       core.BatchSpec
	work        float64
}

// fits says what keeps a job from going by a profile.
func fits(job *Job, p *goodput.Profile) string {
	b, own := &p.Batch, &job.Spec.Batch
	switch {
	case !job.Process.Reports && job.Spec.TotalWork > 0:
		return fmt.Sprintf("declares seconds, and goes by the profile of %q: declare iterations, or neither", p.Name)
	case own.Requested == 0:
		return ""
	case own.Initial != b.Initial:
		return fmt.Sprintf("has an initial batch of %d, and the profile of %q one of %d", own.Initial, p.Name, b.Initial)
	case own.Requested < b.Initial || own.Max > b.Max || own.MinPerDevice < b.MinPerDevice || own.MaxPerDevice > b.MaxPerDevice:
		return fmt.Sprintf("has bounds of its batch beyond those of the profile of %q: from %d to %d, %d to %d on a device",
			p.Name, b.Initial, b.Max, b.MinPerDevice, b.MaxPerDevice)
	}
	return ""
}

// goBy makes a job go as a profile says. What the job declares of its batch and its iterations holds, and the profile for what it leaves
// out; a training of other iterations is as noisy at the same part of it.
func (j *Job) goBy(p *goodput.Profile, models map[trainingKind]*modelledModel) {
	spec := &j.Spec
	if spec.Batch.Requested == 0 {
		spec.Batch = p.Batch.Spec()
		spec.Batch.Requested = p.Batch.Initial
	}
	kind := trainingKind{p.Name, spec.Batch, spec.TotalWork}
	m := models[kind]
	if m == nil {
		own := *p
		own.Batch = goodput.BatchLimits{
			Initial: spec.Batch.Initial, Max: spec.Batch.Max, MinPerDevice: spec.Batch.MinPerDevice, MaxPerDevice: spec.Batch.MaxPerDevice,
		}
		if spec.TotalWork > 0 {
			own.IterationsPerEpoch = spec.TotalWork / float64(own.Epochs)
		}
		m = newModelledModel(&own, spec.Batch.Requested)
		models[kind] = m
	}
	j.Model = m
	j.Process.Reports = true
	spec.TotalWork = m.PhaseEnd(m.Phases() - 1)
	spec.StepTimes, spec.Truth, spec.Sensitivity = &m.stepTimes, &m.truth, m.sensitive
}
