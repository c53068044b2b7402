package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/quartet-sched/quartet/core"
)

// PolluxConfig is the Config of the source `pollux`.
type PolluxConfig struct {
	// Path: workload to read: a CSV file with a job a row.
	Path string `config:"path" required:"true" doc:"Workload to read: a CSV file with a job a row; one compressed by gzip is recognised by its content."`
	// Profiles: folder of the measured profiles, holding traces/ and delaunay/.
	Profiles string `config:"profiles" required:"true" doc:"Folder of the measured profiles, holding traces/ and delaunay/."`
	// Remaining: what policies know of the time that a job has left: exact or published.
	Remaining string `config:"remaining" enum:"exact|published" doc:"What policies know of the time that a job has left: exact, or as the publication's Optimus reckons it: the steps one epoch short, and a step on one device always with accumulation."`
	// EpochsAsked is at least 1.
	EpochsAsked float64 `config:"epochs_asked" min:"1" max:"100" doc:"How many times the epochs that it needs a job is submitted with, rounded up. In the further ones it trains as in the last one that was measured, and gets no better."`
}

// The values of PolluxConfig.Remaining.
const (
	remainingExact     = "exact"
	remainingPublished = "published"
)

// Validate reports empty paths.
func (c PolluxConfig) Validate() error { return given(c.Path, c.Profiles) }

// given refuses a trace or a folder of profiles that is not named.
func given(path, profiles string) error {
	var problems []error
	if path == "" {
		problems = append(problems, errors.New("path: is empty"))
	}
	if profiles == "" {
		problems = append(problems, errors.New("profiles: is empty"))
	}
	return errors.Join(problems...)
}

// NewPollux makes the factory of the source `pollux`.
func NewPollux() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "pollux",
		Summary: "training jobs that go as measured, from the Pollux artifact",
		Description: "Each row is an elastic training job. Its speed follows from the measured step times of its application by " +
			"placement and batch, and its progress from the measured gradient statistics. Placements beyond those measured are " +
			"interpolated over the triangulation in delaunay/, more than 16 nodes count as 16, and a placement with more than " +
			"4 devices on a node cannot run.",
		Source: "Pollux, OSDI 2021, artifact",
	}, PolluxConfig{Remaining: remainingExact, EpochsAsked: 1}, func(c PolluxConfig, _ core.Settings) (Source, error) {
		return polluxSource(c), nil
	})
}

type polluxSource PolluxConfig

func (s polluxSource) Load(ctx context.Context) (*Workload, error) {
	in, err := openInput(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	names, err := (&profileReader{folder: s.Profiles}).applications()
	if err != nil {
		return nil, err
	}
	models := newMeasuredModels(s.Profiles, names, s.Remaining == remainingPublished)
	models.epochsAsked = s.EpochsAsked
	return readPollux(ctx, in, models)
}

func readPollux(ctx context.Context, in *input, models *measuredModels) (*Workload, error) {
	return readArtifact(in, columns{required: artifactColumns}, &models.reader, func(t *table, job *Job, batch int) bool {
		if !t.ok() {
			return false
		}
		spec := &job.Spec
		model := models.of(ctx, t, polluxTask{application: spec.Application, batch: batch}, spec.Requested)
		if model == nil {
			return false
		}
		job.Model = model
		spec.MinReplicas, spec.MaxReplicas = 1, max(model.maxReplicas, spec.Requested)
		spec.Batch, spec.StepTimes, spec.Truth = model.batch, &model.stepTimes, model.truth()
		return true
	})
}

// polluxTask is what jobs must have in common to share a model.
type polluxTask struct {
	application string
	batch       int
}

// measuredModels makes the models of a workload, and reads the profile of an application when it is first asked for.
type measuredModels struct {
	reader      profileReader
	published   bool
	epochsAsked float64 // times those of the profile; as many where it is 0
	profiles    profilesOf[profile]
	models      map[polluxTask]*measuredModel
}

func newMeasuredModels(folder string, names []string, published bool) *measuredModels {
	m := &measuredModels{reader: profileReader{folder: folder}, published: published, models: map[polluxTask]*measuredModel{}}
	m.profiles = profilesOf[profile]{names: names, known: map[string]*profile{}, read: m.read}
	return m
}

// of returns the model of the row that t is at, or nil after it has reported why there is none.
func (m *measuredModels) of(ctx context.Context, t *table, task polluxTask, replicas int) *measuredModel {
	p := m.profiles.of(ctx, t, artifactApplication, task.application)
	if p == nil {
		return nil
	}
	model := m.models[task]
	if model == nil {
		if model = newMeasuredModel(p, task.batch, m.published); model == nil {
			t.reject(artifactBatch, fmt.Sprintf("a batch from %d to %d, as %s was trained with", p.batch.Initial, p.batch.Max, task.application))
			return nil
		}
		m.models[task] = model
	}
	if model.stepSeconds(consolidated(replicas, profileDevicesPerNode), replicas) == 0 {
		t.reject(artifactReplicas, fmt.Sprintf("as many as %s was measured with at a batch of %d, at most %d here",
			task.application, task.batch, model.mostReplicas()))
		return nil
	}
	return model
}

// read reads a profile; nil after a problem with it, which was then reported.
func (m *measuredModels) read(ctx context.Context, application string) *profile {
	p := m.reader.read(ctx, application)
	if p != nil {
		p.goOn(m.epochsAsked)
	}
	return p
}
