package workload

import (
	"context"
	"fmt"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sensitivity"
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
	ID             int
	Model          string
	ArrivalSeconds float64
	Iterations     float64 // whole, 1 or more
	Devices        int
	At             core.Position
}

// ReadSynergy reads a trace of the Synergy artifact: five columns without a header. Rows are in the order of the file. What is
// wrong with it is told all at once, as core.Diagnostics.
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
	CPUsPerDevice float64 // of the cluster
	Devices       int
	sensitivity.Table
}

// ReadSynergyModels reads the models of the Synergy artifact. Speeds are those of a row, or, where all its cells are empty, none. What
// is wrong is told all at once, as core.Diagnostics.
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
		m := SynergyModel{CPUsPerDevice: above(synergyRatio), Devices: t.count(synergyModelDevices)}
		m.Table = sensitivity.Table{
			Model: t.label(synergyModelName), IterationSeconds: t.span(synergyIteration), Speedup: above(synergySpeedup), CPUs: cpus, MemoryGB: memory,
			Ideal: sensitivity.Share{CPUs: above(synergyIdealCPUs), MemoryGB: above(synergyIdealMemory)},
		}
		above(synergyStorage)
		t.count(synergyBatch)
		m.Speed = synergySpeedsOf(t, len(cpus), len(memory))
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
		speeds[c] = append(speeds[c], t.number(synergySpeeds+i, aboveZero, maxCount, "a speed"))
	}
	return speeds
}
