package workload

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// MixedTypesConfig is the Config of the source `unlike_workers`.
type MixedTypesConfig struct {
	// Path: trace in Quartet's own CSV format that says when jobs come, on how many replicas and how long they last.
	Path string `config:"path" doc:"Trace in Quartet's own CSV format that says when jobs come, on how many replicas and how long they last; jobs, span and the two durations are then not used. None if empty."`
	// Jobs: number of jobs.
	Jobs int `config:"jobs" min:"1" max:"1000000" doc:"Number of jobs."`
	// Span: time within which all jobs are submitted, evenly at random.
	Span time.Duration `config:"span" min:"0" doc:"Time within which all jobs are submitted, evenly at random; 0 submits them at once."`
	// ShortestSeconds: least duration of a job, on the replicas it requests of type V100M32.
	ShortestSeconds float64 `config:"shortest_seconds" min:"1" max:"1e8" doc:"Least duration of a job, on the replicas it requests of type V100M32."`
	// LongestSeconds: greatest duration of a job.
	LongestSeconds float64 `config:"longest_seconds" min:"1" max:"1e8" doc:"Greatest duration of a job; durations spread evenly in the exponent."`
	// MaxReplicas: most replicas that a job can use.
	MaxReplicas int `config:"max_replicas" min:"1" max:"1024" doc:"Most replicas that a job can use."`
	// SlowestLinkGbps: gigabits per second of the slowest link between replicas, over which gradients are reduced.
	SlowestLinkGbps float64 `config:"slowest_link_gbps" min:"0.001" max:"1e6" doc:"Gigabits per second of the slowest link between replicas, over which gradients are reduced."`
	// MixesTypes: whether the replicas of a job may run on devices of different types.
	MixesTypes bool `config:"mixes_types" doc:"Whether the replicas of a job may run on devices of different types."`
}

// NewMixedTypes makes the factory of the source `unlike_workers`.
func NewMixedTypes() core.Factory[Source] {
	defaults := MixedTypesConfig{
		Jobs: 250, Span: 8 * time.Hour, ShortestSeconds: 600, LongestSeconds: 14_400, MaxReplicas: 16, SlowestLinkGbps: 25, MixesTypes: true,
	}
	return core.NewFactory(core.Info{
		Type:    "unlike_workers",
		Summary: "random data-parallel jobs whose replicas may run on accelerators of different types",
		Description: "Jobs train six applications on the accelerator types of the openb cluster: T4, P100, V100M16, V100M32, A10, G2 and G3. " +
			"How fast a type is follows from its published peak rates and from what a sample costs in arithmetic and memory traffic. The trace hides what G2 and G3 are: they count as A10 and A100. " +
			"A job has a fixed batch and runs on any number of replicas from 1 up, in steps that last until the slowest replica is done with its part of the batch, and then reduces its gradients in a ring over the slowest link. " +
			"It asks for 1, 2, 4 or 8 replicas like the jobs of Gavel. Submission times are in whole seconds, and durations are drawn evenly in the exponent. " +
			"With a path, a job lasts as long on the replicas it requests of type V100M32 as its row says, and trains the application of its row, or one drawn at random. Types that its row allows bound those it can run on; any number of replicas will do, whatever the row says.",
		Source: "Liu et al., IEEE TPDS 35(6), 2024: model of a step; NVIDIA data sheets: peak rates; Gavel, OSDI 2020: replicas",
	}, defaults, func(c MixedTypesConfig, s core.Settings) (Source, error) {
		g := &mixedGenerator{config: c, rand: s.Rand}
		for i := range mixedTasks {
			g.tasks = append(g.tasks, newMixedTask(&mixedTasks[i], c))
		}
		return g, nil
	})
}

// Validate reports durations in the wrong order.
func (c MixedTypesConfig) Validate() error {
	if c.LongestSeconds < c.ShortestSeconds {
		return fmt.Errorf("longest_seconds: %v is below shortest_seconds, %v", c.LongestSeconds, c.ShortestSeconds)
	}
	return nil
}

// accelerator is what a data sheet says of a type.
type accelerator struct {
	name           string
	singleTeraflop float64 // peak in single precision
	halfTeraflop   float64 // peak in half precision, on tensor cores where there are any
	bandwidth      float64 // TB/s
	memoryGB       float64
}

// openbAccelerators are the types of the openb cluster. V100 as SXM2, P100 as PCIe, A100 with 40 GB as SXM.
var openbAccelerators = []accelerator{
	{"T4", 8.1, 65, 0.320, 16},
	{"P100", 9.3, 18.7, 0.732, 16},
	{"V100M16", 15.7, 125, 0.900, 16},
	{"V100M32", 15.7, 125, 0.900, 32},
	{"A10", 31.2, 125, 0.600, 24},
	{"G2", 31.2, 125, 0.600, 24},
	{"G3", 19.5, 312, 1.555, 40},
}

// referenceType is the type that durations are meant on.
const referenceType = "V100M32"

// The shares of the peaks that training reaches.
const (
	computeShare   = 0.4
	bandwidthShare = 0.7
)

// mixedKind is an application, by what a sample costs.
type mixedKind struct {
	name       string
	teraflop   float64 // of a sample, forwards and backwards
	half       bool    // computes in half precision
	trafficGB  float64 // to and from the device's memory, of a sample
	inputSec   float64 // on the host, of a sample
	memoryGB   float64 // least memory of a device
	batch      int
	modelBytes float64 // of gradients
}

// mixedTasks bind differently, in round figures: resnet50, bert and gpt2 profit from tensor cores, yolov3 from single
// precision, deepspeech2 and dlrm from memory bandwidth. gpt2 does not fit into 16 GB.
var mixedTasks = []mixedKind{
	{"resnet50", 0.0123, true, 0.4, 0, 8, 256, 102e6},
	{"bert", 0.26, true, 0.6, 0, 14, 256, 680e6},
	{"gpt2", 4.75, true, 6, 0, 24, 64, 1550e6},
	{"yolov3", 0.2, false, 1, 0, 12, 64, 248e6},
	{"deepspeech2", 0.01, false, 3, 0, 10, 256, 120e6},
	{"dlrm", 2e-5, false, 0.002, 2e-6, 8, 32768, 20e6},
}

// rate is the samples a second of one device; 0 when its memory does not suffice.
func (k *mixedKind) rate(a *accelerator) float64 {
	if k.memoryGB > a.memoryGB {
		return 0
	}
	peak := a.singleTeraflop
	if k.half {
		peak = a.halfTeraflop
	}
	return 1 / (k.teraflop/(computeShare*peak) + k.trafficGB/(bandwidthShare*1000*a.bandwidth) + k.inputSec)
}

// mixedTask is an application with what its jobs share.
type mixedTask struct {
	kind      *mixedKind
	types     []string
	rates     []float64 // samples/s, by types
	reference float64
	sync      []float64 // seconds to reduce gradients, by replicas
	stepTimes core.StepTimes
}

func newMixedTask(kind *mixedKind, c MixedTypesConfig) *mixedTask {
	t := &mixedTask{kind: kind}
	link := c.SlowestLinkGbps * 1e9 / 8
	for r := range min(c.MaxReplicas, kind.batch) {
		k := float64(r + 1)
		t.sync = append(t.sync, 2*(k-1)/k*kind.modelBytes/link)
	}
	t.stepTimes.MixedTypes = &core.MixedTypeTimes{SyncSeconds: t.sync}
	for i := range openbAccelerators {
		a := &openbAccelerators[i]
		rate := kind.rate(a)
		if a.name == referenceType {
			t.reference = rate
		}
		if rate > 0 {
			t.add(a.name, rate)
		}
	}
	return t
}

func (t *mixedTask) add(name string, rate float64) {
	alone := float64(t.kind.batch) / rate
	t.types, t.rates = append(t.types, name), append(t.rates, rate)
	times := make([]float64, len(t.sync))
	for r := range times {
		times[r] = alone/float64(r+1) + t.sync[r]
	}
	t.stepTimes.Types = append(t.stepTimes.Types, core.TypeTimes{Accelerator: name, OneNode: times, ManyNodes: times})
	t.stepTimes.MixedTypes.SingleDeviceTimes = append(t.stepTimes.MixedTypes.SingleDeviceTimes, core.SingleDeviceTime{Accelerator: name, Seconds: alone})
}

type mixedGenerator struct {
	config MixedTypesConfig
	rand   *rand.Rand
	tasks  []*mixedTask
}

// Load generates the workload. A second call goes on in the random stream, and so yields other jobs.
func (g *mixedGenerator) Load(ctx context.Context) (*Workload, error) {
	if g.config.Path != "" {
		return g.read(ctx)
	}
	jobs := make([]Job, g.config.Jobs)
	arrivals := make([]float64, len(jobs))
	for i := range arrivals {
		arrivals[i] = math.Floor(g.rand.Float64() * g.config.Span.Seconds())
	}
	slices.Sort(arrivals)
	for i := range jobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		jobs[i] = g.job(fmt.Sprintf("job-%06d", i), arrivals[i])
	}
	return assemble(jobs, nil, nil)
}

func (g *mixedGenerator) job(name string, submit float64) Job {
	task := g.tasks[g.rand.IntN(len(g.tasks))]
	replicas := min(gavelReplicaMix.draw(g.rand), len(task.sync))
	low, high := math.Log(g.config.ShortestSeconds), math.Log(g.config.LongestSeconds)
	seconds := math.Exp(low + (high-low)*g.rand.Float64())
	spec := core.JobSpec{Name: name, SubmitSeconds: submit, Weight: 1, Requested: replicas, Accelerators: task.types}
	return g.training(task, spec, seconds)
}

// training is a job that trains for so many seconds on the replicas it requests of the reference type.
func (g *mixedGenerator) training(task *mixedTask, spec core.JobSpec, seconds float64) Job {
	replicas := spec.Requested
	step := float64(task.kind.batch)/task.reference/float64(replicas) + task.sync[replicas-1]
	m := &mixedModel{task: task, iterations: max(math.Round(seconds/step), 1)}
	spec.Application, spec.MixesTypes = task.kind.name, g.config.MixesTypes
	spec.MinReplicas, spec.MaxReplicas = 1, len(task.sync)
	batch := task.kind.batch
	spec.Batch = core.BatchSpec{Requested: batch, Initial: batch, Max: batch, MinPerDevice: 1}
	spec.TotalWork, spec.StepTimes = m.iterations, &task.stepTimes
	return Job{Spec: spec, Model: m}
}

// mixedPhases is how often a job says how many steps are left.
const mixedPhases = 100

// mixedModel is a data-parallel job at a fixed batch. A step lasts until the slowest replica is done with its part of
// the batch, and the gradients are reduced. Work is counted in steps at the requested batch, of which a step at another
// batch is that part.
type mixedModel struct {
	task       *mixedTask
	iterations float64
}

func (m *mixedModel) Phases() int { return mixedPhases }

func (m *mixedModel) PhaseEnd(phase int) float64 {
	return m.iterations * float64(phase+1) / mixedPhases
}

func (m *mixedModel) StepsLeft(phase int) float64 {
	return m.iterations * float64(mixedPhases-phase) / mixedPhases
}

func (m *mixedModel) Rate(_ int, c Running) float64 {
	if c.Replicas < 1 || c.Replicas > len(m.task.sync) {
		return 0
	}
	split, even := c.Tuning.BatchByReplica, c.Tuning.BatchPerDevice
	if even == 0 {
		even, _ = goodput.SplitBatch(m.task.kind.batch, c.Replicas, core.BatchSpec{})
	}
	samples, slowest, replica := 0, 0.0, 0
	for node, replicas := range c.Shape {
		rate := m.rateOn(c.Accelerators[node])
		for range replicas {
			part := even
			if len(split) == c.Replicas {
				part = split[replica]
			}
			if part > 0 && rate == 0 {
				return 0
			}
			if part > 0 {
				slowest = max(slowest, float64(part)/rate)
			}
			samples += part
			replica++
		}
	}
	passes := float64(c.Tuning.AccumulationSteps + 1)
	return passes * float64(samples) / float64(m.task.kind.batch) / (passes*slowest + m.task.sync[c.Replicas-1])
}

func (m *mixedModel) rateOn(accelerator string) float64 {
	if t := slices.Index(m.task.types, accelerator); t >= 0 {
		return m.task.rates[t]
	}
	return 0
}
