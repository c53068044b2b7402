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
	What string `json:"what"`
	Jobs int    `json:"jobs"`
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
	var rounded, renamed, other, more, shares int
	row := make([]byte, 0, 128)
	for k, i := range order {
		r := t.At(int(i))
		whole := func(x float64) int64 {
			if math.IsNaN(x) {
				return -1
			}
			return int64(math.Round(x))
		}
		submit, run := whole(r.Submit), max(whole(r.Duration), 1)
		wait := whole(r.Start - r.Submit)
		limit := whole(r.Limit)
		if r.Limit > 0 {
			limit = max(limit, 1) // 0 is none
		}
		if float64(submit) != r.Submit || float64(run) != r.Duration || r.Start == r.Start && float64(wait) != r.Start-r.Submit ||
			r.Limit == r.Limit && float64(limit) != r.Limit {
			rounded++
		}
		if r.Accelerators != "" || r.Estimate == r.Estimate || r.more.besides() {
			more++
		}
		if r.Details().Shares {
			shares++
		}
		job := r.Name
		if !numbered {
			job = strconv.Itoa(k + 1)
			renamed++
		}
		status := int64(-1)
		switch r.Outcome {
		case "completed":
			status = 1
		case "cancelled":
			status = 5
		case "":
		case "failed":
			status = 0
		default:
			status = 0
			other++
		}
		row = append(append(row[:0], job...), ' ')
		fields := [...]int64{
			swfSubmit: submit, swfWait: wait, swfRun: run, swfAllocated: int64(r.Replicas), swfCPUTime: -1, swfMemory: -1, swfRequested: int64(r.Replicas),
			swfLimit: limit, swfRequestedMemory: -1, swfStatus: status, swfUser: tenants.number(r.Tenant), swfGroup: -1,
			swfExecutable: applications.number(r.Application), swfQueue: -1, swfPartition: -1, swfPreceding: -1, swfThinkTime: -1,
		}
		for f := swfSubmit; f < swfFields; f++ {
			row = append(strconv.AppendInt(row, fields[f], 10), ' ')
		}
		row[len(row)-1] = '\n'
		if _, err := out.Write(row); err != nil {
			return nil, fmt.Errorf("write job %q: %w", r.Name, err)
		}
	}
	losses := lossesOf(Loss{"times rounded to seconds", rounded}, Loss{"names replaced by numbers", renamed},
		Loss{"outcomes that are neither completed, failed nor cancelled, written as failed", other},
		Loss{"accelerator types, estimates, weights, bounds, CPUs, memory, deadlines and tiers left out", more},
		Loss{lostShares, shares})
	return losses, out.Flush()
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
