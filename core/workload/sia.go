package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// SiaConfig is the Config of the source `sia`.
type SiaConfig struct {
	// Path: workload to read: a CSV file with a job a row.
	Path string `config:"path" required:"true" doc:"Workload to read: a CSV file with a job a row; one compressed by gzip is recognised by its content."`
	// Profiles: folder of the measured profiles, a folder for each application.
	Profiles string `config:"profiles" required:"true" doc:"Folder of the measured profiles, a folder for each application."`
	// Accelerators: accelerator types of the cluster, each with the profile that jobs go by on it.
	Accelerators []SiaAccelerator `config:"accelerators" required:"true" doc:"Accelerator types of the cluster, each with the profile that jobs go by on it."`
	// Slowdown: applications that take longer than their profile says, for what it does not cover.
	Slowdown []SiaSlowdown `config:"slowdown" doc:"Applications that take longer than their profile says, for what it does not cover."`
	// Jobs: what jobs without a category can change: elastic, strong_scaling or rigid.
	Jobs string `config:"jobs" enum:"elastic|strong_scaling|rigid" doc:"What jobs are whose row has no category: elastic in replicas and batch, strong_scaling with the batch of the row, rigid with its replicas too."`
}

// SiaAccelerator says which profile an accelerator type goes by.
type SiaAccelerator struct {
	// Name: accelerator type of the cluster.
	Name string `config:"name" required:"true" doc:"accelerator type of the cluster"`
	// Profile: name of its profile, as in placements-PROFILE.csv.
	Profile string `config:"profile" required:"true" doc:"name of its profile, as in placements-PROFILE.csv"`
}

// SiaSlowdown is how much longer an application takes than its profile says.
type SiaSlowdown struct {
	// Application: name of the application.
	Application string `config:"application" required:"true" doc:"name of the application"`
	// Factor: its step times, as a multiple of those in the profile.
	Factor float64 `config:"factor" required:"true" min:"0.01" max:"100" doc:"its step times, as a multiple of those in the profile"`
}

// What a job can change.
const (
	siaElastic       = "elastic"
	siaStrongScaling = "strong_scaling"
	siaRigid         = "rigid"
)

var siaCategories = []string{siaElastic, siaStrongScaling, siaRigid}

// Validate reports what is empty or listed twice.
func (c SiaConfig) Validate() error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.Path == "" {
		problem("path: is empty")
	}
	if c.Profiles == "" {
		problem("profiles: is empty")
	}
	if len(c.Accelerators) == 0 {
		problem("accelerators: lists no type")
	}
	for i, a := range c.Accelerators {
		switch {
		case a.Name == "":
			problem("accelerators[%d].name: is empty", i)
		case slices.ContainsFunc(c.Accelerators[:i], func(earlier SiaAccelerator) bool { return earlier.Name == a.Name }):
			problem("accelerators[%d].name: %q is listed twice", i, a.Name)
		}
		if a.Profile == "" || strings.ContainsAny(a.Profile, `/\`) {
			problem("accelerators[%d].profile: %q is not the name of a profile", i, a.Profile)
		}
	}
	for i, s := range c.Slowdown {
		switch {
		case s.Application == "":
			problem("slowdown[%d].application: is empty", i)
		case slices.ContainsFunc(c.Slowdown[:i], func(earlier SiaSlowdown) bool { return earlier.Application == s.Application }):
			problem("slowdown[%d].application: %q is listed twice", i, s.Application)
		}
	}
	return errors.Join(problems...)
}

// slowdown is the factor of an application.
func (c *SiaConfig) slowdown(application string) float64 {
	for _, s := range c.Slowdown {
		if s.Application == application {
			return s.Factor
		}
	}
	return 1
}

// NewSia makes the factory of the source `sia`.
func NewSia() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "sia",
		Summary: "training jobs that go as measured on several accelerator types, from the Sia artifact",
		Description: "Each row is a training job. Its speed follows from the step times of its application by accelerator type, placement " +
			"and batch, and its progress from the measured gradient statistics. Placements that were not measured are interpolated " +
			"between those nearest in nodes, replicas and batch; more than 16 nodes count as 16. A column category may say of single " +
			"jobs what they can change.",
		Source: "Sia, SOSP 2023, artifact",
	}, SiaConfig{Jobs: siaElastic}, func(c SiaConfig, _ core.Settings) (Source, error) {
		return siaSource(c), nil
	})
}

type siaSource SiaConfig

func (s siaSource) Load(ctx context.Context) (*Workload, error) {
	in, err := openInput(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	models, err := newSiaModels((*SiaConfig)(&s))
	if err != nil {
		return nil, err
	}
	return readSia(ctx, in, models)
}

// siaCategory is the column of Sia's own.
const siaCategory = artifactEnd

var siaColumns = columns{required: artifactColumns, optional: []string{"category"}}

func readSia(ctx context.Context, in *input, models *siaModels) (*Workload, error) {
	return readArtifact(in, siaColumns, &models.reader, func(t *table, job *Job, batch int) bool {
		spec := &job.Spec
		task := siaTask{application: spec.Application, batch: batch, category: models.config.Jobs}
		if t.has(siaCategory) {
			if task.category = t.label(siaCategory); !slices.Contains(siaCategories, task.category) {
				t.reject(siaCategory, "a category: "+core.SuggestHint(task.category, "categories", siaCategories))
			}
		}
		if !t.ok() {
			return false
		}
		model := models.of(ctx, t, task, spec.Requested)
		if model == nil {
			return false
		}
		job.Model = model
		spec.MinReplicas, spec.MaxReplicas = 1, max(model.maxReplicas, spec.Requested)
		if task.category == siaRigid {
			spec.MinReplicas, spec.MaxReplicas = spec.Requested, spec.Requested
		}
		spec.Batch, spec.BatchByType, spec.Accelerators = model.batch, model.byType, model.accelerators
		spec.StepTimes, spec.Truth = &model.stepTimes, model.truth
		return true
	})
}

// siaTask is what jobs must have in common to share a model.
type siaTask struct {
	application string
	batch       int
	category    string
}

// siaModels makes the models of a workload, and reads the profile of an application when it is first asked for.
type siaModels struct {
	config   *SiaConfig
	reader   profileReader
	profiles profilesOf[siaProfile]
	models   map[siaTask]*siaModel
}

func newSiaModels(c *SiaConfig) (*siaModels, error) {
	names, err := folders(c.Profiles)
	m := &siaModels{config: c, reader: profileReader{folder: c.Profiles}, models: map[siaTask]*siaModel{}}
	m.profiles = profilesOf[siaProfile]{names: names, known: map[string]*siaProfile{}, read: func(ctx context.Context, application string) *siaProfile {
		return m.reader.readSia(ctx, application, c.Accelerators)
	}}
	return m, err
}

// of returns the model of the row that t is at, or nil after it has reported why there is none.
func (m *siaModels) of(ctx context.Context, t *table, task siaTask, replicas int) *siaModel {
	p := m.profiles.of(ctx, t, artifactApplication, task.application)
	if p == nil {
		return nil
	}
	if task.category == siaRigid {
		task.category = siaStrongScaling // goes by the same model
	}
	model := m.models[task]
	if model == nil {
		if model = newSiaModel(p, task.batch, task.category == siaStrongScaling, m.config.slowdown(task.application)); model == nil {
			t.reject(artifactBatch, fmt.Sprintf("a batch from %d to %d, as %s was trained with",
				p.trainings[0].batch, p.trainings[len(p.trainings)-1].batch, task.application))
			return nil
		}
		m.models[task] = model
	}
	if !model.runsOn(replicas) {
		t.reject(artifactReplicas, fmt.Sprintf("as many as %s was measured with at a batch of %d", task.application, task.batch))
		return nil
	}
	return model
}
