package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Fields of a line of the standard workload format, version 2.2 (Feitelson, Parallel Workloads Archive).
const (
	swfJob = iota
	swfSubmit
	swfWait
	swfRun
	swfAllocated
	swfCPUTime
	swfMemory
	swfRequested
	swfLimit
	swfRequestedMemory
	swfStatus
	swfUser
	swfGroup
	swfExecutable
	swfQueue
	swfPartition
	swfPreceding
	swfThinkTime
	swfFields
)

// swfNames begins the comments that say what a number stands for, as in "; Tenant: 3 vision".
var swfNames = map[string]int{"; Tenant: ": swfUser, "; Application: ": swfExecutable}

// swfStart begins the comment that says when moment 0 was, in Unix seconds; 0 is not known.
const swfStart = "UnixStartTime:"

// swf reads the standard workload format. Processors are devices, the user is the tenant.
func (in *importer) swf(content io.Reader) error {
	if err := in.checkFixed(); err != nil {
		return err
	}
	l := newLines(content)
	s := &swfReader{importer: in, parts: swfParts{dropped: map[string]bool{}}}
	for {
		line, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			if in.tally.rows == 0 {
				return in.problem(0, "no rows", "expected lines of 18 numbers")
			}
			s.parts.drop(in)
			return nil
		case errors.Is(err, errLong):
			in.tally.rows++
			in.tally.drop(reasonLong, l.number, "")
			continue
		case err != nil:
			return in.broken(l.number, err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if line[0] == ';' {
			s.comment(line)
			continue
		}
		if in.tally.rows++; in.tally.rows%chunk == 0 && in.Err() != nil {
			return in.Err()
		}
		s.job(line, l.number)
	}
}

// swfReader reads the lines of a standard workload.
type swfReader struct {
	*importer
	names [swfFields]map[string]string // what a number of a field stands for, by the number
	parts swfParts
}

// comment takes the start of the trace, or the name of a number, from a comment of the head.
func (s *swfReader) comment(line []byte) {
	if rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, "; \t"), []byte(swfStart)); ok {
		if start, ok := number(bytes.TrimSpace(rest)); ok && start >= 0 && start <= maxSeconds {
			s.trace.Epoch = start
		}
	}
	for prefix, f := range swfNames {
		rest, ok := strings.CutPrefix(string(line), prefix)
		if !ok {
			continue
		}
		if number, name, ok := strings.Cut(rest, " "); ok && name != "" && printable([]byte(name)) {
			if s.names[f] == nil {
				s.names[f] = map[string]string{}
			}
			s.names[f][number] = name
		}
	}
}

// swfParts are the lines of jobs that ran in parts. The line that sums a job up may stand before or after them.
type swfParts struct {
	dropped map[string]bool // jobs of other lines, by number
	lines   []swfPart
}

type swfPart struct {
	job  string
	line int
	text string
}

// drop drops them all, once every line was read.
func (p *swfParts) drop(in *importer) {
	for _, part := range p.lines {
		reason := reasonPart
		if _, kept := in.byName[part.job]; !kept && !p.dropped[part.job] {
			reason = reasonParts
		}
		in.tally.drop(reason, part.line, part.text)
	}
}

const (
	reasonPart  = "part of a job that another line sums up"
	reasonParts = "part of a job that no line sums up"
)

// unlikely says why a time of a line is none; empty when it is one.
func unlikely(name string, seconds float64) string {
	switch {
	case seconds == -1:
		return name + " is not known"
	case seconds < 0:
		return name + " is below 0"
	case seconds > maxSeconds:
		return name + " is above 1e11 s"
	}
	return ""
}

// swfValues are the fields of a line, as text and as numbers.
type swfValues struct {
	cells [swfFields][]byte
	x     [swfFields]float64
}

// read divides a line; it returns why the line cannot be read, or nothing.
func (v *swfValues) read(line []byte) (fault string) {
	n := 0
	for cell := range bytes.FieldsSeq(line) {
		if n == swfFields {
			n++
			break
		}
		value, ok := numberSigned(cell)
		if !ok {
			return "a field is not a number"
		}
		v.cells[n], v.x[n] = cell, value
		n++
	}
	if n != swfFields {
		return fmt.Sprintf("line has not %d fields", swfFields)
	}
	return ""
}

// job keeps the job of a line, or drops it.
func (s *swfReader) job(line []byte, number int) {
	var v swfValues
	if fault := v.read(line); fault != "" {
		s.tally.drop(fault, number, string(line))
		return
	}
	r := Record{Name: string(v.cells[swfJob]), line: int32(number), Submit: v.x[swfSubmit], Duration: v.x[swfRun], Start: nan, Limit: nan, Estimate: nan}
	switch status := v.x[swfStatus]; status {
	case 0:
		r.Outcome = "failed"
	case 1:
		r.Outcome = "completed"
	case 5:
		r.Outcome = "cancelled"
	case 2, 3, 4:
		s.parts.lines = append(s.parts.lines, swfPart{r.Name, number, shorten(string(line))})
		return
	}
	if v.x[swfWait] >= 0 {
		r.Start = r.Submit + v.x[swfWait]
	}
	if v.x[swfLimit] > 0 && v.x[swfLimit] <= maxSeconds {
		r.Limit = v.x[swfLimit]
	}
	devices := v.devices()
	if fault := s.fault(&r, devices); fault != "" {
		s.parts.dropped[r.Name] = true
		s.tally.drop(fault, number, string(line))
		return
	}
	r.Replicas = int32(devices)
	r.Tenant, r.Application = s.labelOf(&v, swfUser), s.labelOf(&v, swfExecutable)
	s.keep(&r)
}

// devices is the number of processors that a job got, or else asked for.
func (v *swfValues) devices() float64 {
	if v.x[swfAllocated] >= 0 {
		return v.x[swfAllocated]
	}
	return v.x[swfRequested]
}

// fault returns why a job is dropped; nothing for one that is kept.
func (s *swfReader) fault(r *Record, devices float64) string {
	for _, k := range s.Keep {
		if !s.keeps(r.Outcome) {
			return reasonKeep(k)
		}
	}
	switch {
	case devices <= 0:
		return reasonNoGPU
	case devices > maxCount || devices != float64(int32(devices)):
		return "processors are not a whole number up to 1048576"
	case unlikely("submit time", r.Submit) != "":
		return unlikely("submit time", r.Submit)
	case r.Duration < 0 && r.Outcome == "cancelled":
		return reasonNeverRan
	case unlikely("run time", r.Duration) != "":
		return unlikely("run time", r.Duration)
	}
	return r.fault()
}

// labelOf is the name that the number of a field stands for, or the number; nothing for one that is not known.
func (s *swfReader) labelOf(v *swfValues, f int) string {
	if v.x[f] < 0 {
		return ""
	}
	if name := s.names[f][string(v.cells[f])]; name != "" {
		return s.label([]byte(name))
	}
	return s.label(v.cells[f])
}

// numberSigned is number, which may be below 0.
func numberSigned(cell []byte) (float64, bool) {
	if len(cell) > 1 && cell[0] == '-' {
		x, ok := number(cell[1:])
		return -x, ok
	}
	return number(cell)
}
