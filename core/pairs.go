package core

import (
	"cmp"
	"slices"
)

// PairTable is how fast jobs are in pairs on the same devices, as measured: for two jobs and an accelerator type, the part of its speed alone
// that each keeps. A job is known by its application and the replicas that it asks for; nil knows no pair.
type PairTable struct {
	types, applications map[string]int32
	parts               map[pairOf]float64
}

// pairOf is a job beside another on an accelerator type.
type pairOf struct {
	accelerator, application, beside int32
	replicas                         int32
}

// Pair is what was measured of two jobs with as many replicas on the same devices.
type Pair struct {
	Accelerator  string    // name of the type; empty for all types
	Applications [2]string // of the two jobs
	Replicas     int       // of either job
	// Parts are what each keeps of its speed alone, mostly at most 1; 0 for both where they do not fit.
	Parts [2]float64
}

// NewPairTable makes a table of pairs. Of two that say something of the same jobs, the last counts.
func NewPairTable(pairs []Pair) *PairTable {
	t := &PairTable{types: map[string]int32{}, applications: map[string]int32{}, parts: make(map[pairOf]float64, 2*len(pairs))}
	number := func(of map[string]int32, name string) int32 {
		n, known := of[name]
		if !known {
			n = int32(len(of))
			of[name] = n
		}
		return n
	}
	for i := range pairs {
		p := &pairs[i]
		on := number(t.types, p.Accelerator)
		first, second := number(t.applications, p.Applications[0]), number(t.applications, p.Applications[1])
		t.parts[pairOf{on, first, second, int32(p.Replicas)}] = p.Parts[0]
		t.parts[pairOf{on, second, first, int32(p.Replicas)}] = p.Parts[1]
	}
	return t
}

// Part is the part of its speed alone that a job keeps beside another on the same devices of a type, and whether it was measured. It is 0
// where they do not fit.
func (t *PairTable) Part(accelerator string, self, other *JobSpec) (part float64, known bool) {
	if t == nil || self.Requested != other.Requested {
		return 0, false
	}
	on, measured := t.types[accelerator]
	first, knows := t.applications[self.Application]
	second, knowsOther := t.applications[other.Application]
	if !measured || !knows || !knowsOther {
		return 0, false
	}
	part, known = t.parts[pairOf{on, first, second, int32(self.Requested)}]
	return part, known
}

// Empty reports whether the table knows no pair.
func (t *PairTable) Empty() bool { return t == nil || len(t.parts) == 0 }

// Equal reports whether two tables say the same.
func (t *PairTable) Equal(o *PairTable) bool {
	if t.Empty() || o.Empty() {
		return t.Empty() == o.Empty()
	}
	return t == o || len(t.parts) == len(o.parts) && slices.Equal(t.Pairs(), o.Pairs())
}

// Pairs is all that was measured, by accelerator, applications and replicas. A table made of them is an equal one.
func (t *PairTable) Pairs() []Pair {
	if t.Empty() {
		return nil
	}
	types, applications := names(t.types), names(t.applications)
	var pairs []Pair
	for of, part := range t.parts {
		first, second := applications[of.application], applications[of.beside]
		if first > second {
			continue // listed by the other
		}
		beside := t.parts[pairOf{of.accelerator, of.beside, of.application, of.replicas}]
		pairs = append(pairs, Pair{types[of.accelerator], [2]string{first, second}, int(of.replicas), [2]float64{part, beside}})
	}
	slices.SortFunc(pairs, func(a, b Pair) int {
		return cmp.Or(
			cmp.Compare(a.Accelerator, b.Accelerator), slices.Compare(a.Applications[:], b.Applications[:]), cmp.Compare(a.Replicas, b.Replicas),
		)
	})
	return pairs
}

// names are names by their numbers.
func names(numbers map[string]int32) []string {
	list := make([]string, len(numbers))
	for name, n := range numbers {
		list[n] = name
	}
	return list
}
