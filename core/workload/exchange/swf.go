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
	names := [swfFields]map[string]string{}
	parts := swfParts{dropped: map[string]bool{}}
	for {
		line, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			if in.tally.rows == 0 {
				return in.problem(0, "no rows", "expected lines of 18 numbers")
			}
			parts.drop(in)
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
			if rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, "; \t"), []byte(swfStart)); ok {
				if start, ok := number(bytes.TrimSpace(rest)); ok && start >= 0 && start <= maxSeconds {
					in.trace.Epoch = start
				}
			}
			for prefix, f := range swfNames {
				if rest, ok := strings.CutPrefix(string(line), prefix); ok {
					if number, name, ok := strings.Cut(rest, " "); ok && name != "" && printable([]byte(name)) {
						if names[f] == nil {
							names[f] = map[string]string{}
						}
						names[f][number] = name
					}
				}
			}
			continue
		}
		if in.tally.rows++; in.tally.rows%chunk == 0 && in.Err() != nil {
			return in.Err()
		}
		in.swfLine(line, l.number, &names, &parts)
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

// unlikely tells why a time of a line is none; empty when it is one.
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

func (in *importer) swfLine(line []byte, number int, names *[swfFields]map[string]string, parts *swfParts) {
	var cells [swfFields][]byte
	var x [swfFields]float64
	drop := func(reason string) { in.tally.drop(reason, number, string(line)) }
	n := 0
	for cell := range bytes.FieldsSeq(line) {
		if n == swfFields {
			n++
			break
		}
		value, ok := numberSigned(cell)
		if !ok {
			drop("a field is not a number")
			return
		}
		cells[n], x[n] = cell, value
		n++
	}
	if n != swfFields {
		drop(fmt.Sprintf("line has not %d fields", swfFields))
		return
	}
	r := Record{Name: string(cells[swfJob]), line: int32(number), Submit: x[swfSubmit], Duration: x[swfRun], Start: nan, Limit: nan, Estimate: nan}
	switch status := x[swfStatus]; status {
	case 0:
		r.Outcome = "failed"
	case 1:
		r.Outcome = "completed"
	case 5:
		r.Outcome = "cancelled"
	case 2, 3, 4:
		parts.lines = append(parts.lines, swfPart{r.Name, number, shorten(string(line))})
		return
	}
	drop = func(reason string) {
		parts.dropped[r.Name] = true
		in.tally.drop(reason, number, string(line))
	}
	for _, k := range in.Keep {
		if !in.keeps(r.Outcome) {
			drop(reasonKeep(k))
			return
		}
	}
	devices := x[swfAllocated]
	if devices < 0 {
		devices = x[swfRequested]
	}
	if x[swfWait] >= 0 {
		r.Start = r.Submit + x[swfWait]
	}
	if x[swfLimit] > 0 && x[swfLimit] <= maxSeconds {
		r.Limit = x[swfLimit]
	}
	switch {
	case devices <= 0:
		drop(reasonNoGPU)
		return
	case devices > maxCount || devices != float64(int32(devices)):
		drop("processors are not a whole number up to 1048576")
		return
	case unlikely("submit time", r.Submit) != "":
		drop(unlikely("submit time", r.Submit))
		return
	case r.Duration < 0 && r.Outcome == "cancelled":
		drop(reasonNeverRan)
		return
	case unlikely("run time", r.Duration) != "":
		drop(unlikely("run time", r.Duration))
		return
	}
	if fault := r.fault(); fault != "" {
		drop(fault)
		return
	}
	r.Replicas = int32(devices)
	for _, label := range [...]struct {
		field int
		into  *string
	}{{swfUser, &r.Tenant}, {swfExecutable, &r.Application}} {
		f, into := label.field, label.into
		if x[f] < 0 {
			continue
		}
		if name := names[f][string(cells[f])]; name != "" {
			*into = in.label([]byte(name))
		} else {
			*into = in.label(cells[f])
		}
	}
	in.keep(&r)
}

// numberSigned is number, which may be below 0.
func numberSigned(cell []byte) (float64, bool) {
	if len(cell) > 1 && cell[0] == '-' {
		x, ok := number(cell[1:])
		return -x, ok
	}
	return number(cell)
}
