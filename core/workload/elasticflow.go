package workload

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// ElasticFlowConfig is the Config of the source `elasticflow`.
type ElasticFlowConfig struct {
	// Path: workload to read: a CSV file with a job a row.
	Path string `config:"path" required:"true" doc:"Workload to read: a CSV file with a job a row; one compressed by gzip is recognised by its content."`
	// Profiles: folder of the measured profiles, with a file MODEL.csv for each model.
	Profiles string `config:"profiles" required:"true" doc:"Folder of the measured profiles, with a file MODEL.csv for each model."`
}

// Validate reports empty paths.
func (c ElasticFlowConfig) Validate() error { return given(c.Path, c.Profiles) }

// NewElasticFlow makes the factory of the source `elasticflow`.
func NewElasticFlow() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "elasticflow",
		Summary: "training jobs with deadlines, from the ElasticFlow artifact",
		Description: "Each row is a training job of so many iterations at a fixed batch, with a deadline. It is as fast as measured with so " +
			"many devices, wherever they are, and cannot run on numbers that were not measured. Moments count from the first submission. " +
			"The duration on the devices that it asks for is checked and not used.",
		Source: "ElasticFlow, ASPLOS 2023, artifact",
	}, ElasticFlowConfig{}, func(c ElasticFlowConfig, _ core.Settings) (Source, error) {
		return elasticFlowSource(c), nil
	})
}

type elasticFlowSource ElasticFlowConfig

const (
	flowName = iota
	flowSubmit
	flowIterations
	flowModel
	flowDeadline
	flowBatch
	flowReplicas
	flowDuration
)

var flowColumns = columns{required: []string{"job_id", "submit_time", "iteration", "model_name", "ddl", "batch_size", "num_gpu", "duration"}}

func (s elasticFlowSource) Load(ctx context.Context) (*Workload, error) {
	in, err := openInput(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	speeds := flowSpeeds{reader: profileReader{folder: s.Profiles}, models: map[string]map[int]*countedSpeed{}}
	t := openTable(in, flowColumns)
	var jobs []Job
	first := math.Inf(1)
	for t.next() {
		job, deadline := Job{At: t.declaration()}, 0.0
		spec := &job.Spec
		spec.Name, spec.SubmitSeconds, spec.TotalWork = t.text(flowName), t.moment(flowSubmit), t.number(flowIterations, aboveZero, maxNumber, "a number of iterations")
		spec.Application, deadline, spec.Requested = t.label(flowModel), t.moment(flowDeadline), t.count(flowReplicas)
		batch := t.count(flowBatch)
		t.span(flowDuration)
		if t.accepted(flowSubmit) && t.accepted(flowDeadline) && deadline <= spec.SubmitSeconds {
			t.reject(flowDeadline, "a moment after that of the submission")
		}
		if !t.ok() {
			continue
		}
		speed := speeds.of(ctx, t, spec.Application, batch)
		if speed == nil {
			continue
		}
		if speed.rate(spec.Requested) == 0 {
			t.reject(flowReplicas, fmt.Sprintf("a number of devices that %s was measured with", spec.Application))
			continue
		}
		job.Model = &countedModel{speed, spec.TotalWork}
		spec.DeadlineSeconds, spec.Weight, spec.StepTimes = deadline-spec.SubmitSeconds, 1, &speed.stepTimes
		spec.MinReplicas, spec.MaxReplicas = speed.least(), len(speed.rates)
		spec.Batch = core.BatchSpec{Requested: batch, Initial: batch, Max: batch}
		first = min(first, spec.SubmitSeconds)
		jobs = append(jobs, job)
	}
	for i := range jobs {
		jobs[i].Spec.SubmitSeconds -= first
	}
	inputs := append([]Input{in.Input}, speeds.reader.inputs...)
	slices.SortFunc(inputs[1:], func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return assemble(jobs, inputs, append(t.finish(), speeds.reader.problems...))
}

// countedSpeed is how fast jobs are by the number of their replicas, wherever these are.
type countedSpeed struct {
	rates     []float64 // steps per second, index r-1 for r; 0 where they cannot run so
	stepTimes core.StepTimes
}

func newCountedSpeed(rates []float64) *countedSpeed {
	s := &countedSpeed{rates: rates}
	times := make([]float64, len(rates))
	for i, rate := range rates {
		if rate > 0 {
			times[i] = 1 / rate
		}
	}
	s.stepTimes.OneNode, s.stepTimes.ManyNodes = times, times
	return s
}

func (s *countedSpeed) rate(replicas int) float64 {
	if replicas < 1 || replicas > len(s.rates) {
		return 0
	}
	return s.rates[replicas-1]
}

// least is the least number of replicas that they run with.
func (s *countedSpeed) least() int {
	return slices.IndexFunc(s.rates, func(rate float64) bool { return rate > 0 }) + 1
}

// countedModel is a job of so many steps: one phase, at a rate that depends on the number of replicas only.
type countedModel struct {
	*countedSpeed
	steps float64
}

func (m *countedModel) Phases() int                   { return 1 }
func (m *countedModel) PhaseEnd(int) float64          { return m.steps }
func (m *countedModel) StepsLeft(int) float64         { return m.steps }
func (m *countedModel) Rate(_ int, c Running) float64 { return m.rate(c.Replicas) }

// flowSpeeds reads the throughputs of a model when it is first asked for.
type flowSpeeds struct {
	reader profileReader
	models map[string]map[int]*countedSpeed // by name and batch; nil where there is no file
}

// of is the speed of a model at a batch; nil after a problem with it, which is then told of the row.
func (s *flowSpeeds) of(ctx context.Context, t *table, model string, batch int) *countedSpeed {
	batches, read := s.models[model]
	if !read {
		batches = s.read(ctx, model)
		s.models[model] = batches
	}
	speed := batches[batch]
	if speed == nil && batches != nil {
		var known []string
		for _, b := range slices.Sorted(maps.Keys(batches)) {
			known = append(known, strconv.Itoa(b))
		}
		t.reject(flowBatch, fmt.Sprintf("a batch that %s was measured with: %s", model, strings.Join(known, ", ")))
	}
	return speed
}

// flowDevices are the numbers of devices that models were measured with.
var flowDevices = []int{1, 2, 4, 8, 16, 32, 64}

func flowSpeedColumns() columns {
	c := columns{required: []string{"global_batch_size"}}
	for _, n := range flowDevices {
		c.required = append(c.required, strconv.Itoa(n))
	}
	return c
}

// read reads the file of a model; nil after a problem, which was then collected.
func (s *flowSpeeds) read(ctx context.Context, model string) map[int]*countedSpeed {
	before := len(s.reader.problems)
	speeds := map[int]*countedSpeed{}
	s.reader.open(ctx, filepath.Join(s.reader.folder, model+".csv"), flowSpeedColumns(), func(t *table) {
		for t.next() {
			batch, rates := t.count(0), make([]float64, flowDevices[len(flowDevices)-1])
			for i, n := range flowDevices {
				if t.cell(i+1) != "nan" {
					rates[n-1] = t.number(i+1, aboveZero, maxNumber, "steps a second, or nan")
				}
			}
			if !t.ok() {
				continue
			}
			if speeds[batch] != nil {
				t.reject(0, "a batch that no other row has")
				continue
			}
			speeds[batch] = newCountedSpeed(rates)
		}
	})
	if len(s.reader.problems) > before {
		return nil
	}
	return speeds
}
