package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
)

const (
	synergyID = iota
	synergyModel
	synergyArrival
	synergyIterations
	synergyDevices
)

var synergyColumns = columns{headless: true, required: []string{"job_id", "model", "arrival_s", "iterations", "gpus"}}

// SynergyRow is a job of a trace of the Synergy artifact.
type SynergyRow struct {
	// ID: number of the job.
	ID int
	// Model: name of the model that it trains.
	Model string
	// ArrivalSeconds: time of submission, in seconds.
	ArrivalSeconds float64
	Iterations     float64 // whole, 1 or more
	// Devices: number of devices that it asks for.
	Devices int
	// At: place of the row in the file.
	At core.Position
}

// ReadSynergy reads a trace of the Synergy artifact: five columns without a header. Rows are in the order of the file. What is
// wrong with it is reported together, as core.Diagnostics.
func ReadSynergy(ctx context.Context, path string) ([]SynergyRow, error) {
	in, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return readSynergy(in)
}

func readSynergy(in *input) ([]SynergyRow, error) {
	t := openTable(in, synergyColumns)
	var rows []SynergyRow
	lines := map[int]int{}
	for t.next() {
		row := SynergyRow{
			ID: int(t.whole(synergyID, 1e9, "a whole number")), Model: t.label(synergyModel), ArrivalSeconds: t.moment(synergyArrival),
			Iterations: t.whole(synergyIterations, 1e15, "a number of iterations"), Devices: t.count(synergyDevices), At: t.declaration(),
		}
		if t.accepted(synergyIterations) && row.Iterations < 1 {
			t.reject(synergyIterations, "at least one iteration")
		}
		if first, twice := lines[row.ID]; twice && t.accepted(synergyID) {
			t.reject(synergyID, fmt.Sprintf("a number of its own; it is on line %d too", first))
		}
		if lines[row.ID] = row.At.Line; t.ok() {
			rows = append(rows, row)
		}
	}
	return rows, t.finish().Err()
}

// The columns of the models of the Synergy artifact: those before the speeds, and the shares by which speeds were measured.
const (
	synergyRatio = iota
	synergyModelName
	synergyModelDevices
	synergyIdealCPUs
	synergyIdealMemory
	synergyStorage
	synergyBatch
	synergyIteration
	synergySpeedup
	synergySpeeds // the first of them
)

func synergyModelColumns() (cols columns, cpus, memory []float64) {
	cpus, memory = []float64{1, 2, 3, 4, 5, 6, 9, 12, 24}, []float64{20.83, 62.5, 125, 187.5, 250}
	names := strings.Fields("cluster_cpus_per_gpu model gpus ideal_cpus_per_gpu ideal_memory_gb_per_gpu ideal_storage_mbps_per_gpu batch iteration_s_at_proportional speedup_at_ideal")
	for _, c := range cpus {
		for _, m := range memory {
			names = append(names, "w_cpu"+formatNumber(c)+"_mem"+formatNumber(m))
		}
	}
	return columns{required: names}, cpus, memory
}

// SynergyModel is what was measured of a model with a number of devices, on servers with so many CPUs for a device.
type SynergyModel struct {
	// Model: name of the model.
	Model         string
	CPUsPerDevice float64 // of the cluster
	// Devices: number of devices that it was measured with.
	Devices int
	core.Sensitivity
}

// synergyMemoryPerDevice is the memory of a server by its devices, in GB, on the clusters that models were measured on.
const synergyMemoryPerDevice = 62.5

// ReadSynergyModels reads the models of the Synergy artifact. Speeds are those of a row, or, where all its cells are empty, none. What
// is wrong is reported together, as core.Diagnostics.
func ReadSynergyModels(ctx context.Context, path string) ([]SynergyModel, error) {
	in, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return readSynergyModels(in)
}

func readSynergyModels(in *input) ([]SynergyModel, error) {
	cols, cpus, memory := synergyModelColumns()
	t := openTable(in, cols)
	var models []SynergyModel
	type key struct {
		cpus    float64
		model   string
		devices int
	}
	lines := map[key]int{}
	for t.next() {
		above := func(column int) float64 { return t.number(column, aboveZero, maxCount, "a number") }
		m := SynergyModel{Model: t.label(synergyModelName), CPUsPerDevice: above(synergyRatio), Devices: t.count(synergyModelDevices)}
		m.Sensitivity = core.Sensitivity{
			Base:  core.Resources{CPUs: m.CPUsPerDevice, MemoryGB: synergyMemoryPerDevice},
			Ideal: core.Resources{CPUs: above(synergyIdealCPUs), MemoryGB: above(synergyIdealMemory)}, IterationSeconds: t.span(synergyIteration), Speedup: t.number(synergySpeedup, 1, maxCount, "a number"),
			CPUs: cpus, MemoryGB: memory,
		}
		above(synergyStorage)
		t.count(synergyBatch)
		m.Speeds = synergySpeedsOf(t, len(cpus), len(memory))
		if t.ok() && m.Speedup > 1 && m.Ideal.CPUs <= m.Base.CPUs && m.Ideal.MemoryGB <= m.Base.MemoryGB {
			t.reject(synergySpeedup, "1, as the ideal is no more than the share of a device")
		}
		of := key{m.CPUsPerDevice, m.Model, m.Devices}
		if first, twice := lines[of]; twice && t.ok() {
			t.reject(synergyModelName, fmt.Sprintf("a model once for each ratio and number of devices; it is on line %d too", first))
		}
		if lines[of] = t.declaration().Line; t.ok() {
			models = append(models, m)
		}
	}
	return models, t.finish().Err()
}

// synergySpeedsOf are the speeds of a row by CPUs and memory; nil where all are empty.
func synergySpeedsOf(t *table, cpus, memory int) [][]float64 {
	empty := true
	for i := range cpus * memory {
		empty = empty && t.cell(synergySpeeds+i) == ""
	}
	if empty {
		return nil
	}
	speeds := make([][]float64, cpus)
	for i := range cpus * memory {
		c := i / memory
		x := t.number(synergySpeeds+i, aboveZero, maxCount, "a speed")
		switch m := len(speeds[c]); {
		case !t.accepted(synergySpeeds + i):
		case m > 0 && x < speeds[c][m-1]:
			t.reject(synergySpeeds+i, fmt.Sprintf("at least the %v with less memory", speeds[c][m-1]))
		case c > 0 && x < speeds[c-1][m]:
			t.reject(synergySpeeds+i, fmt.Sprintf("at least the %v with fewer CPUs", speeds[c-1][m]))
		}
		speeds[c] = append(speeds[c], x)
	}
	return speeds
}

// SynergyConfig is the Config of the source `synergy`.
type SynergyConfig struct {
	// Path: trace: job_id, model, arrival_s, iterations, gpus, without a header.
	Path string `config:"path" required:"true" doc:"trace: job_id, model, arrival_s, iterations, gpus, without a header"`
	// Models: what was measured of the models, by CPUs and memory.
	Models string `config:"models_path" required:"true" doc:"what was measured of the models, by CPUs and memory"`
	// CPUsPerDevice: CPUs for a device of the servers that the models were measured on.
	CPUsPerDevice float64 `config:"cpus_per_device" min:"0" doc:"CPUs for a device of the servers that the models were measured on; those of the cluster, as published"`
	// Speeds: whether a job has its ideal speed or the one that was measured with its CPUs and memory.
	Speeds string `config:"speeds" enum:"ideal|measured" doc:"ideal: as published, a job has its speed-up with what it runs best with, less on a straight line down to the proportional share; measured: the speed that was measured with the largest amounts that are not above its own"`
	// LeastMemoryGB: with speeds ideal, memory for a device that a model asks for which needs no more than the least measured.
	LeastMemoryGB float64 `config:"least_memory_gb" min:"0" doc:"with speeds ideal, memory for a device that a model asks for which needs no more than the least measured; 0: the least measured"`
	// Delay: submit every job so much later; nil for what the artifact does, see staticDelay.
	Delay *time.Duration `config:"delay" min:"0s" doc:"submit every job so much later; left out, 299s where all jobs are there within the first second, for which the artifact has its first round of 300 s begin at second 1, and else 0s"`
}

// The values of SynergyConfig.Speeds.
const (
	synergyIdeal    = "ideal"
	synergyMeasured = "measured"
)

// NewSynergy makes the factory of the source `synergy`.
func NewSynergy() core.Factory[Source] {
	return core.NewFactory(core.Info{
		Type:    "synergy",
		Summary: "trace in the format of the Synergy artifact, with what was measured of its models by CPUs and memory",
		Description: "Each row is a rigid job of whole iterations, which take as long with any number of devices, as in the artifact. They ask for no CPUs and no memory of their own: " +
			"how many they run best with, and how fast they are, is their sensitivity. Of models that were measured with several numbers of devices, those of one device count, as in the artifact.",
		Source: "Synergy, OSDI 2022, artifact",
	}, SynergyConfig{CPUsPerDevice: 3, Speeds: synergyIdeal, LeastMemoryGB: 20}, func(c SynergyConfig, _ core.Settings) (Source, error) { return &synergySource{c}, nil })
}

type synergySource struct{ SynergyConfig }

func (s *synergySource) Load(ctx context.Context) (*Workload, error) {
	in, err := openInput(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	measured, err := openInput(ctx, s.Models)
	if err != nil {
		return nil, err
	}
	models, problems := s.models(measured)
	rows, err := readSynergy(in)
	if found, is := errors.AsType[core.Diagnostics](err); is {
		problems = append(problems, found...)
	} else if err != nil {
		return nil, err
	}
	delay := staticDelay(rows)
	if s.Delay != nil {
		delay = s.Delay.Seconds()
	}
	jobs := make([]Job, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		t := models[row.Model]
		if t == nil && models != nil {
			problems = append(problems, core.Diagnostic{
				Position: row.At, Summary: fmt.Sprintf("model %q was not measured on servers with %v CPUs for a device", row.Model, s.CPUsPerDevice),
				Hint: core.SuggestHint(row.Model, "models", synergyNames(models)),
			})
		}
		if t != nil {
			jobs = append(jobs, row.job(t, delay))
		}
	}
	return assemble(jobs, []Input{in.Input, measured.Input}, problems)
}

func synergyNames(models map[string]*core.Sensitivity) []string {
	return slices.Sorted(maps.Keys(models))
}

// models are those of one device on servers of the ratio, by name; nil after a problem with them.
func (s *synergySource) models(in *input) (map[string]*core.Sensitivity, core.Diagnostics) {
	list, err := readSynergyModels(in)
	if err != nil {
		found, is := errors.AsType[core.Diagnostics](err)
		if !is {
			found = core.Diagnostics{{Position: core.Position{File: in.Path}, Summary: err.Error()}}
		}
		return nil, found
	}
	models := map[string]*core.Sensitivity{}
	for i := range list {
		m := &list[i]
		if m.CPUsPerDevice != s.CPUsPerDevice || m.Devices != 1 {
			continue
		}
		t := m.Sensitivity
		if t.Ideal.MemoryGB = t.Memory(0); s.Speeds == synergyIdeal {
			t.Ideal.MemoryGB = t.Memory(s.LeastMemoryGB)
			t.CPUs, t.MemoryGB, t.Speeds = nil, nil, nil
		}
		models[m.Model] = &t
	}
	return models, nil
}

// staticDelay is by how many seconds the jobs of a trace come later here than in the artifact. Its rounds last 300 s; the first one begins at second 1 where all
// jobs are there within the first second, and else at a multiple of 300 s, as here.
func staticDelay(rows []SynergyRow) float64 {
	for i := range rows {
		if rows[i].ArrivalSeconds >= 1 {
			return 0
		}
	}
	return 299
}

// job is a row as a job, submitted so many seconds later.
func (row *SynergyRow) job(t *core.Sensitivity, delay float64) Job {
	job := newDurationJob(strconv.Itoa(row.ID), row.ArrivalSeconds+delay, row.Iterations, row.Devices)
	job.Spec.Application, job.Spec.Sensitivity, job.At = row.Model, t, row.At
	job.Model = &iterations{row.Iterations, t.IterationSeconds, row.Devices}
	return job
}

// iterations is a rigid job that takes as long for each of them.
type iterations struct {
	total    float64
	seconds  float64 // of one
	replicas int
}

func (m *iterations) Phases() int           { return 1 }
func (m *iterations) PhaseEnd(int) float64  { return m.total }
func (m *iterations) StepsLeft(int) float64 { return math.NaN() }

func (m *iterations) Rate(_ int, c Running) float64 {
	if c.Replicas != m.replicas {
		return 0
	}
	return 1 / m.seconds
}
