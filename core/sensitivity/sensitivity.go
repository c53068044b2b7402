// Package sensitivity tells how fast jobs run by the CPUs and the memory that they have beside their devices.
//
// Speed is relative to the proportional share: the part of a server's CPUs and memory that belongs to a device when all have
// the same. At it every job runs at 1. Source: Mohan et al., Synergy (OSDI'22).
package sensitivity

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Share is CPUs and memory, of a device or of a job as its user says.
type Share struct {
	CPUs     float64
	MemoryGB float64
}

// Times is the share of a number of devices.
func (s Share) Times(devices float64) Share { return Share{s.CPUs * devices, s.MemoryGB * devices} }

// Over tells whether some part of a share is more than that of another.
func (s Share) Over(o Share) bool { return s.CPUs > o.CPUs || s.MemoryGB > o.MemoryGB }

// Least is the smaller of each part.
func (s Share) Least(o Share) Share {
	return Share{math.Min(s.CPUs, o.CPUs), math.Min(s.MemoryGB, o.MemoryGB)}
}

// Table is what was measured of a model.
type Table struct {
	Model            string
	IterationSeconds float64 // of one iteration at the proportional share
	Ideal            Share   // per device: the least of the best speed
	Speedup          float64 // at the ideal
	CPUs             []float64
	MemoryGB         []float64   // per device, ascending, as CPUs are
	Speed            [][]float64 // by CPUs, then memory; nil where only the ideal is known
}

// Check reports everything that is wrong with a table.
func (t *Table) Check() error {
	var faults []error
	positive := func(name string, x float64) {
		if !(x > 0) || math.IsInf(x, 1) {
			faults = append(faults, fmt.Errorf("%s of model %q is %v, want a number above 0", name, t.Model, x))
		}
	}
	positive("iteration", t.IterationSeconds)
	positive("ideal CPUs", t.Ideal.CPUs)
	positive("ideal memory", t.Ideal.MemoryGB)
	positive("speed-up", t.Speedup)
	for _, axis := range [][]float64{t.CPUs, t.MemoryGB} {
		if !slices.IsSorted(axis) {
			faults = append(faults, fmt.Errorf("measured shares of model %q do not ascend: %v", t.Model, axis))
		}
	}
	if t.Speed != nil && len(t.Speed) != len(t.CPUs) {
		faults = append(faults, fmt.Errorf("model %q has %d rows of speeds, want one for each of %d numbers of CPUs", t.Model, len(t.Speed), len(t.CPUs)))
	}
	for i, row := range t.Speed {
		if len(row) != len(t.MemoryGB) {
			faults = append(faults, fmt.Errorf("row %d of the speeds of model %q has %d, want one for each of %d sizes of memory", i, t.Model, len(row), len(t.MemoryGB)))
		}
		for _, x := range row {
			positive("speed", x)
		}
	}
	return errors.Join(faults...)
}

// At is the speed with a share per device: that of the largest share measured that is not above it, 0 below all of them.
func (t *Table) At(share Share) float64 {
	c, m := under(t.CPUs, share.CPUs), under(t.MemoryGB, share.MemoryGB)
	if c < 0 || m < 0 || t.Speed == nil {
		return 0
	}
	return t.Speed[c][m]
}

// under is the index of the last value that is not above x, -1 for none.
func under(axis []float64, x float64) int {
	i, found := slices.BinarySearch(axis, x)
	if found {
		return i
	}
	return i - 1
}

// Memory is the least memory measured, in GB per device, that is as fast as any with the ideal CPUs. A model that loses
// nothing at the least memory of all is given floor instead, when that is above 0: the least measured says only that it needs
// no more. Without speeds it is the ideal memory.
func (t *Table) Memory(floor float64) float64 {
	c := under(t.CPUs, t.Ideal.CPUs)
	if c < 0 || t.Speed == nil {
		return t.Ideal.MemoryGB
	}
	row := t.Speed[c]
	m := slices.Index(row, slices.Max(row))
	if m == 0 && floor > 0 {
		return floor
	}
	return t.MemoryGB[m]
}

// Demand is what a job asks for beside its devices, and how fast it runs with that.
type Demand struct {
	Share         // of the whole job
	Speed float64 // 1 at the proportional share
}

// Demand is that of a job with so many devices, on servers whose devices have a proportional share each.
//
// A job larger than a server asks for the proportional share. Of more CPUs than a server has it asks for those of the server,
// and its speed is on the straight line from the proportional share to the ideal; of more memory it asks for the server's,
// at no loss, as published.
func (t *Table) Demand(devices, perServer int, fair Share, memoryGB float64) Demand {
	g := float64(devices)
	proportional, server := fair.Times(g), fair.Times(float64(perServer))
	if devices > perServer {
		return Demand{proportional, 1}
	}
	d := Demand{Share{t.Ideal.CPUs, memoryGB}.Times(g), t.Speedup}
	if d.CPUs > server.CPUs {
		d.Speed = 1 + (t.Speedup-1)*(server.CPUs-proportional.CPUs)/(d.CPUs-proportional.CPUs)
		d.CPUs = server.CPUs
	}
	d.MemoryGB = math.Min(d.MemoryGB, server.MemoryGB)
	return d
}
