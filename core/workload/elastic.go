package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// ElasticConfig is the Config of the source `elastic`.
type ElasticConfig struct {
	// Path: stream to read: a CSV file with a job a row, its submission, application, work in seconds on one device, and a batch drawn at random.
	Path string `config:"path" doc:"Stream to read: a CSV file with a job a row, its submission, application, work in seconds on one device, and a batch drawn at random. Empty draws one by arrivals."`
	// Arrivals: without a path, the pattern by which jobs arrive.
	Arrivals string `config:"arrivals" enum:"none|low|high|bursty" doc:"Without a path, how jobs arrive: one in 480 s on average, in 90 s, or in 600 s in even hours and 60 s in odd ones; the seed of the run is that of the draws."`
	// Span: time within which jobs that are drawn arrive.
	Span time.Duration `config:"span" min:"1s" max:"8760h" doc:"Time within which jobs that are drawn arrive."`
	// Profiles: folder of the measured profiles, holding traces/ and delaunay/.
	Profiles string `config:"profiles" required:"true" doc:"Folder of the measured profiles, holding traces/ and delaunay/."`
	// Batch: batch that the owner of a job asks for: smallest, largest or random.
	Batch string `config:"batch" enum:"smallest|largest|random" doc:"The batch that the owner of a job asks for: the smallest or the largest of its application's range, or that of its row. It binds where the elasticity keeps it."`
	// Truth: work that a job needs at another batch: as many samples, or as many more as its application was measured to.
	Truth string `config:"truth" enum:"samples|progress" doc:"What a job needs at another batch: as many samples, or as many more as its application took when it was trained so."`
	// Placed: speed of a job on more nodes than it needs: as measured, or as if consolidated.
	Placed string `config:"placed" enum:"measured|consolidated" doc:"How fast a job is that is spread over more nodes than it needs: as measured so, or as if it were not."`
	// MostDevices: devices that a job may have at most.
	MostDevices int `config:"most_devices" min:"1" max:"64" doc:"Devices that a job may have at most."`
}

// The values of ElasticConfig.
const (
	arrivalsNone = "none"
	arrivalsLow  = "low"
	arrivalsHigh = "high"

	batchLargest  = "largest"
	batchSmallest = "smallest"
	batchRandom   = "random"

	truthSamples  = "samples"
	truthProgress = "progress"

	placedMeasured     = "measured"
	placedConsolidated = "consolidated"
)

// Validate reports a missing folder, and jobs from nowhere or from two places.
func (c ElasticConfig) Validate() error {
	var problems []error
	if c.Profiles == "" {
		problems = append(problems, errors.New("profiles: is empty"))
	}
	switch drawn := c.Arrivals != arrivalsNone; {
	case c.Path == "" && !drawn:
		problems = append(problems, errors.New("path: is empty; name a stream, or draw one with arrivals low, high or bursty"))
	case c.Path != "" && drawn:
		problems = append(problems, errors.New("arrivals: must be none where a stream is read from path"))
	}
	return errors.Join(problems...)
}

// NewElastic makes the factory of the source `elastic`.
func NewElastic() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "elastic",
		Summary: "short elastic trainings of the applications measured for Pollux, from a stream or drawn",
		Description: "Each row is a training of cifar10, deepspeech2, bert or yolov3 that takes so many seconds on one device at its best batch. Its speed follows " +
			"from the measured step times. Its batch may be any of a range, up to ten times what a device holds. A stream that is drawn is " +
			"that of Python's random numbers for the seed of the run: arrival, application, work from 20 to 60 minutes, one of 40 batches.",
		Source: "Saxena et al., MASCOTS 2020, whose workloads are not known; profiles of Pollux, OSDI 2021, artifact",
	}, ElasticConfig{
		Arrivals: arrivalsNone, Span: 24 * time.Hour, Batch: batchSmallest, Truth: truthSamples, Placed: placedMeasured, MostDevices: 10,
	}, func(c ElasticConfig, s core.Settings) (Source, error) {
		return &elasticSource{ElasticConfig: c, seed: s.Seed}, nil
	})
}

type elasticSource struct {
	ElasticConfig
	seed uint64
}

// UsesSeed reports whether the stream is one that is drawn.
func (s *elasticSource) UsesSeed() bool { return s.Path == "" }

// elasticApplications are those that are drawn, in the order of the draw.
var elasticApplications = [...]string{"cifar10", "deepspeech2", "bert", "yolov3"}

func (s *elasticSource) Load(ctx context.Context) (*Workload, error) {
	names, err := (&profileReader{folder: s.Profiles}).applications()
	if err != nil {
		return nil, err
	}
	l := newElasticLoader(s.ElasticConfig, names)
	if s.Path == "" {
		return l.draw(ctx, newMersenne(s.seed))
	}
	in, err := openInput(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	return l.read(ctx, in)
}

// elasticLoader makes the jobs of a stream.
type elasticLoader struct {
	config   ElasticConfig
	profiles *measuredModels
	made     map[string]*elasticApplicationModel
	jobs     []Job
}

func newElasticLoader(c ElasticConfig, names []string) *elasticLoader {
	return &elasticLoader{config: c, profiles: newMeasuredModels(c.Profiles, names, false), made: map[string]*elasticApplicationModel{}}
}

const (
	elasticSubmit = iota
	elasticName
	elasticWork
	elasticBatch
)

// elasticColumns are those of a stream; the batch is looked at only where it is that of the jobs.
func elasticColumns(batch string) columns {
	const last = "random_batch"
	c := columns{required: []string{"submit_s", "application", "work_s"}}
	if batch == batchRandom {
		c.required = append(c.required, last)
	} else {
		c.optional = append(c.optional, last)
	}
	return c
}

func (l *elasticLoader) read(ctx context.Context, in *input) (*Workload, error) {
	t := openTable(in, elasticColumns(l.config.Batch))
	for t.next() {
		submit, name, work, batch := t.moment(elasticSubmit), t.label(elasticName), t.span(elasticWork), 0
		if l.config.Batch == batchRandom {
			batch = t.count(elasticBatch)
		}
		if !t.ok() {
			continue
		}
		a := l.made[name]
		if a == nil {
			p := l.profiles.profiles.of(ctx, t, elasticName, name)
			if p == nil {
				continue
			}
			a = newElasticApplicationModel(p, &l.config)
			l.made[name] = a
		}
		if l.config.Batch == batchRandom && (batch < a.batch.Initial || batch > a.batch.Max) {
			t.reject(elasticBatch, fmt.Sprintf("a batch from %d to %d, as %s may have", a.batch.Initial, a.batch.Max, name))
			continue
		}
		model := a.model(a.requested(batch), work)
		if model.least == 0 {
			t.reject(elasticName, fmt.Sprintf("an application that holds a batch of %d on at most %d devices at once", model.batch.Requested, l.config.MostDevices))
			continue
		}
		l.add(model, name, submit, t.declaration())
	}
	return l.finish([]Input{in.Input}, append(t.finish(), l.profiles.reader.problems...))
}

// finish names the jobs, which a stream does not, in the order of their submission.
func (l *elasticLoader) finish(inputs []Input, problems core.Diagnostics) (*Workload, error) {
	slices.SortStableFunc(l.jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Spec.SubmitSeconds, b.Spec.SubmitSeconds), strings.Compare(a.Spec.Application, b.Spec.Application),
			cmp.Compare(a.Spec.Batch.Requested, b.Spec.Batch.Requested), cmp.Compare(a.Spec.TotalWork, b.Spec.TotalWork))
	})
	for i := range l.jobs {
		l.jobs[i].Spec.Name = fmt.Sprintf("job-%06d", i)
	}
	read := l.profiles.reader.inputs
	slices.SortFunc(read, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return assemble(l.jobs, append(inputs, read...), problems)
}

func (l *elasticLoader) add(model *elasticModel, application string, submit float64, at core.Position) {
	job := Job{Model: model, At: at}
	spec := &job.Spec
	spec.Application, spec.SubmitSeconds, spec.Weight = application, submit, 1
	spec.Requested, spec.MinReplicas, spec.MaxReplicas = model.least, 1, l.config.MostDevices
	spec.Batch, spec.StepTimes, spec.Truth, spec.TotalWork = model.batch, model.stepTimes, model.truth, model.work
	l.jobs = append(l.jobs, job)
}

// draw draws a stream as the recipe of the reference does with Python's random numbers.
func (l *elasticLoader) draw(ctx context.Context, r *mersenne) (*Workload, error) {
	for _, name := range elasticApplications {
		p := l.profiles.reader.read(ctx, name)
		if p == nil {
			return nil, l.profiles.reader.problems.Err()
		}
		l.made[name] = newElasticApplicationModel(p, &l.config)
	}
	for at := 0.0; ; {
		at += -math.Log(1-r.float64()) * l.config.gap(at)
		if at >= l.config.Span.Seconds() {
			break
		}
		name := elasticApplications[r.intN(len(elasticApplications))]
		a, work := l.made[name], r.uniform(1200, 3600)
		batch := a.candidates[r.intN(len(a.candidates))]
		model := a.model(a.requested(batch), work)
		if model.least == 0 {
			return nil, fmt.Errorf("most_devices: %d devices do not hold a batch of %d of %s at once", l.config.MostDevices, model.batch.Requested, name)
		}
		l.add(model, name, at, core.Position{})
	}
	return l.finish(nil, l.profiles.reader.problems)
}

// gap is the mean time to the next arrival after one, in seconds.
func (c *ElasticConfig) gap(after float64) float64 {
	switch hour := int(after / 3600); {
	case c.Arrivals == arrivalsLow:
		return 480
	case c.Arrivals == arrivalsHigh:
		return 90
	case hour%2 == 0:
		return 600
	default:
		return 60
	}
}
