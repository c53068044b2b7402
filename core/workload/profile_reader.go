package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// profileReader reads the profiles of a folder: traces/<application>/{placements,validation-*}.csv and
// delaunay/<application>-{points,simplices}.csv.
type profileReader struct {
	folder   string
	inputs   []Input
	problems core.Diagnostics
}

// applications lists what the folder holds profiles of.
func (r *profileReader) applications() ([]string, error) {
	return folders(filepath.Join(r.folder, "traces"))
}

// read reads one profile; nil after a problem with it, which was then collected.
func (r *profileReader) read(ctx context.Context, application string) *profile {
	p := &profile{application: application, maxReplicas: profileMaxReplicas}
	before := len(r.problems)
	traces := filepath.Join(r.folder, "traces", application)
	r.readPlacements(ctx, p, filepath.Join(traces, "placements.csv"))
	r.readTrainings(ctx, &p.learning, traces)
	division := filepath.Join(r.folder, "delaunay", application)
	r.readTriangulation(ctx, p, division+"-points.csv", division+"-simplices.csv")
	if len(r.problems) > before {
		return nil
	}
	p.limit()
	return p
}

// limit sets the bounds that follow from what was measured, and those that the artifact states beside its files.
func (p *profile) limit() {
	p.batch.Initial, p.batch.Max = p.trainings[0].batch, p.trainings[len(p.trainings)-1].batch
	stated := p.stated(p.application)
	p.batch.MaxPerDevice = min(p.batch.MaxPerDevice, stated.perDevice)
	p.maxReplicas = max(min(p.maxReplicas, stated.replicas, p.batch.Max/p.batch.MinPerDevice), 1)
}

// statedLimits are bounds that the artifacts of Pollux and Sia state beside their files.
type statedLimits struct{ perDevice, replicas int }

// stated are the bounds that hold whatever was measured. They belong to the profiles of the artifacts, and not to those
// that others call the same: these are told apart by the batches of their trainings.
func (p *learning) stated(application string) statedLimits {
	limits := statedLimits{math.MaxInt, math.MaxInt}
	if len(p.trainings) == 0 {
		return limits
	}
	type artifact struct {
		application      string
		initial, largest int
	}
	switch (artifact{application, p.trainings[0].batch, p.trainings[len(p.trainings)-1].batch}) {
	case artifact{"yolov3", 8, 512}:
		limits.perDevice = 8
	case artifact{"ncf", 256, 32768}:
		limits.replicas = 1
	}
	return limits
}

// open opens a file as a table and hands it to read; without problems it becomes an input of the workload.
func (r *profileReader) open(ctx context.Context, path string, cols columns, readRows func(*table)) {
	in, err := openInput(ctx, path)
	if err != nil {
		r.fail(path, err)
		return
	}
	t := openTable(in, cols)
	readRows(t)
	r.problems = append(r.problems, t.finish()...)
	r.inputs = append(r.inputs, in.Input)
}

func (r *profileReader) fail(path string, err error) {
	if problems, ok := errors.AsType[core.Diagnostics](err); ok {
		r.problems = append(r.problems, problems...)
		return
	}
	r.problems = append(r.problems, core.Diagnostic{Position: core.Position{File: path}, Summary: err.Error()})
}

const (
	placementsShape = iota
	placementsBatch
	placementsStep
	placementsSync
)

var placementsColumns = columns{required: []string{"placement", "local_bsz", "step_time", "sync_time"}}

func (r *profileReader) readPlacements(ctx context.Context, p *profile, path string) {
	p.batch.MinPerDevice = math.MaxInt
	p.placements = r.readCurves(ctx, path, func(_ uint64, batch int, _ stepTime) {
		p.batch.MinPerDevice, p.batch.MaxPerDevice = min(p.batch.MinPerDevice, batch), max(p.batch.MaxPerDevice, batch)
	})
}

// shape is a placement such as 134: a digit for the replicas on each node.
func (t *table) shape(column int) uint64 {
	var shape []int
	for _, digit := range t.cell(column) {
		if digit < '1' || digit > '9' {
			shape = nil
			break
		}
		shape = append(shape, int(digit-'0'))
	}
	packed := packShape(shape)
	if packed == 0 {
		t.reject(column, fmt.Sprintf("a digit from 1 to 9 for each node, at most %d of them", maxPackedNodes))
	}
	return packed
}

func (t *table) stepTime(step, sync int) stepTime {
	time := stepTime{step: t.span(step)}
	time.sync = t.moment(sync)
	if t.ok() && time.sync >= time.step {
		t.reject(sync, "less than the whole step")
	}
	return time
}

const (
	trainingProgress = iota
	trainingIteration
	trainingMetric
	trainingSquare
	trainingVariance
)

var trainingColumns = columns{required: []string{"progress", "iteration", "metric", "grad_sqr", "grad_var"}}

func (r *profileReader) readTrainings(ctx context.Context, p *learning, folder string) {
	const prefix, suffix = "validation-", ".csv"
	entries, err := os.ReadDir(folder)
	if err != nil {
		r.fail(folder, cannotRead(folder, err))
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) {
			continue
		}
		path := filepath.Join(folder, name)
		batch, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix))
		if err != nil || batch < 1 || batch > maxCount {
			r.fail(path, errors.New("the file name does not name the batch, as in validation-128.csv"))
			continue
		}
		p.trainings = append(p.trainings, training{batch: batch, epochs: r.readTraining(ctx, path)})
	}
	if len(p.trainings) == 0 {
		r.fail(folder, errors.New("no file of a training, such as validation-128.csv"))
		return
	}
	slices.SortFunc(p.trainings, func(a, b training) int { return cmp.Compare(a.batch, b.batch) })
	epochs := math.MaxInt
	for i := range p.trainings {
		epochs = min(epochs, len(p.trainings[i].epochs))
	}
	p.progress = make([]float64, epochs)
	for i := range p.trainings {
		p.trainings[i].epochs = p.trainings[i].epochs[:epochs]
		for e, record := range p.trainings[i].epochs {
			if i == 0 || record.progress < p.progress[e] {
				p.progress[e] = record.progress
			}
		}
	}
}

func (r *profileReader) readTraining(ctx context.Context, path string) []epochRecord {
	var epochs []epochRecord
	r.open(ctx, path, trainingColumns, func(t *table) {
		before := epochRecord{}
		for t.next() {
			record := epochRecord{
				progress:  t.number(trainingProgress, 0, maxSeconds, "a number"),
				iteration: t.number(trainingIteration, 0, maxSeconds, "a number"),
				gradients: gradients{
					square:   t.number(trainingSquare, 0, maxNumber, "a number"),
					variance: t.number(trainingVariance, 0, maxNumber, "a number"),
				},
				metric: t.number(trainingMetric, -maxNumber, maxNumber, "a number"),
			}
			if t.ok() && record.progress <= before.progress {
				t.reject(trainingProgress, "more than in the row before")
			}
			if t.ok() && record.iteration < before.iteration {
				t.reject(trainingIteration, "no less than in the row before")
			}
			if t.ok() {
				epochs, before = append(epochs, record), record
			}
		}
	})
	return epochs
}

const (
	pointNodes = iota
	pointReplicas
	pointBatch
	pointStep
	pointSync
)

var (
	pointColumns       = columns{required: []string{"num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"}}
	tetrahedronColumns = columns{required: []string{"corner 1", "corner 2", "corner 3", "corner 4"}, headless: true}
)

func (r *profileReader) readTriangulation(ctx context.Context, p *profile, points, tetrahedra string) {
	var measured []measuredPoint
	r.open(ctx, points, pointColumns, func(t *table) {
		for t.next() {
			at := vector{t.coordinate(pointNodes), t.coordinate(pointReplicas), t.coordinate(pointBatch)}
			measured = append(measured, measuredPoint{at: at, time: t.stepTime(pointStep, pointSync)})
		}
	})
	var division [][4]int
	r.open(ctx, tetrahedra, tetrahedronColumns, func(t *table) {
		last, rowNumber := float64(len(measured)-1), "the number of a row of "+filepath.Base(points)
		for t.next() {
			var corners [4]int
			for i := range corners {
				corners[i] = int(t.whole(i, last, rowNumber))
			}
			if t.ok() {
				division = append(division, corners)
			}
		}
	})
	p.beyond = newTriangulation(measured, division)
}

// coordinate is a whole number that may be written as 4.0.
func (t *table) coordinate(column int) int64 {
	return int64(t.whole(column, maxCoordinate, "a whole number"))
}
