package core

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Sensitivity says how fast a job is by the CPUs and the memory that each replica has beside its device. Jobs of one application share it.
//
// Speed is relative to Base: with that a job is as fast as its model says. Source: Mohan et al., Synergy (OSDI'22), where Base is the
// proportional share, the part of a server's CPUs and memory that belongs to a device when all have the same.
type Sensitivity struct {
	Base    Resources // of a replica, with which the speed is 1
	Ideal   Resources // of a replica, the least of the best speed
	Speedup float64   // with the ideal
	// IterationSeconds is how long a unit of the job's work takes with Base on the replicas it requests; 0 where work is counted in seconds, or
	// nobody knows.
	IterationSeconds float64

	// CPUs and MemoryGB are the amounts with which speeds were measured, of a replica and ascending, and Speeds the speeds by CPUs, then memory.
	// nil where only the ideal is known.
	CPUs     []float64
	MemoryGB []float64   // main memory of a replica in GB, ascending
	Speeds   [][]float64 // relative to Base, by index of CPUs, then of MemoryGB
}

// Check reports everything that is wrong with a table.
func (t *Sensitivity) Check() error {
	var f faults
	if t.IterationSeconds != 0 {
		f.positive("iteration", t.IterationSeconds)
	}
	f.positive("CPUs of the base", t.Base.CPUs)
	f.positive("memory of the base", t.Base.MemoryGB)
	f.positive("ideal CPUs", t.Ideal.CPUs)
	f.positive("ideal memory", t.Ideal.MemoryGB)
	switch {
	case !(t.Speedup >= 1) || math.IsInf(t.Speedup, 1):
		f.add("speed-up is %v, want a number of 1 or more: nothing is faster than the ideal", t.Speedup)
	case t.Speedup > 1 && t.Ideal.CPUs <= t.Base.CPUs && t.Ideal.MemoryGB <= t.Base.MemoryGB:
		f.add("speed-up is %v, want 1, for the ideal is no more than the base", t.Speedup)
	}
	t.checkAmounts(&f)
	t.checkSpeeds(&f)
	return errors.Join(f...)
}

// faults are what is wrong with a table.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// positive refuses what is no finite number above 0.
func (f *faults) positive(name string, x float64) {
	if !(x > 0) || math.IsInf(x, 1) {
		f.add("%s is %v, want a number above 0", name, x)
	}
}

// checkAmounts holds the measured amounts to ascend.
func (t *Sensitivity) checkAmounts(f *faults) {
	for _, axis := range [][]float64{t.CPUs, t.MemoryGB} {
		if len(axis) == 0 && t.Speeds != nil {
			f.add("there are speeds, want the amounts of CPUs and of memory with which they were measured")
		}
		for i := 1; i < len(axis); i++ {
			if !(axis[i] > axis[i-1]) {
				f.add("measured amounts do not ascend: %v", axis)
				break
			}
		}
		for _, x := range axis {
			f.positive("measured amount", x)
		}
	}
}

// checkSpeeds holds the speeds to the amounts, and to be no lower with more of them.
func (t *Sensitivity) checkSpeeds(f *faults) {
	if t.Speeds != nil && len(t.Speeds) != len(t.CPUs) {
		f.add("there are %d rows of speeds, want one for each of %d numbers of CPUs", len(t.Speeds), len(t.CPUs))
	}
	for i, row := range t.Speeds {
		if len(row) != len(t.MemoryGB) {
			f.add("row %d of the speeds has %d, want one for each of %d sizes of memory", i, len(row), len(t.MemoryGB))
		}
		for _, x := range row {
			f.positive("speed", x)
		}
		for k, x := range row {
			if k > 0 && x < row[k-1] {
				f.add("speed %v in row %d is below the %v with less memory, want no less", x, i, row[k-1])
			}
			if i > 0 && k < len(t.Speeds[i-1]) && x < t.Speeds[i-1][k] {
				f.add("speed %v in row %d is below the %v with fewer CPUs, want no less", x, i, t.Speeds[i-1][k])
			}
		}
	}
}

// At is the speed that was measured with the largest amounts that are not above those given, 0 below all of them and where nothing was.
func (t *Sensitivity) At(each Resources) float64 {
	c, m := under(t.CPUs, each.CPUs), under(t.MemoryGB, each.MemoryGB)
	if c < 0 || m < 0 || t.Speeds == nil {
		return 0
	}
	return t.Speeds[c][m]
}

// rounding is how much may be missing of an amount, which is counted in whole thousandths.
const rounding = 0.001 + 1e-9

// Speed is how fast a job is whose replicas have so much each; 1 with Base.
//
// Where speeds were measured it is that of the largest amounts measured that are not above these. Where only the ideal is known it is on the
// straight line from Base to it, by the CPUs, and by the memory where the ideal has no more CPUs than Base: who has the CPUs loses nothing with less
// memory, as the source has it. Below what was measured, or below both Base and the ideal, it falls in proportion.
func (t *Sensitivity) Speed(each Resources) float64 {
	if t.Speeds != nil {
		least := Resources{t.CPUs[0], t.MemoryGB[0]}
		return min(part(each.CPUs, least.CPUs), part(each.MemoryGB, least.MemoryGB)) *
			t.At(Resources{max(each.CPUs+rounding, least.CPUs), max(each.MemoryGB+rounding, least.MemoryGB)})
	}
	least := t.Base.Least(t.Ideal)
	far := along(each.CPUs, t.Base.CPUs, t.Ideal.CPUs)
	if t.Ideal.CPUs <= t.Base.CPUs {
		far = along(each.MemoryGB, t.Base.MemoryGB, t.Ideal.MemoryGB)
	}
	return min(part(each.CPUs, least.CPUs), part(each.MemoryGB, least.MemoryGB)) * (1 + (t.Speedup-1)*far)
}

// part is how much of what is needed an amount is, 0..1.
func part(x, needed float64) float64 {
	if x >= needed-rounding {
		return 1
	}
	return x / needed
}

// along is how far an amount is from the base to the ideal, 0..1; 1 where the ideal is no more than the base.
func along(x, base, ideal float64) float64 {
	switch {
	case ideal <= base || x >= ideal-rounding:
		return 1
	case x <= base+rounding:
		return 0
	}
	return (x - base) / (ideal - base)
}

// under is the index of the last of ascending values that is not above x, -1 for none.
func under(values []float64, x float64) int {
	at, found := slices.BinarySearch(values, x)
	if found {
		return at
	}
	return at - 1
}

// Memory is the least memory measured, in GB of a replica, that is as fast as any with the ideal CPUs. A job that loses nothing with the least of all
// is given floor instead, when that is above 0: the least measured says only that it needs no more. Without speeds it is the ideal memory.
func (t *Sensitivity) Memory(floor float64) float64 {
	c := under(t.CPUs, t.Ideal.CPUs)
	if c < 0 || t.Speeds == nil {
		return t.Ideal.MemoryGB
	}
	row := t.Speeds[c]
	m := slices.Index(row, slices.Max(row))
	if m == 0 && floor > 0 {
		return floor
	}
	return t.MemoryGB[m]
}

// Demand is what a job asks for beside its devices, and how fast it is with that.
type Demand struct {
	Resources         // of the whole job
	Speed     float64 // 1 with the proportional share
}
