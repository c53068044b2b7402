package exchange

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// WriteCSV writes a trace in Quartet's own format, in order of submission. Columns that no record has a value for are left
// out, but those that every trace has.
func WriteCSV(w io.Writer, t *Trace) error {
	columns := fieldsOf(t)
	out := bufio.NewWriterSize(w, 1<<16)
	row := make([]byte, 0, 256)
	for i, f := range columns {
		if i > 0 {
			row = append(row, ',')
		}
		row = append(row, fieldNames[f]...)
	}
	_, _ = out.Write(append(row, '\n')) // Flush tells
	for _, i := range t.order() {
		r := t.At(int(i))
		row = row[:0]
		for k, f := range columns {
			if k > 0 {
				row = append(row, ',')
			}
			row = appendCell(row, r, f)
		}
		if _, err := out.Write(append(row, '\n')); err != nil {
			return fmt.Errorf("write job %q: %w", r.Name, err)
		}
	}
	return out.Flush()
}

// fieldsOf lists the columns that a trace needs.
func fieldsOf(t *Trace) []field {
	var used [fieldEnd]bool
	for i := range t.count {
		r := t.At(i)
		for f := fieldTenant; f < fieldEnd; f++ {
			if !used[f] {
				used[f] = len(appendCell(nil, r, f)) > 0
			}
		}
	}
	var fields []field
	for f := range fieldEnd {
		if used[f] || f <= fieldReplicas {
			fields = append(fields, f)
		}
	}
	return fields
}

// appendCell renders a field of a record; nothing for what reading assumes where a cell is empty.
func appendCell(b []byte, r *Record, f field) []byte {
	switch f {
	case fieldName:
		return appendText(b, r.Name)
	case fieldSubmit:
		return appendNumber(b, r.Submit)
	case fieldDuration:
		return appendNumber(b, r.Duration)
	case fieldReplicas:
		return strconv.AppendInt(b, int64(r.Replicas), 10)
	case fieldTenant:
		return appendText(b, r.Tenant)
	case fieldApplication:
		return appendText(b, r.Application)
	case fieldAccelerators:
		return appendText(b, r.Accelerators)
	case fieldOutcome:
		return append(b, r.Outcome...)
	case fieldStart:
		return appendKnown(b, r.Start)
	case fieldLimit:
		return appendKnown(b, r.Limit)
	case fieldEstimate:
		return appendKnown(b, r.Estimate)
	}
	if r.more == nil {
		return b
	}
	return r.more.appendCell(b, r.Replicas, f)
}

// appendCell renders a field of the details of a job with so many replicas.
func (d *Details) appendCell(b []byte, replicas int32, f field) []byte {
	switch f {
	case fieldWeight:
		return appendUnless(b, d.Weight, 1)
	case fieldMinReplicas:
		return appendCountUnless(b, d.MinReplicas, replicas)
	case fieldMaxReplicas:
		return appendCountUnless(b, d.MaxReplicas, replicas)
	case fieldCPUs:
		return appendUnless(b, d.CPUs, 0)
	case fieldMemory:
		return appendUnless(b, d.MemoryGB, 0)
	case fieldPinned:
		return appendIf(b, d.Pinned)
	case fieldDeadline:
		return appendUnless(b, d.Deadline, 0)
	case fieldBestEffort:
		return appendIf(b, d.BestEffort)
	case fieldTier:
		return append(b, d.Tier...)
	case fieldExperiment:
		return append(b, d.Experiment...)
	case fieldShare:
		return appendCountUnless(b, int32(d.ShareMilli), core.WholeDevice)
	}
	return b
}

// appendUnless is appendNumber, and nothing for 0 and for the value that is assumed.
func appendUnless(b []byte, x, assumed float64) []byte {
	if x == 0 || x == assumed {
		return b
	}
	return appendNumber(b, x)
}

// appendCountUnless renders a count, and nothing for 0 and for the one that is assumed.
func appendCountUnless(b []byte, n, assumed int32) []byte {
	if n == 0 || n == assumed {
		return b
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// appendIf renders what is true, and nothing for what is not.
func appendIf(b []byte, is bool) []byte {
	if !is {
		return b
	}
	return append(b, "true"...)
}

// appendNumber is the shortest text that reads back as the same number.
func appendNumber(b []byte, x float64) []byte { return strconv.AppendFloat(b, x, 'f', -1, 64) }

// appendKnown is appendNumber, and nothing for what is not known.
func appendKnown(b []byte, x float64) []byte {
	if math.IsNaN(x) {
		return b
	}
	return appendNumber(b, x)
}

// appendText quotes a text where a reader of CSV would misread it.
func appendText(b []byte, s string) []byte {
	if !strings.ContainsAny(s, "\",") && strings.TrimSpace(s) == s {
		return append(b, s...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}
