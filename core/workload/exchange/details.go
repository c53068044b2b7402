package exchange

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// detailed takes what few tables have.
func (t *rowReader) detailed(r *Record) bool {
	var d Details
	if !t.hosted(&d, r.Replicas) || !t.shared(&d) {
		return false
	}
	for _, n := range [...]struct {
		field     field
		into      *float64
		low, high float64
	}{{fieldWeight, &d.Weight, 1e-6, 1e6}, {fieldDeadline, &d.Deadline, math.SmallestNonzeroFloat64, maxSeconds}} {
		if !t.take(n.field, func(cell []byte) (ok bool) {
			*n.into, ok = number(cell)
			return ok && n.low <= *n.into && *n.into <= n.high
		}) {
			return false
		}
	}
	for _, n := range [...]struct {
		field     field
		into      *int32
		low, high int
	}{{fieldMinReplicas, &d.MinReplicas, 1, int(r.Replicas)}, {fieldMaxReplicas, &d.MaxReplicas, int(r.Replicas), maxCount}} {
		if !t.take(n.field, func(cell []byte) bool {
			x, ok := count(cell)
			*n.into = int32(x)
			return ok && n.low <= x && x <= n.high
		}) {
			return false
		}
	}
	for _, n := range [...]struct {
		field field
		into  *bool
	}{{fieldPinned, &d.Pinned}, {fieldBestEffort, &d.BestEffort}} {
		if !t.take(n.field, func(cell []byte) bool {
			word := t.word(string(cell))
			*n.into = strings.EqualFold(word, "true")
			return *n.into || strings.EqualFold(word, "false")
		}) {
			return false
		}
	}
	named := t.take(fieldTier, func(cell []byte) bool {
		d.Tier = string(cell)
		return core.TierRank(d.Tier) >= 0
	}) && t.take(fieldExperiment, func(cell []byte) bool {
		d.Experiment = string(cell)
		return workload.PlainName(d.Experiment)
	})
	if !named {
		return false
	}
	if d != (Details{}) {
		r.more = &d
	}
	return true
}

// hosted takes the CPUs and the memory of each replica, which a table may have of each node or of the whole job.
func (t *rowReader) hosted(d *Details, replicas int32) bool {
	for _, n := range [...]struct {
		field field
		into  *float64
		of    float64 // number of replicas that share what the cell counts
	}{
		{fieldCPUs, &d.CPUs, 1},
		{fieldTotalCPUs, &d.CPUs, float64(replicas)},
		{fieldNodeCPUs, &d.CPUs, float64(replicas) / float64(t.nodes)},
		{fieldMemory, &d.MemoryGB, 1},
		{fieldTotalMemory, &d.MemoryGB, float64(replicas)},
		{fieldNodeMemory, &d.MemoryGB, float64(replicas) / float64(t.nodes)},
	} {
		if *n.into != 0 || len(t.fields[n.field]) == 0 {
			continue
		}
		if !t.take(n.field, func(cell []byte) bool {
			x, ok := number(cell)
			*n.into = x * cmp.Or(t.units[n.field], 1) / n.of
			return ok && 0 <= *n.into && *n.into <= maxCount
		}) {
			return false
		}
	}
	return true
}

// shared takes the part of a device that each replica has.
func (t *rowReader) shared(d *Details) bool {
	d.ShareMilli = t.share
	cell, known := t.has(fieldShare)
	if !known {
		return true
	}
	milli, ok := count(cell)
	switch {
	case !ok || milli < 0 || milli > core.WholeDevice:
		t.drop("share_milli cannot be read", cell)
	case milli == 0:
		t.drop(reasonNoGPU, t.cells[0])
	case t.share > 0 && int(t.share) != milli:
		t.drop("replicas and share_milli are different parts of a device", cell)
	default:
		if milli < core.WholeDevice {
			d.ShareMilli = int16(milli)
		}
		return true
	}
	return false
}

// take reads the cell of a field where it is known, and drops the row where that fails.
func (t *rowReader) take(f field, read func(cell []byte) bool) bool {
	cell, known := t.has(f)
	if !known || read(cell) {
		return true
	}
	t.drop(fieldNames[f]+" cannot be read", cell)
	return false
}

// once is a list of accelerator types that names each once. openb names some twice.
func once(list []byte) []byte {
	if bytes.IndexByte(list, '|') < 0 {
		return list
	}
	var kept [][]byte
	for of := range bytes.SplitSeq(list, []byte("|")) {
		if len(of) == 0 || !slices.ContainsFunc(kept, func(k []byte) bool { return bytes.Equal(k, of) }) {
			kept = append(kept, of)
		}
	}
	return bytes.Join(kept, []byte("|"))
}

// distinct reports whether a list of accelerator types names each once.
func distinct(list []byte) bool {
	types := strings.Split(string(list), "|")
	for i, t := range types {
		if t == "" || slices.Contains(types[:i], t) {
			return false
		}
	}
	return true
}
