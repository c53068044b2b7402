package workload

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// FittedNames lists the applications that a folder of measured profiles, as the source `pollux` reads them, holds.
func FittedNames(folder string) ([]string, error) {
	names, err := (&profileReader{folder: folder}).applications()
	slices.Sort(names)
	return names, err
}

// FitApplication fits a profile to all that was measured of an application: traces/<application>/placements.csv,
// scalability.csv and validation-*.csv in the folder. A problem in a file is a core.Diagnostics error.
func FitApplication(ctx context.Context, folder, application string) (goodput.Profile, error) {
	r := profileReader{folder: folder}
	traces := filepath.Join(folder, "traces", application)
	p := &profile{application: application, maxReplicas: profileMaxReplicas}
	r.readPlacements(ctx, p, filepath.Join(traces, "placements.csv"))
	r.readTrainings(ctx, &p.learning, traces)
	seen := append(p.measurements(), r.readScalability(ctx, filepath.Join(traces, "scalability.csv"))...)
	if err := r.problems.Err(); err != nil {
		return goodput.Profile{}, err
	}
	p.limit()
	limits := goodput.BatchLimits{
		Initial: p.batch.Initial, Max: p.batch.Max, MinPerDevice: p.batch.MinPerDevice, MaxPerDevice: p.batch.MaxPerDevice,
	}
	fitted, err := goodput.FitProfile(application, limits, p.maxReplicas, seen, p.records())
	if err != nil {
		r.fail(traces, err)
	}
	return fitted, r.problems.Err()
}

// measurements lists the step times by placement, in a fixed order.
func (p *profile) measurements() []core.Measurement {
	var shapes []uint64
	for shape := range p.placements {
		shapes = append(shapes, shape)
	}
	slices.Sort(shapes)
	var seen []core.Measurement
	for _, shape := range shapes {
		nodes, replicas := 0, 0
		for rest := shape; rest > 0; rest >>= 8 {
			nodes++
			replicas += int(rest & 0xff)
		}
		curve := p.placements[shape]
		for i, batch := range curve.batches {
			seen = append(seen, measurement(nodes, replicas, batch, curve.times[i]))
		}
	}
	return seen
}

func measurement(nodes, replicas, perDevice int, time stepTime) core.Measurement {
	return core.Measurement{
		Nodes: nodes, Replicas: replicas, PerDevice: perDevice, PassSeconds: time.step - time.sync, StepSeconds: time.step,
	}
}

// readScalability reads the step times on many nodes.
func (r *profileReader) readScalability(ctx context.Context, path string) []core.Measurement {
	var seen []core.Measurement
	r.open(ctx, path, pointColumns, func(t *table) {
		for t.next() {
			nodes, replicas, batch := t.count(pointNodes), t.count(pointReplicas), t.count(pointBatch)
			if time := t.stepTime(pointStep, pointSync); t.ok() {
				seen = append(seen, measurement(nodes, replicas, batch, time))
			}
		}
	})
	return seen
}

func (p *profile) records() []goodput.Training {
	var records []goodput.Training
	for _, t := range p.trainings {
		record := goodput.Training{Batch: t.batch}
		for _, e := range t.epochs {
			g := goodput.Gradients{SquaredNorm: e.gradients.square, Variance: e.gradients.variance}
			record.Epochs = append(record.Epochs, goodput.Epoch{Progress: e.progress, Gradients: g})
		}
		records = append(records, record)
	}
	return records
}
