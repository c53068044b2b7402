package workload

import (
	"cmp"
	"math"
	"slices"
)

// siaProfile is what was measured of an application on several accelerator types.
type siaProfile struct {
	learning
	application string
	types       []siaSpeeds // of those it was measured on
}

// siaSpeeds is the speed of an application on one accelerator type.
type siaSpeeds struct {
	accelerator    string
	least, most    int                   // batch per device
	devicesPerNode int                   // of the machines measured
	placements     map[uint64]*stepCurve // by packShape
	beyond         []nodeLevel           // placements that were not measured themselves, nodes ascending
}

// nodeLevel is what was measured on a number of nodes, whatever the replicas on each, by replicas, ascending.
type nodeLevel struct {
	nodes  int
	curves []replicaCurve
}

type replicaCurve struct {
	replicas int
	times    stepCurve
}

// on are the speeds on an accelerator type; nil where it was not measured.
func (p *siaProfile) on(accelerator string) *siaSpeeds {
	for i := range p.types {
		if p.types[i].accelerator == accelerator {
			return &p.types[i]
		}
	}
	return nil
}

// stepTime is the time of a step on a placement, replicas by node, at a batch per device; false where nothing was
// measured around it.
//
// The publication interpolates over the Delaunay division of all measured points. They form a grid, whose division is
// not unique, so that this one follows the grid: first the numbers of nodes around, then the replicas around as many
// for each node, then the batches around. Where no placement but full nodes counts, both are the same.
func (s *siaSpeeds) stepTime(shape []int, perDevice int) (stepTime, bool) {
	if curve, measured := s.placements[packShape(shape)]; measured {
		return curve.beyond(perDevice)
	}
	nodes, replicas := spread(shape)
	nodes = min(nodes, profileMaxNodes)
	i, exact := slices.BinarySearchFunc(s.beyond, nodes, func(l nodeLevel, nodes int) int { return cmp.Compare(l.nodes, nodes) })
	switch {
	case exact:
		return s.beyond[i].at(float64(replicas), perDevice)
	case i == 0 || i == len(s.beyond):
		return stepTime{}, false
	}
	low, high := &s.beyond[i-1], &s.beyond[i]
	perNode := float64(replicas) / float64(nodes)
	a, okLow := low.at(perNode*float64(low.nodes), perDevice)
	b, okHigh := high.at(perNode*float64(high.nodes), perDevice)
	return between(float64(nodes), float64(low.nodes), a, float64(high.nodes), b), okLow && okHigh
}

// at interpolates between the replicas measured; false outside them.
func (l *nodeLevel) at(replicas float64, perDevice int) (stepTime, bool) {
	i, exact := slices.BinarySearchFunc(l.curves, replicas, func(c replicaCurve, r float64) int { return cmp.Compare(float64(c.replicas), r) })
	switch {
	case exact:
		return l.curves[i].times.beyond(perDevice)
	case i == 0 || i == len(l.curves):
		return stepTime{}, false
	}
	low, high := &l.curves[i-1], &l.curves[i]
	a, okLow := low.times.beyond(perDevice)
	b, okHigh := high.times.beyond(perDevice)
	return between(replicas, float64(low.replicas), a, float64(high.replicas), b), okLow && okHigh
}

// between is the step time at x on the line through (x0, a) and (x1, b).
func between(x, x0 float64, a stepTime, x1 float64, b stepTime) stepTime {
	return stepTime{step: interpolate(x, x0, a.step, x1, b.step), sync: interpolate(x, x0, a.sync, x1, b.sync)}
}

// siaPoint is a measurement to be brought into levels.
type siaPoint struct {
	nodes, replicas, batch int
	time                   stepTime
}

// levels sorts measurements by nodes, replicas and batch. Several of one configuration count by their mean.
func levels(points []siaPoint) []nodeLevel {
	slices.SortStableFunc(points, func(a, b siaPoint) int {
		return cmp.Or(cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.replicas, b.replicas), cmp.Compare(a.batch, b.batch))
	})
	var all []nodeLevel
	for i := 0; i < len(points); {
		p, same := points[i], 0
		var sum stepTime
		for ; i < len(points) && points[i].nodes == p.nodes && points[i].replicas == p.replicas && points[i].batch == p.batch; i++ {
			sum.step += points[i].time.step
			sum.sync += points[i].time.sync
			same++
		}
		if len(all) == 0 || all[len(all)-1].nodes != p.nodes {
			all = append(all, nodeLevel{nodes: p.nodes})
		}
		level := &all[len(all)-1]
		if n := len(level.curves); n == 0 || level.curves[n-1].replicas != p.replicas {
			level.curves = append(level.curves, replicaCurve{replicas: p.replicas})
		}
		times := &level.curves[len(level.curves)-1].times
		times.batches = append(times.batches, p.batch)
		times.times = append(times.times, stepTime{sum.step / float64(same), sum.sync / float64(same)})
	}
	return all
}

// batches are some batches per device from the least to the most that was measured, in geometric steps.
func (s *siaSpeeds) batches() []int {
	var batches []int
	for i := range truthBatches {
		b := int(math.Round(float64(s.least) * math.Pow(float64(s.most)/float64(s.least), float64(i)/(truthBatches-1))))
		if len(batches) == 0 || b > batches[len(batches)-1] {
			batches = append(batches, b)
		}
	}
	return batches
}
