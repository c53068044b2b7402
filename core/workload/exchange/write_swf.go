package exchange

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Loss is what a format could not hold of a trace.
type Loss struct {
	// What: what was lost.
	What string `json:"what"`
	// Jobs: number of jobs that lost it.
	Jobs int `json:"jobs"`
}

// lostShares is what neither format holds of jobs that share devices.
const lostShares = "parts and slices of devices, device memory, utilisations, tolerances, stages and gains from CPUs left out"

// WriteSWF writes a trace in the standard workload format, in order of submission. Its times are whole seconds, and names of
// jobs, tenants and applications are numbers: comments of the head say which tenant and application a number stands for, and when
// moment 0 was (UnixStartTime; 0 where that is not known).
// Jobs whose names are not whole numbers are numbered from 1.
func WriteSWF(w io.Writer, t *Trace) ([]Loss, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	order := t.order()
	most := int32(0)
	for _, i := range order {
		most = max(most, t.At(int(i)).Replicas)
	}
	fmt.Fprintf(out, "; Version: 2.2\n; MaxJobs: %d\n; MaxRecords: %d\n; %s %.0f\n; Note: processors are accelerators; the largest job has %d\n",
		t.count, t.count, swfStart, math.Round(t.Epoch), most)
	tenants := numbersOf(t, order, func(r *Record) string { return r.Tenant })
	applications := numbersOf(t, order, func(r *Record) string { return r.Application })
	tenants.writeHead(out, "; Tenant: ")
	applications.writeHead(out, "; Application: ")
	numbered := true
	for _, i := range order {
		numbered = numbered && canonical(t.At(int(i)).Name)
	}
	s := swfWriter{tenants: tenants, applications: applications}
	row := make([]byte, 0, 128)
	for k, i := range order {
		r := t.At(int(i))
		job := r.Name
		if !numbered {
			job = strconv.Itoa(k + 1)
			s.renamed++
		}
		row = s.append(append(append(row[:0], job...), ' '), r)
		if _, err := out.Write(row); err != nil {
			return nil, fmt.Errorf("write job %q: %w", r.Name, err)
		}
	}
	return s.losses(), out.Flush()
}

// swfWriter renders jobs, and counts what is lost of them.
type swfWriter struct {
	tenants, applications                 *numbering
	rounded, renamed, other, more, shares int // jobs
}

// append renders the fields of a job behind its number.
func (s *swfWriter) append(row []byte, r *Record) []byte {
	submit, run := wholeSeconds(r.Submit), max(wholeSeconds(r.Duration), 1)
	wait, limit := wholeSeconds(r.Start-r.Submit), wholeSeconds(r.Limit)
	if r.Limit > 0 {
		limit = max(limit, 1) // 0 is none
	}
	if differs(submit, r.Submit) || differs(run, r.Duration) || differs(wait, r.Start-r.Submit) || differs(limit, r.Limit) {
		s.rounded++
	}
	if r.Accelerators != "" || r.Estimate == r.Estimate || r.more.besides() {
		s.more++
	}
	if r.shares() {
		s.shares++
	}
	fields := [...]int64{
		swfSubmit: submit, swfWait: wait, swfRun: run, swfAllocated: int64(r.Replicas), swfCPUTime: -1, swfMemory: -1, swfRequested: int64(r.Replicas),
		swfLimit: limit, swfRequestedMemory: -1, swfStatus: s.status(r.Outcome), swfUser: s.tenants.number(r.Tenant), swfGroup: -1,
		swfExecutable: s.applications.number(r.Application), swfQueue: -1, swfPartition: -1, swfPreceding: -1, swfThinkTime: -1,
	}
	for f := swfSubmit; f < swfFields; f++ {
		row = append(strconv.AppendInt(row, fields[f], 10), ' ')
	}
	row[len(row)-1] = '\n'
	return row
}

// wholeSeconds rounds a time; -1 is one that is not known.
func wholeSeconds(x float64) int64 {
	if math.IsNaN(x) {
		return -1
	}
	return int64(math.Round(x))
}

// differs reports whether a time is known and not the number of seconds that is written.
func differs(written int64, x float64) bool { return x == x && float64(written) != x }

// status is the number of an outcome; -1 for one that is not known.
func (s *swfWriter) status(outcome string) int64 {
	switch outcome {
	case "completed":
		return 1
	case "cancelled":
		return 5
	case "":
		return -1
	case "failed":
		return 0
	}
	s.other++
	return 0
}

func (s *swfWriter) losses() []Loss {
	return lossesOf(Loss{"times rounded to seconds", s.rounded}, Loss{"names replaced by numbers", s.renamed},
		Loss{"outcomes that are neither completed, failed nor cancelled, written as failed", s.other},
		Loss{"accelerator types, estimates, weights, bounds, CPUs, memory, deadlines and tiers left out", s.more},
		Loss{lostShares, s.shares})
}

func lossesOf(all ...Loss) []Loss {
	return slices.DeleteFunc(all, func(l Loss) bool { return l.Jobs == 0 })
}

// canonical reports whether a name is a whole number as one writes it.
func canonical(name string) bool {
	n, err := strconv.ParseUint(name, 10, 53)
	return err == nil && strconv.FormatUint(n, 10) == name
}

// numbering gives texts numbers: their own where all are whole numbers, otherwise from 1 in order of appearance.
type numbering struct {
	names   []string
	numbers map[string]int64
	own     bool
}

func numbersOf(t *Trace, order []int32, of func(*Record) string) *numbering {
	n := &numbering{numbers: map[string]int64{}, own: true}
	for _, i := range order {
		name := of(t.At(int(i)))
		if _, known := n.numbers[name]; known || name == "" {
			continue
		}
		n.names = append(n.names, name)
		n.numbers[name] = int64(len(n.names))
		n.own = n.own && canonical(name)
	}
	if n.own {
		for _, name := range n.names {
			n.numbers[name], _ = strconv.ParseInt(name, 10, 64)
		}
	}
	return n
}

// number is that of a name; -1 for none.
func (n *numbering) number(name string) int64 {
	if name == "" {
		return -1
	}
	return n.numbers[name]
}

func (n *numbering) writeHead(out *bufio.Writer, prefix string) {
	if n.own {
		return
	}
	for i, name := range n.names {
		fmt.Fprintf(out, "%s%d %s\n", prefix, i+1, strings.TrimSpace(name))
	}
}
