package workload

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Limits of the profiles of the Pollux artifact that its files do not tell.
const (
	profileDevicesPerNode = 4
	profileMaxNodes       = 16 // larger placements are taken for this many nodes
	profileMaxReplicas    = 64
)

// profile is what was measured of an application: its speed by placement and batch, and how training goes by total
// batch. Once read it is safe for concurrent use.
type profile struct {
	learning
	application string
	batch       core.BatchSpec // Requested is 0
	maxReplicas int
	placements  map[uint64]*stepCurve // by packShape
	beyond      *triangulation        // placements that were not measured themselves
	told        *core.Truth           // nil before it was asked for
}

// learning is how the training of an application goes, by total batch.
type learning struct {
	trainings []training // ascending; all of the same number of epochs
	progress  []float64  // cumulative at the end of each epoch, the least over all trainings
}

// training is the record of a whole training at a constant total batch, by epoch.
type training struct {
	batch  int
	epochs []epochRecord
}

// epochRecord is the state at the end of an epoch.
type epochRecord struct {
	progress  float64 // cumulative iterations, each counted for what it gains over one at the initial batch
	iteration float64 // cumulative optimizer steps
	metric    float64 // on samples kept apart: see learning.metric
	gradients gradients
}

// gradients are the squared norm and the variance of the gradient at the initial batch.
type gradients struct{ square, variance float64 }

// stepTime is the time of a step on a placement, replicas by node, at a batch per device; false where nothing was
// measured around it.
func (p *profile) stepTime(shape []int, perDevice int) (stepTime, bool) {
	if curve, measured := p.placements[packShape(shape)]; measured {
		return curve.at(perDevice)
	}
	nodes, replicas := spread(shape)
	return p.beyond.at(vector{int64(min(nodes, profileMaxNodes)), int64(replicas), int64(perDevice)})
}

// around finds the trainings next to a total batch, both the same if it was measured itself; false outside all.
func (p *learning) around(batch int) (low, high *training, ok bool) {
	i, exact := slices.BinarySearchFunc(p.trainings, batch, func(t training, batch int) int { return cmp.Compare(t.batch, batch) })
	switch {
	case exact:
		return &p.trainings[i], &p.trainings[i], true
	case i == 0 || i == len(p.trainings):
		return nil, nil, false
	}
	return &p.trainings[i-1], &p.trainings[i], true
}

// gradients at a total batch in an epoch, counted from 0; false when the batch is out of range.
func (p *learning) gradients(batch, epoch int) (gradients, bool) {
	low, high, ok := p.around(batch)
	if !ok {
		return gradients{}, false
	}
	a, b := low.epochs[epoch].gradients, high.epochs[epoch].gradients
	if low == high {
		return a, true
	}
	x, x0, x1 := float64(batch), float64(low.batch), float64(high.batch)
	return gradients{
		square:   interpolate(x, x0, a.square, x1, b.square),
		variance: interpolate(x, x0, a.variance, x1, b.variance),
	}, true
}

// gain is how many iterations at the initial batch one step at a total batch is worth; 0 when it is out of range.
func (p *learning) gain(batch, epoch int) float64 {
	g, ok := p.gradients(batch, epoch)
	if !ok {
		return 0
	}
	scale := float64(batch) / float64(p.trainings[0].batch)
	needed := g.variance/scale + g.square
	if needed <= 0 {
		return 1
	}
	return (g.variance + g.square) / needed
}

// iterations are the cumulative optimizer steps at a total batch at the end of each epoch; nil when it is out of range.
func (p *learning) iterations(batch int) []float64 {
	low, high, ok := p.around(batch)
	if !ok {
		return nil
	}
	steps := make([]float64, len(low.epochs))
	for e := range steps {
		if steps[e] = low.epochs[e].iteration; low != high {
			steps[e] = interpolate(float64(batch), float64(low.batch), steps[e], float64(high.batch), high.epochs[e].iteration)
		}
	}
	return steps
}

// goOn adds epochs until there are so many times as many, rounded up: each goes as the last one did, and the metric stays.
func (p *learning) goOn(times float64) {
	measured := len(p.progress)
	if !(times > 1) || measured == 0 {
		return
	}
	all := int(math.Ceil(times * float64(measured)))
	step := p.progress[measured-1]
	if measured > 1 {
		step -= p.progress[measured-2]
	}
	for e := measured; e < all; e++ {
		p.progress = append(p.progress, p.progress[measured-1]+float64(e-measured+1)*step)
	}
	for i := range p.trainings {
		t := &p.trainings[i]
		last, before := t.epochs[measured-1], epochRecord{}
		if measured > 1 {
			before = t.epochs[measured-2]
		}
		for e := measured; e < all; e++ {
			next, more := last, float64(e-measured+1)
			next.progress += more * (last.progress - before.progress)
			next.iteration += more * (last.iteration - before.iteration)
			t.epochs = append(t.epochs, next)
		}
	}
}
